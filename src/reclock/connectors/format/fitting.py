"""Which payloads fit a template, and where their holes are: all at once, by their quotes.

Every literal but the last has a quote, and no hole may have one; so the n-th quote of every
payload that fits is the same one of the template, and says where a literal is::

    {"id": 17, "name": "Zoë"}      quotes 0 … 5: {"id": ends 3 after quote 0,
     ^  ^      ^    ^  ^   ^       , "name": " begins 2 before quote 2, …

Payloads with another number of quotes do not fit; of the others every literal is compared,
eight bytes at a time. Cost: one pass over the bytes for quotes, and a few operations per
literal and payload.

Tests: tests/connectors/format/test_template.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reclock.connectors.format.template import Template

    Bytes = NDArray[np.uint8]
    Places = NDArray[np.int64]

_QUOTE = ord('"')


class Payloads(NamedTuple):
    """Payloads as they lie in memory: payload i is ``data[ends[i]:ends[i + 1]]``."""

    data: Bytes
    ends: NDArray[np.int32]

    @classmethod
    def of(cls, payloads: pa.Array) -> Payloads:
        """Return the memory of binary or string values, none of them NULL."""
        _, ends, data = payloads.buffers()
        offset, count = payloads.offset, len(payloads)
        places = np.frombuffer(ends, np.int32)[offset : offset + count + 1]
        return cls(np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8), places)


class Fit(NamedTuple):
    """The payloads that fit, and for every hole where it begins and ends in each of them."""

    rows: NDArray[np.bool_]
    holes: tuple[tuple[Places, Places], ...]


def fit(payloads: Payloads, template: Template) -> Fit:
    """Return which payloads fit, and their holes."""
    data, ends = payloads
    anchors, total = _anchors(template)
    rows, quotes = _quotes(payloads, total)
    first, last = ends[:-1][rows].astype(np.int64), ends[1:][rows].astype(np.int64)
    begins = [quotes[:, nth] - before for nth, before in anchors]
    begins.append(last - len(template.literals[-1]))
    within = begins[0] == first
    edge = first
    for begin, literal in zip(begins, template.literals, strict=True):
        within &= begin >= edge
        edge = begin + len(literal)
    begins = _narrowed(rows, begins, within)
    fits = np.ones(len(begins[0]), np.bool_)
    for begin, literal in zip(begins, template.literals, strict=True):
        fits &= _equal(data, begin, literal)
    begins = _narrowed(rows, begins, fits)
    stops = [b + len(literal) for b, literal in zip(begins, template.literals, strict=True)]
    return Fit(rows, tuple(zip(stops[:-1], begins[1:], strict=True)))


def _narrowed(
    rows: NDArray[np.bool_], places: list[Places], kept: NDArray[np.bool_]
) -> list[Places]:
    """Return the ``places`` of the ``kept`` ones of ``rows``, and let go of the other rows."""
    if kept.all():
        return places
    rows[rows] = kept
    return [place[kept] for place in places]


def _anchors(template: Template) -> tuple[list[tuple[int, int]], int]:
    """Return which quote each literal but the last is found by and what is before it there."""
    anchors = []
    count = 0
    for literal in template.literals[:-1]:
        anchors.append((count, literal.index(b'"')))
        count += literal.count(b'"')
    return anchors, count + template.literals[-1].count(b'"')


def _quotes(payloads: Payloads, total: int) -> tuple[NDArray[np.bool_], Places]:
    """Return the payloads with ``total`` quotes, and where those are."""
    data, ends = payloads
    count = len(ends) - 1
    quotes = np.flatnonzero(data[ends[0] : ends[-1]] == _QUOTE)
    quotes += ends[0]
    if len(quotes) == count * total:
        each = quotes.reshape(count, total)
        if (each[:, 0] >= ends[:-1]).all() and (each[:, -1] < ends[1:]).all():
            return np.ones(count, np.bool_), each
    where = np.searchsorted(quotes, ends)
    rows = np.diff(where) == total
    return rows, quotes[where[:-1][rows, None] + np.arange(total)]


def _equal(data: Bytes, begin: Places, literal: bytes) -> NDArray[np.bool_]:
    """Return where ``data`` has ``literal`` from ``begin`` on."""
    equal = np.ones(len(begin), np.bool_)
    if len(literal) < 8 or not len(begin):
        for at, byte in enumerate(literal):
            equal &= data[begin + at] == byte
        return equal
    words = np.ndarray((len(data) - 7,), "<u8", data.data, strides=(1,))
    for at in {*range(0, len(literal) - 7, 8), len(literal) - 8}:
        equal &= words[begin + at] == int.from_bytes(literal[at : at + 8], "little")
    return equal


def cut(payloads: Payloads, begin: Places, end: Places) -> pa.Array:
    """Return the texts from ``begin`` to ``end``, which are in order; the data is UTF-8."""
    count = len(begin)
    ends = np.empty(2 * count + 1, np.int32)
    ends[0 : 2 * count : 2] = begin
    ends[1 : 2 * count : 2] = end
    ends[2 * count] = end[-1] if count else 0
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(payloads.data)]
    pieces = pa.Array.from_buffers(pa.string(), 2 * count, buffers)
    return pieces.take(pa.array(np.arange(0, 2 * count, 2)))
