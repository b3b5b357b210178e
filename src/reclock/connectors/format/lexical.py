"""Recognises texts that JSON writes: numbers, and the insides of strings.

Everything is computed from the bytes of the whole column. ``Texts`` is such a column;
positions in it are those of its bytes.

Tests: tests/connectors/format/test_lexical.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.bool_]

_NUMBER: Final = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"
_BARE: Final = rf"^(?:true|false)$|{_NUMBER}"
_STRING: Final = r'^(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*$'
_SURROGATE: Final = r"\\u[dD][89a-fA-F]"
_ZERO, _MINUS, _DOT, _QUOTE, _BACKSLASH, _BLANK = b'0-."\\ '


class Texts(NamedTuple):
    """A column of strings without NULLs, and its bytes."""

    column: pa.Array
    data: NDArray[np.uint8]
    ends: NDArray[np.int32]

    @classmethod
    def of(cls, column: pa.Array) -> Texts:
        """Return the bytes of a column that is no slice."""
        _, ends, data = column.buffers()
        places = np.frombuffer(ends, np.int32)[: len(column) + 1]
        return cls(column, np.frombuffer(data, np.uint8)[: places[-1]], places)

    @property
    def sizes(self) -> NDArray[np.int32]:
        """How many bytes each text has."""
        return np.diff(self.ends)

    def rows_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which text each of the bytes at ``places``, in order, is in."""
        if len(places) == len(self.column) and bool(
            ((places >= self.ends[:-1]) & (places < self.ends[1:])).all()
        ):
            return np.arange(len(places))  # one in each
        return np.searchsorted(self.ends, places, "right") - 1

    def rows_with(self, odd: Rows) -> Rows:
        """Return the texts that have one of the ``odd`` bytes."""
        found = np.zeros(len(self.column), np.bool_)
        found[self.rows_of(np.flatnonzero(odd))] = True
        return found


def unescaped(texts: Texts) -> tuple[Texts, Rows | None]:
    """Return the insides of JSON strings as what they stand for, and which are right.

    None if all are. Half a surrogate pair is not right, and neither is a whole one, because
    polars cannot tell.
    """
    data = texts.data
    odd = data < _BLANK
    odd |= data == _QUOTE
    odd |= data == _BACKSLASH
    if not odd.any():
        return texts, None
    escaped = texts.rows_with(odd)
    rows = ~escaped
    written = pl.Series(texts.column.filter(pa.array(escaped)))
    right = written.str.contains(_STRING) & ~written.str.contains(_SURROGATE)
    rows[escaped] = np.asarray(right)
    kept = written.filter(right)
    if not len(kept):
        return texts, rows
    lines = ('{"":"' + kept + '"}').str.join("\n").item()
    values = pl.read_ndjson(lines.encode(), schema={"": pl.String}).to_series()
    made = pc.replace_with_mask(
        texts.column, pa.array(rows & escaped), values.to_arrow().cast(pa.string())
    )
    return Texts.of(made), rows


def integers(texts: Texts) -> Rows:
    """Return the texts that are JSON numbers without fraction and exponent."""
    return _whole(texts, _digits(texts.data))


def decimals(texts: Texts) -> tuple[Rows, NDArray[np.int64], pa.Array]:
    """Return which texts are JSON numbers without exponent, as digits without the point.

    The second is how many digits were behind the point, the third the digits. Where the
    first is False neither means anything.
    """
    data, ends = texts.data, texts.ends
    dots = np.flatnonzero(data == _DOT)
    rows = texts.rows_of(dots)
    behind = np.zeros(len(texts.column), np.int64)
    behind[rows] = ends[rows + 1] - dots - 1
    number = _digits(data)
    number[dots] = True
    good = _whole(texts, number)
    # One point, with a digit on either side.
    good[rows] &= behind[rows] > 0
    good[rows[1:][rows[1:] == rows[:-1]]] = False
    before = dots - 1
    good[rows] &= (before >= ends[rows]) & (data[before] >= _ZERO)
    moved = ends.copy()
    moved[1:] -= np.cumsum(np.bincount(rows, minlength=len(behind)), dtype=np.int32)
    joined = data[data != _DOT]
    buffers = [None, pa.py_buffer(moved), pa.py_buffer(joined)]
    return good, behind, pa.Array.from_buffers(pa.string(), len(texts.column), buffers)


def numbers(texts: Texts) -> Rows:
    """Return the texts that are JSON numbers."""
    return np.asarray(pl.Series(texts.column).str.contains(_NUMBER))


def bare(texts: Texts) -> Rows:
    """Return the texts that are JSON numbers, true or false."""
    return np.asarray(pl.Series(texts.column).str.contains(_BARE))


def _digits(data: NDArray[np.uint8]) -> Rows:
    return (data - np.uint8(_ZERO)) < 10  # others wrap around to more


def _whole(texts: Texts, digits: Rows) -> Rows:
    """Return the texts of ``digits`` alone, after a minus perhaps, without needless zeros."""
    data, ends = texts.data, texts.ends
    sizes = texts.sizes
    good = sizes > 0
    first = ends[:-1][good]
    minus = np.zeros(len(sizes), np.bool_)
    minus[good] = data[first] == _MINUS
    allowed = digits.copy()
    allowed[ends[:-1][minus]] = True
    if not allowed.all():
        good &= ~texts.rows_with(~allowed)
    start = ends[:-1] + minus
    size = sizes - minus
    good &= size > 0
    zero = np.zeros(len(sizes), np.bool_)
    zero[good] = data[start[good]] == _ZERO
    longer = good & zero & (size > 1)
    longer[longer] = data[start[longer] + 1] != _DOT
    return good & ~longer
