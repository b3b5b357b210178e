"""avg(x): the exact sum divided by the count, rounded once.

Integers and decimals give a numeric whose scale the caller chooses (``result``), not below
that of the column; the exact quotient is rounded half away from zero, as PostgreSQL and
Spark round. Batch Spark gives the same digits by ``avg(CAST(x AS DECIMAL(38, r − 4)))``,
whose result is ``DECIMAL(38, r)``: ``average_type`` returns the smallest such type of at
least 16 digits after the point.

Floats give the double nearest to the exact mean; a value that is not finite counts as in
``total``. NULL if no value is there.

Tests: tests/dataflow/test_reduce.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.dataflow.operators.accumulate.aggregate import Answer, present
from reclock.dataflow.operators.accumulate.exact import nearest
from reclock.dataflow.operators.accumulate.term import Count, What, Whole
from reclock.dataflow.operators.accumulate.total import (
    DIGITS,
    float_terms,
    whole_answer,
    with_others,
)
from reclock.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.dataflow.operators.accumulate.exact import Exact
    from reclock.dataflow.operators.accumulate.term import Term

LEAST_SCALE: Final = 16
ADDED_SCALE: Final = 4


@dataclass(frozen=True)
class WholeAverage:
    """The mean of an integer or decimal column of ``kind``, as the decimal ``result``."""

    column: int
    kind: pa.DataType
    result: pa.DataType
    filter: int | None = None

    def __post_init__(self) -> None:
        """Refuse a result that is coarser than the values."""
        if self.result.scale < scale_of(self.kind):
            message = f"an average of {self.kind} cannot be {self.result}"
            raise InvalidValue(message)

    @property
    def terms(self) -> tuple[Term, ...]:
        """How many values, and their sum."""
        return (
            Count(What.PRESENT, self.column, self.filter),
            Whole(self.column, self.kind, 1, self.filter),
        )

    @property
    def type(self) -> pa.DataType:
        """Numeric."""
        return self.result

    def read(self, totals: Sequence[Exact]) -> Answer:
        """Return the means, NULL where there is no value."""
        valid = present(totals[0])
        count = np.where(valid, totals[0].units, 1).astype(object)
        total = totals[1].units.astype(object) * 10 ** (self.result.scale - scale_of(self.kind))
        size = (2 * np.abs(total) + count) // (2 * count)
        return whole_answer(np.where(total < 0, -size, size), self.result, valid)


@dataclass(frozen=True)
class FloatAverage:
    """The mean of a column of reals or doubles."""

    column: int
    filter: int | None = None

    @property
    def terms(self) -> tuple[Term, ...]:
        """Those of the sum."""
        return float_terms(self.column, self.filter)

    @property
    def type(self) -> pa.DataType:
        """Double precision."""
        return pa.float64()

    def read(self, totals: Sequence[Exact]) -> Answer:
        """Return the means, NULL where there is no value."""
        count, total, *others = totals
        valid = present(count)
        counts = np.where(valid, count.units, 1).tolist()
        pairs = zip(total.units.tolist(), counts, strict=True)
        means = np.array([nearest(unit, total.exponent, n) for unit, n in pairs], np.float64)
        return Answer(pa.array(with_others(means, others), mask=~valid))


def average_of(
    column: int, kind: pa.DataType, filter_: int | None = None, result: pa.DataType | None = None
) -> WholeAverage | FloatAverage:
    """Return the mean of a column of this type."""
    if pa.types.is_floating(kind):
        return FloatAverage(column, filter_)
    return WholeAverage(column, kind, result or average_type(kind), filter_)


def average_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the mean of integers or decimals, by default.

    >>> average_type(pa.int32()), average_type(pa.decimal128(30, 20))
    (Decimal128Type(decimal128(38, 16)), Decimal128Type(decimal128(38, 24)))
    """
    return pa.decimal128(DIGITS, min(max(scale_of(kind) + ADDED_SCALE, LEAST_SCALE), DIGITS))


def scale_of(kind: pa.DataType) -> int:
    """Return the digits after the point."""
    return int(kind.scale) if pa.types.is_decimal(kind) else 0
