"""Variances and standard deviations, from exact sums of x and x².

With n values, S their sum and Q that of their squares, all exact::

    var_pop = (n·Q − S²) / n²        var_samp = (n·Q − S²) / (n·(n − 1))

The numerator is an exact integer (times a power of two or ten), never negative, so nothing
cancels; the result is the nearest double, and for standard deviations its square root, off
by at most the last digit. NULL if no value is there; the sample ones also for one value.
A value that is not finite makes the result NaN; a variance beyond the largest double is
infinity.

Tests: tests/dataflow/test_reduce.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reclock.dataflow.operators.accumulate.aggregate import Answer, present
from reclock.dataflow.operators.accumulate.average import scale_of
from reclock.dataflow.operators.accumulate.exact import nearest
from reclock.dataflow.operators.accumulate.term import Count, Dyadic, What, Whole
from reclock.dataflow.operators.accumulate.total import float_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.dataflow.operators.accumulate.exact import Exact
    from reclock.dataflow.operators.accumulate.term import Term


@dataclass(frozen=True)
class Variance:
    """The variance of a column of ``kind``: of a ``sample`` or population, or its ``root``."""

    column: int
    kind: pa.DataType
    sample: bool = True
    root: bool = False
    filter: int | None = None

    @property
    def terms(self) -> tuple[Term, ...]:
        """How many values, their sum and that of their squares; for floats, the others."""
        if pa.types.is_floating(self.kind):
            count, total, *others = float_terms(self.column, self.filter)
            return (count, total, Dyadic(self.column, 2, self.filter), *others)
        return (
            Count(What.PRESENT, self.column, self.filter),
            Whole(self.column, self.kind, 1, self.filter),
            Whole(self.column, self.kind, 2, self.filter),
        )

    @property
    def type(self) -> pa.DataType:
        """Double precision."""
        return pa.float64()

    def read(self, totals: Sequence[Exact]) -> Answer:
        """Return the variances, NULL where there are too few values."""
        count, total, squares, *others = totals
        need = 1 if self.sample else 0
        valid = (count.units > need).astype(np.bool_)
        exponent = min(2 * total.exponent, squares.exponent)
        up, up_squares = 2 * total.exponent - exponent, squares.exponent - exponent
        divisor = 10 ** (2 * scale_of(self.kind))
        result = root if self.root else nearest
        columns = (x.units.tolist() for x in (count, total, squares))
        made = np.array(
            [
                result(n * (q << up_squares) - (s * s << up), exponent, divisor * n * (n - need))
                if n > need
                else 0.0
                for n, s, q in zip(*columns, strict=True)
            ],
            np.float64,
        )
        for counted in others:
            made[present(counted)] = np.nan
        return Answer(pa.array(made, mask=~valid))


def root(unit: int, exponent: int, divisor: int) -> float:
    """Return the square root of ``unit · 2^exponent / divisor``, which may be no double itself.

    >>> root(9, 0, 4), root(1, 2000, 1) == 2.0**1000
    (1.5, True)
    """
    half = (unit.bit_length() - divisor.bit_length() + exponent) // 2
    value = math.sqrt(nearest(unit, exponent - 2 * half, divisor))
    try:
        return math.ldexp(value, half)
    except OverflowError:
        return math.inf
