r"""Fits payloads to a template, and finds the contents of its holes, by their quotes.

Every literal between two holes has a quote, and no hole but a whole one may have one that is
not escaped; so the n-th quote of every payload that fits is the same one of the template,
and says where a literal is::

    {"id": 17, "name": "Zoë"}      quotes 0 … 5: , "name": " begins 2 before quote 2,
     ^  ^      ^    ^  ^   ^       and "} at quote 5

Payloads with another number of quotes do not fit; of the others every literal is compared.
What follows a whole hole is found by looking for the literal after it, and counted from
there; at the end of the payload that is the last one. A long first literal, such as a schema
that comes with every message, is compared and taken off before quotes are looked for.

A quote after one backslash is escaped, after two it is not. After more it may be taken for
the wrong one, and a literal may also be in a whole hole: then holes are found in the wrong
places, and what is in them is not right. By the definition in ``template`` that is all that
matters.

Cost: one pass over the bytes for quotes, and a few operations per literal and payload.

Tests: tests/connectors/format/test_template.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reclock.connectors.format.template import WHOLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reclock.connectors.format.template import Template

    Rows = NDArray[np.bool_]
    Places = NDArray[np.int64]
    Part = tuple[bytes, ...]

LONG: Final = 64
"""A first literal of more bytes is taken off."""

_QUOTE, _BACKSLASH = b'"\\'


class Memory(NamedTuple):
    """Texts as they lie in memory: text i is ``data[ends[i]:ends[i + 1]]``."""

    data: NDArray[np.uint8]
    ends: Places

    @classmethod
    def of(cls, texts: pa.Array) -> Memory:
        """Return the memory of strings, none of them NULL."""
        _, ends, data = texts.buffers()
        places = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        held = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
        return cls(held, places.astype(np.int64))

    def cut(self, begin: Places, end: Places) -> pa.Array:
        """Return the strings from ``begin`` to ``end``, which are in order."""
        pieces = _pieces(self.data, begin, end, pa.string())
        return pieces.take(pa.array(np.arange(0, len(pieces), 2)))


class Fit(NamedTuple):
    """The payloads that fit, and what is in each hole of those."""

    rows: Rows
    holes: list[pa.Array]

    def narrow(self, kept: Rows, rest: pa.Array) -> pa.Array:
        """Let go of the payloads that are not ``kept``; return what is kept of ``rest``."""
        if kept.all():
            return rest
        self.rows[self.rows] = kept
        mask = pa.array(kept)
        self.holes[:] = [hole.filter(mask) for hole in self.holes]
        return rest.filter(mask)


def fit(payloads: pa.Array, template: Template) -> Fit:
    """Return which strings fit, and their holes."""
    found = Fit(np.ones(len(payloads), np.bool_), [])
    first, *others = _parts(template)
    rest = _part(found, payloads, first, is_last=not others)
    for at, part in enumerate(others, 1):
        is_last = at == len(others)
        rest = _whole(found, rest, part[0], at_end=is_last and len(part) == 1)
        rest = _part(found, rest, part, is_last=is_last)
    return found


def _parts(template: Template) -> list[Part]:
    """Return the literals, parted where there are whole holes."""
    parts: list[list[bytes]] = [[template.literals[0]]]
    for hole, literal in zip(template.holes, template.literals[1:], strict=True):
        if hole.form == WHOLE:
            parts.append([literal])
        else:
            parts[-1].append(literal)
    return [tuple(part) for part in parts]


def _whole(found: Fit, rest: pa.Array, literal: bytes, *, at_end: bool) -> pa.Array:
    """Take the whole hole that ``rest`` begins with, up to ``literal``; return what follows."""
    if at_end:
        rest = found.narrow(np.asarray(pc.ends_with(rest, literal.decode())), rest)
        memory = Memory.of(rest)
        begin = memory.ends[1:] - len(literal)
    else:
        places = pl.Series(rest).str.find(literal.decode(), literal=True)
        kept = np.asarray(places.is_not_null())
        rest = found.narrow(kept, rest)
        memory = Memory.of(rest)
        begin = memory.ends[:-1] + np.asarray(places.drop_nulls(), np.int64)
    found.holes.append(memory.cut(memory.ends[:-1], begin))
    return memory.cut(begin, memory.ends[1:])


def _part(found: Fit, rest: pa.Array, part: Part, *, is_last: bool) -> pa.Array:
    """Take a part with its holes off the beginning of ``rest``; return what follows."""
    head, *others = part
    if len(head) > LONG:
        rest = found.narrow(np.asarray(pc.starts_with(rest, head.decode())), rest)
        memory = Memory.of(rest)
        rest = memory.cut(memory.ends[:-1] + len(head), memory.ends[1:])
        part = (b"", *others)
    memory = Memory.of(rest)
    rows, begins = _literals(memory, part, is_last)
    stops = [begin + len(literal) for begin, literal in zip(begins, part, strict=True)]
    found.narrow(rows, rest)
    found.holes.extend(map(memory.cut, stops[:-1], begins[1:]))
    return rest if is_last else memory.cut(stops[-1], memory.ends[1:][rows])


def _literals(memory: Memory, part: Part, is_last: bool) -> tuple[Rows, list[Places]]:
    """Return which texts begin with a part, and where its literals begin in those."""
    data, ends = memory
    quotes = [_unescaped(np.frombuffer(literal, np.uint8)) for literal in part]
    counts = np.cumsum([len(each) for each in quotes])
    rows, places = _quotes(memory, int(counts[-1]), is_last)
    first, last = ends[:-1][rows], ends[1:][rows]
    begins: list[Places] = [first]
    for at in range(1, len(part)):
        if is_last and at == len(part) - 1:
            begins.append(last - len(part[at]))
        else:
            begins.append(places[:, counts[at - 1]] - quotes[at][0])
    within = np.ones(len(first), np.bool_)
    edge = first
    for begin, literal in zip(begins, part, strict=True):
        within &= begin >= edge
        edge = begin + len(literal)
    within &= (edge == last) if is_last else (edge <= last)
    begins = _narrowed(rows, begins, within)
    fits = np.ones(len(begins[0]), np.bool_)
    for begin, literal in zip(begins, part, strict=True):
        found = _pieces(data, begin, begin + len(literal), pa.binary())
        fits &= np.asarray(pc.equal(found, pa.scalar(literal, pa.binary())))[::2]
    return rows, _narrowed(rows, begins, fits)


def _narrowed(rows: Rows, places: list[Places], kept: Rows) -> list[Places]:
    """Return the ``places`` of the ``kept`` ones of ``rows``, and let go of the other rows."""
    if kept.all():
        return places
    rows[rows] = kept
    return [place[kept] for place in places]


def _quotes(memory: Memory, total: int, is_all: bool) -> tuple[Rows, Places]:
    """Return the texts with ``total`` quotes, or more if that is not all, and where those are."""
    data, ends = memory
    count = len(ends) - 1
    quotes = _unescaped(data[ends[0] : ends[-1]])
    quotes += ends[0]
    if len(quotes) == count * total and count and total:
        each = quotes.reshape(count, total)
        if (each[:, 0] >= ends[:-1]).all() and (each[:, -1] < ends[1:]).all():
            return np.ones(count, np.bool_), each
    where = np.searchsorted(quotes, ends)
    counts = np.diff(where)
    rows = counts == total if is_all else counts >= total
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


def _pieces(data: NDArray[np.uint8], begin: Places, end: Places, kind: pa.DataType) -> pa.Array:
    """Return what is from ``begin`` to ``end`` as every other value, without copying it."""
    count = len(begin)
    ends = np.empty(2 * count + 1, np.int32)
    ends[0 : 2 * count : 2] = begin
    ends[1 : 2 * count : 2] = end
    ends[2 * count] = end[-1] if count else 0
    return pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(ends), pa.py_buffer(data)])
