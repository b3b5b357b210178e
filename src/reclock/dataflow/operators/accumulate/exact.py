"""Arrays of exact numbers: integers, times one power of two.

Definition. ``Exact(units, exponent)`` is the array of numbers ``units · 2^exponent``. The
units are int64 as long as everything that is computed fits, and Python's integers (dtype
object) beyond; numpy's operators work on both, so each formula is written once. Whether it
fits is decided before computing, by the magnitudes: nothing wraps.

Cost: numpy's while it fits, that of Python's integers otherwise, per group and not per row
(``segment_sums`` works on halves of the numbers, which fit).

Tests: tests/dataflow/accumulate/test_exact.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reclock.dataflow.grouping import running

if TYPE_CHECKING:
    import numpy.typing as npt

    from reclock.arrangement.layout import Int64s

    Units = npt.NDArray[Any]

LIMIT: Final = 1 << 62
"""Magnitudes below it can be added once more without leaving int64."""


@dataclass(frozen=True)
class Exact:
    """The numbers ``units · 2^exponent``.

    >>> a = Exact(np.array([3, -5]), -1)
    >>> (a + Exact(np.array([1, 1]), 2)).units.tolist()
    [11, 3]
    """

    units: Units
    exponent: int = 0

    def __len__(self) -> int:
        return len(self.units)

    def __add__(self, other: Exact) -> Exact:
        a, b = aligned(self, other)
        units, more = a.units, b.units
        if magnitude(units) + magnitude(more) >= LIMIT:
            units, more = units.astype(object), more.astype(object)
        return Exact(units + more, a.exponent)

    def __sub__(self, other: Exact) -> Exact:
        return self + Exact(-other.units, other.exponent)

    def take(self, index: Int64s | slice) -> Exact:
        """Return the numbers at these places."""
        return Exact(self.units[index], self.exponent)

    def scaled(self, exponent: int) -> Exact:
        """Return the same numbers with an exponent that is not larger."""
        shift = self.exponent - exponent
        if shift == 0:
            return self
        units = self.units
        if magnitude(units) >= LIMIT >> min(shift, 64):
            units = units.astype(object)
        return Exact(units << shift, exponent)

    def is_zero(self) -> npt.NDArray[np.bool_]:
        """Return which numbers are zero."""
        zero: npt.NDArray[np.bool_] = (self.units == 0).astype(np.bool_)
        return zero


def aligned(a: Exact, b: Exact) -> tuple[Exact, Exact]:
    """Return both with the smaller exponent."""
    exponent = min(a.exponent, b.exponent)
    return a.scaled(exponent), b.scaled(exponent)


def joined(a: Exact, b: Exact) -> Exact:
    """Return the numbers of ``a``, then those of ``b``."""
    a, b = aligned(a, b)
    return Exact(np.concatenate((a.units, b.units)), a.exponent)


def magnitude(units: Units) -> int:
    """Return the largest absolute value; ``LIMIT`` stands for all that do not fit."""
    if units.dtype == object:
        return LIMIT
    return max(int(units.max()), -int(units.min())) if len(units) else 0


def segment_sums(values: Units, weights: Int64s, starts: Int64s) -> Units:
    """Return per segment the exact sum of ``values · weights``.

    >>> segment_sums(np.array([1 << 40, 1 << 40]), np.array([1 << 40, 1]), np.array([0])).tolist()
    [1208925819615728686333952]
    """
    if len(starts) == 0:
        return np.empty(0, np.int64)
    weight = int(np.abs(weights.astype(np.float64)).sum()) + 1
    if magnitude(values) * weight < LIMIT:
        return np.add.reduceat(values * weights, starts)
    if values.dtype != object and weight < 1 << 30:
        # Both halves fit: add them up apart, and put the few sums together in Python.
        high = np.add.reduceat((values >> 32) * weights, starts)
        low = np.add.reduceat((values & 0xFFFFFFFF) * weights, starts)
        return (high.astype(object) << 32) + low
    return np.add.reduceat(values.astype(object) * weights.astype(object), starts)


def running_totals(sums: Exact, starts: Int64s, base: Exact) -> Exact:
    """Return per segment the total after it: ``base`` of its group, and the sums so far."""
    a, b = aligned(sums, base)
    units, before = a.units, b.units
    if magnitude(units) * max(1, len(units)) + magnitude(before) >= LIMIT >> 1:
        units, before = units.astype(object), before.astype(object)
    return Exact(running(units, starts, before), a.exponent)


def to_bytes(units: Units, width: int) -> pa.Buffer:
    """Return the numbers as little-endian two's complement of ``width`` (8 or more) bytes."""
    if units.dtype == object:
        return pa.py_buffer(
            b"".join([u.to_bytes(width, "little", signed=True) for u in units.tolist()])
        )
    words = np.empty((len(units), width // 8), np.int64)
    words[:, 0] = units
    words[:, 1:] = (units >> 63)[:, None]
    return pa.py_buffer(words)


def decimal_units(column: pa.Array) -> Units:
    """Return the unscaled integers of a decimal128 column, 0 for NULL."""
    size = len(column)
    data = column.buffers()[1]
    if size == 0 or data is None:
        return np.zeros(size, np.int64)
    words = np.frombuffer(data, np.int64, 2 * size, column.offset * 16).reshape(size, 2)
    low, high = words[:, 0], words[:, 1]
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        low, high = np.where(valid, low, 0), np.where(valid, high, 0)
    if (high == low >> 63).all():
        return np.ascontiguousarray(low)
    made: Units = (high.astype(object) << 64) + low.view(np.uint64).astype(object)
    return made


def decimal_array(
    units: Units, kind: pa.DataType, valid: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """Return decimal128 values with these unscaled integers, which must fit."""
    bitmap = None
    if valid is not None and not valid.all():
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(units), [bitmap, to_bytes(units, 16)])


def to_floats(numbers: Exact) -> npt.NDArray[np.float64]:
    """Return the nearest doubles, ties to even; beyond the largest one, infinity.

    >>> to_floats(Exact(np.array([3, 1 << 54, (1 << 54) + 3]), -1)).tolist()
    [1.5, 9007199254740992.0, 9007199254740994.0]
    """
    units, exponent = numbers.units, numbers.exponent
    try:
        rounded = units.astype(np.float64)
    except OverflowError:
        return np.array([nearest(unit, exponent) for unit in units.tolist()], np.float64)
    with np.errstate(over="ignore", under="ignore"):
        made = np.ldexp(rounded, exponent)
    # Rounded twice, or not at all: where the result is not a normal number.
    size = np.abs(made)
    doubtful = ((size < 2.0**-1021) & (rounded != 0)) | ~np.isfinite(made)
    for i in np.flatnonzero(doubtful).tolist():
        made[i] = nearest(int(units[i]), exponent)
    return made


def nearest(unit: int, exponent: int, divisor: int = 1) -> float:
    """Return the double nearest to ``unit · 2^exponent / divisor``.

    >>> nearest(1, -1074), nearest(1, -1076), nearest(-1, 1024), nearest(1, 0, 3)
    (5e-324, 0.0, -inf, 0.3333333333333333)
    """
    if exponent > 0:
        unit <<= exponent
    else:
        divisor <<= -exponent
    try:
        return unit / divisor  # Python's division of integers is correctly rounded
    except OverflowError:
        return math.inf if unit > 0 else -math.inf
