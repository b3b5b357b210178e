"""Terms: what is summed over the rows of a group, and how the sums are stored.

Definition. A term maps a row to an exact number and a group to Σ diff · number over its
rows. Three kinds::

    Count    1 for each row that qualifies     int64
    Whole    an integer or unscaled decimal,   decimal128(38, 0), or binary if a sum of
             or its square                     2⁶³ of them could be longer
    Dyadic   a finite float, or its square     binary

A row qualifies if the term's filter column is true, and its own column is not NULL. Binary
is: the exponent (int16, little-endian), then the integer (two's complement, of the fewest
bytes) made odd by the exponent; so equal numbers are equal bytes.

Dyadic. A double is an integer below 2⁵³ times a power of two. Integers of neighbouring
exponents (8 at a time) are added as int64 in two halves, per group; only those sums, a few
per group, become Python integers. The square of a double is three such products.

Terms are values: two aggregates that need the same term share it.

Tests: tests/dataflow/accumulate/test_term.py.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa

from reclock.arrangement.column import validity
from reclock.arrangement.layout import int64s
from reclock.dataflow.delta import out_of_range
from reclock.dataflow.operators.accumulate.exact import (
    LIMIT,
    Exact,
    decimal_array,
    decimal_units,
    magnitude,
    segment_sums,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from reclock.arrangement.layout import Int64s

    Mask = npt.NDArray[np.bool_]

TOTAL: Final = pa.decimal128(38, 0)
_EXPONENT: Final = struct.Struct("<h")
_COUNT_DIGITS: Final = 19
_BIN: Final = 8


class Term(Protocol):
    """A sum of exact numbers over the rows of a group."""

    @property
    def column(self) -> int | None:
        """The column that is summed or looked at."""
        ...

    @property
    def filter(self) -> int | None:
        """The boolean column that must be true."""
        ...

    @property
    def storage(self) -> pa.DataType:
        """The Arrow type of a stored total."""
        ...

    def sums(self, rows: Sequence[pa.Array], diff: Int64s, starts: Int64s) -> Exact:
        """Return the sum of each segment of consecutive rows."""
        ...

    def load(self, column: pa.Array) -> Exact:
        """Read totals back."""
        ...

    def store(self, totals: Exact) -> pa.Array:
        """Return totals as they are stored."""
        ...


class What(StrEnum):
    """Which rows a ``Count`` counts, by the value of its column."""

    ROWS = "rows"
    PRESENT = "present"
    TRUE = "true"
    NAN = "nan"
    POSITIVE_INFINITY = "+inf"
    NEGATIVE_INFINITY = "-inf"


@dataclass(frozen=True)
class Count:
    """How many rows qualify."""

    what: What = What.ROWS
    column: int | None = None
    filter: int | None = None

    @property
    def storage(self) -> pa.DataType:
        """Counts are int64."""
        return pa.int64()

    def sums(self, rows: Sequence[pa.Array], diff: Int64s, starts: Int64s) -> Exact:
        """Add up the diffs of the rows that qualify."""
        weights = _weights(rows, diff, self.column, self.filter)
        if self.column is not None and self.what is not What.PRESENT:
            weights = np.where(self._holds(rows[self.column]), weights, 0)
        return Exact(segment_sums(np.ones(len(weights), np.int64), weights, starts))

    def _holds(self, column: pa.Array) -> Mask:
        made: Mask
        if self.what is What.TRUE:
            made = column.fill_null(False).to_numpy(zero_copy_only=False)
            return made
        numbers = column.to_numpy(zero_copy_only=False)
        if self.what is What.NAN:
            made = np.isnan(numbers)
        else:
            made = numbers == (np.inf if self.what is What.POSITIVE_INFINITY else -np.inf)
        return made

    def load(self, column: pa.Array) -> Exact:
        """Return the stored counts."""
        return Exact(int64s(column))

    def store(self, totals: Exact) -> pa.Array:
        """Return the counts; one that int64 cannot hold is an error."""
        if totals.units.dtype == object:
            if any(not -LIMIT * 2 <= unit < LIMIT * 2 for unit in totals.units):
                raise out_of_range()
            return pa.array(totals.units.astype(np.int64))
        return pa.array(totals.units)


@dataclass(frozen=True)
class Whole:
    """The sum of an integer or decimal column of ``kind``, in units of its last digit."""

    column: int
    kind: pa.DataType
    power: int = 1
    filter: int | None = None

    @property
    def storage(self) -> pa.DataType:
        """The type that holds the sum of as many values as there can be."""
        digits = self.kind.precision if pa.types.is_decimal(self.kind) else _COUNT_DIGITS
        # 2⁶³ values of 64 bits are 126 bits, which have 38 digits.
        return TOTAL if digits * self.power <= 38 - _COUNT_DIGITS else pa.binary()

    def sums(self, rows: Sequence[pa.Array], diff: Int64s, starts: Int64s) -> Exact:
        """Add up the integers."""
        values = self._integers(rows[self.column])
        if self.power == 2:
            if magnitude(values) >= 1 << 31:
                values = values.astype(object)
            values = values * values
        weights = _weights(rows, diff, self.column, self.filter)
        return Exact(segment_sums(values, weights, starts))

    def _integers(self, column: pa.Array) -> npt.NDArray[Any]:
        if pa.types.is_decimal(self.kind):
            return decimal_units(column)
        numbers = column if column.type == pa.int64() else column.cast(pa.int64())
        made: Int64s = numbers.fill_null(0).to_numpy()
        return made

    def load(self, column: pa.Array) -> Exact:
        """Return the stored sums."""
        if self.storage != TOTAL:
            return _unpack(column).scaled(0)
        return Exact(decimal_units(column))

    def store(self, totals: Exact) -> pa.Array:
        """Return the sums."""
        return _pack(totals) if self.storage != TOTAL else decimal_array(totals.units, TOTAL)


@dataclass(frozen=True)
class Dyadic:
    """The exact sum of the finite values of a column of floats, or of their squares."""

    column: int
    power: int = 1
    filter: int | None = None

    @property
    def storage(self) -> pa.DataType:
        """Exponent and integer."""
        return pa.binary()

    def sums(self, rows: Sequence[pa.Array], diff: Int64s, starts: Int64s) -> Exact:
        """Add up the floats, exactly."""
        column = rows[self.column]
        values = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
        finite = np.isfinite(values)
        weights = np.where(finite, _weights(rows, diff, self.column, self.filter), 0)
        # Rows that weigh nothing must not stretch the range of exponents.
        fraction, exponent = np.frexp(np.where(finite & (weights != 0), values, 0.0))
        units = (fraction * 2.0**53).astype(np.int64)
        exponents = exponent.astype(np.int64) - 53
        if self.power == 1:
            return _dyadic_sums(units, exponents, weights, starts)
        high, low = units >> 27, units & ((1 << 27) - 1)
        parts = ((high * high, 54), (2 * high * low, 27), (low * low, 0))
        total = Exact(np.zeros(len(starts), np.int64))
        for product, shift in parts:
            total += _dyadic_sums(product, 2 * exponents + shift, weights, starts)
        return total

    def load(self, column: pa.Array) -> Exact:
        """Return the stored sums."""
        return _unpack(column)

    def store(self, totals: Exact) -> pa.Array:
        """Return the sums."""
        return _pack(totals)


def _weights(
    rows: Sequence[pa.Array], diff: Int64s, column: int | None, filter_: int | None
) -> Int64s:
    """Return the diffs of the rows that qualify, 0 for the others."""
    if filter_ is not None:
        keep = rows[filter_].fill_null(False).to_numpy(zero_copy_only=False)
        diff = np.where(keep, diff, 0)
    valid = None if column is None else validity(rows[column])
    return diff if valid is None else np.where(valid, diff, 0)


def _dyadic_sums(units: Int64s, exponents: Int64s, weights: Int64s, starts: Int64s) -> Exact:
    """Return the sums of ``units · 2^exponents · weights``; units are below 2⁵⁴."""
    some = np.flatnonzero((units != 0) & (weights != 0))
    if not some.size:
        return Exact(np.zeros(len(starts), np.int64))
    segment = np.zeros(len(units), np.int64)
    segment[starts[1:]] = 1
    segment = np.cumsum(segment)[some]
    units, exponents, weights = units[some], exponents[some], weights[some]
    made: npt.NDArray[Any]
    odd, odd_exponents = _stripped(units, exponents)
    least = int(odd_exponents.min())
    shift = np.minimum(odd_exponents - least, 64)
    bound = np.ldexp(np.abs(odd * weights.astype(np.float64)), shift)
    if float(bound.sum()) < LIMIT:
        made = np.zeros(len(starts), np.int64)
        np.add.at(made, segment, (odd << shift) * weights)
        return Exact(made, least)
    least = int(exponents.min())
    bins, shift = np.divmod(exponents - least, _BIN)
    places = int(bins.max()) + 1
    place = segment * places + bins
    order = np.argsort(place, kind="stable")
    place = place[order]
    begin = np.flatnonzero(np.append(True, place[1:] != place[:-1]))
    partial = segment_sums((units << shift)[order], weights[order], begin)
    wide = partial.astype(object) << (_BIN * (place[begin] % places)).astype(object)
    owner = place[begin] // places
    first = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
    made = np.zeros(len(starts), object)
    made[owner[first]] = np.add.reduceat(wide, first)
    return Exact(made, least)


def _stripped(units: Int64s, exponents: Int64s) -> tuple[Int64s, Int64s]:
    """Return the same numbers, not zero, with odd units: short ones need few bits."""
    lowest = (units & -units).astype(np.float64)
    zeros = np.frexp(lowest)[1].astype(np.int64) - 1
    return units >> zeros, exponents + zeros


def _pack(totals: Exact) -> pa.Array:
    exponent = totals.exponent
    packed = []
    for unit in totals.units.tolist():
        zeros = (unit & -unit).bit_length() - 1 if unit else -exponent
        odd = unit >> zeros if unit else 0
        size = odd.bit_length() // 8 + 1
        packed.append(_EXPONENT.pack(exponent + zeros) + odd.to_bytes(size, "little", signed=True))
    return pa.array(packed, pa.binary())


def _unpack(column: pa.Array) -> Exact:
    values = column.to_pylist()
    exponents = [_EXPONENT.unpack_from(value)[0] for value in values]
    units = [int.from_bytes(value[2:], "little", signed=True) for value in values]
    least = min((e for e, unit in zip(exponents, units, strict=True) if unit), default=0)
    wide = [unit << (e - least) if unit else 0 for unit, e in zip(units, exponents, strict=True)]
    fits = all(-LIMIT < unit < LIMIT for unit in wide)
    return Exact(np.array(wide, np.int64 if fits else object), least)
