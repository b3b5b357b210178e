r"""Which payloads fit a template, and where their holes are: all at once, by their quotes.

Every literal between two holes has a quote, and no hole may have one that is not escaped; so
the n-th quote of every payload that fits is the same one of the template, and says where a
literal is::

    {"id": 17, "name": "Zoë"}      quotes 0 … 5: , "name": " begins 2 before quote 2,
     ^  ^      ^    ^  ^   ^       and "} at quote 5

Payloads with another number of quotes do not fit; of the others every literal is compared.
A long first literal, such as a schema that comes with every message, is compared and taken
off before quotes are looked for.

A quote after one backslash is escaped, after two it is not. After more it may be taken for
the wrong one: then a hole is found in the wrong place, and what is in it is not right, or
none is. By the definition in ``template`` that is all that matters.

Cost: one pass over the bytes for quotes, and a few operations per literal and payload.

Tests: tests/connectors/format/test_template.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reclock.connectors.format.template import Template

    Rows = NDArray[np.bool_]
    Places = NDArray[np.int64]

LONG: Final = 64
"""A first literal of more bytes is taken off."""

_QUOTE, _BACKSLASH = b'"\\'


class Memory(NamedTuple):
    """Texts as they lie in memory: text i is ``data[ends[i]:ends[i + 1]]``."""

    data: NDArray[np.uint8]
    ends: NDArray[np.int32]

    @classmethod
    def of(cls, texts: pa.Array) -> Memory:
        """Return the memory of strings, none of them NULL."""
        _, ends, data = texts.buffers()
        places = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        return cls(np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8), places)


class Fit(NamedTuple):
    """The payloads that fit, and what is in each hole of those."""

    rows: Rows
    holes: tuple[pa.Array, ...]


def fit(payloads: pa.Array, template: Template) -> Fit:
    """Return which strings fit, and their holes."""
    head, *others = template.literals
    if len(head) <= LONG:
        return _fit(Memory.of(payloads), template.literals)
    rows = np.asarray(pc.starts_with(payloads, head.decode()))
    if not rows.all():
        payloads = payloads.filter(pa.array(rows))
    memory = Memory.of(payloads)
    ends = memory.ends.astype(np.int64)
    tails = cut(memory, ends[:-1] + len(head), ends[1:])
    found = _fit(Memory.of(tails), (b"", *others))
    rows[rows] = found.rows
    return Fit(rows, found.holes)


def _fit(memory: Memory, literals: tuple[bytes, ...]) -> Fit:
    data, ends = memory
    anchors, total = _anchors(literals)
    rows, quotes = _quotes(memory, total)
    first, last = ends[:-1][rows].astype(np.int64), ends[1:][rows].astype(np.int64)
    begins = [first, *(quotes[:, nth] - before for nth, before in anchors)]
    begins.append(last - len(literals[-1]))
    within = np.ones(len(first), np.bool_)
    edge = first
    for begin, literal in zip(begins, literals, strict=True):
        within &= begin >= edge
        edge = begin + len(literal)
    begins = _narrowed(rows, begins, within)
    fits = np.ones(len(begins[0]), np.bool_)
    for begin, literal in zip(begins, literals, strict=True):
        found = _pieces(data, begin, begin + len(literal), pa.binary())
        fits &= np.asarray(pc.equal(found, pa.scalar(literal, pa.binary())))[::2]
    begins = _narrowed(rows, begins, fits)
    stops = [begin + len(literal) for begin, literal in zip(begins, literals, strict=True)]
    holes = zip(stops[:-1], begins[1:], strict=True)
    return Fit(rows, tuple(cut(memory, stop, begin) for stop, begin in holes))


def _narrowed(rows: Rows, places: list[Places], kept: Rows) -> list[Places]:
    """Return the ``places`` of the ``kept`` ones of ``rows``, and let go of the other rows."""
    if kept.all():
        return places
    rows[rows] = kept
    return [place[kept] for place in places]


def _anchors(literals: tuple[bytes, ...]) -> tuple[list[tuple[int, int]], int]:
    """Return which quote each inner literal is found by and what is before it there.

    The second is how many quotes there are in all literals.
    """
    found = [_unescaped(np.frombuffer(literal, np.uint8)) for literal in literals]
    counts = np.cumsum([len(quotes) for quotes in found])
    anchors = [(int(counts[at - 1]), int(found[at][0])) for at in range(1, len(found) - 1)]
    return anchors, int(counts[-1])


def _quotes(memory: Memory, total: int) -> tuple[Rows, Places]:
    """Return the texts with ``total`` quotes, and where those are."""
    data, ends = memory
    count = len(ends) - 1
    quotes = _unescaped(data[ends[0] : ends[-1]])
    quotes += ends[0]
    if len(quotes) == count * total and count and total:
        each = quotes.reshape(count, total)
        if (each[:, 0] >= ends[:-1]).all() and (each[:, -1] < ends[1:]).all():
            return np.ones(count, np.bool_), each
    where = np.searchsorted(quotes, ends)
    rows = np.diff(where) == total
    return rows, quotes[where[:-1][rows, None] + np.arange(total)]


def _unescaped(data: NDArray[np.uint8]) -> Places:
    """Return where there are quotes that no backslash escapes."""
    quotes = np.flatnonzero(data == _QUOTE)
    if not len(quotes) or not (data == _BACKSLASH).any():
        return quotes
    after = (quotes > 0) & (data[quotes - 1] == _BACKSLASH)
    after[after] = data[np.maximum(quotes[after] - 2, 0)] != _BACKSLASH
    kept: Places = quotes[~after]
    return kept


def cut(memory: Memory, begin: Places, end: Places) -> pa.Array:
    """Return the strings from ``begin`` to ``end``, which are in order."""
    pieces = _pieces(memory.data, begin, end, pa.string())
    return pieces.take(pa.array(np.arange(0, len(pieces), 2)))


def _pieces(data: NDArray[np.uint8], begin: Places, end: Places, kind: pa.DataType) -> pa.Array:
    """Return what is from ``begin`` to ``end`` as every other value, without copying it."""
    count = len(begin)
    ends = np.empty(2 * count + 1, np.int32)
    ends[0 : 2 * count : 2] = begin
    ends[1 : 2 * count : 2] = end
    ends[2 * count] = end[-1] if count else 0
    return pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(ends), pa.py_buffer(data)])
