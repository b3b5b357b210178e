"""sum(x), exact: PostgreSQL's result types, and floats without a trace of what is gone.

    smallint, integer → bigint      numeric(p, s) → numeric(38, s)
    bigint → numeric(38, 0)         real → real, double precision → double precision

NULL if no value is there. A sum of integers or decimals that the type cannot hold fails
(22003). A sum of floats is the double nearest to the exact sum of the finite values (then
rounded to real, for reals), infinity where that is beyond the largest double; with values
that are not finite it is what IEEE addition gives in any order: NaN if there is a NaN or
infinities of both signs, else the infinity.

Tests: tests/dataflow/test_reduce.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reclock.dataflow.operators.accumulate.aggregate import Answer, present
from reclock.dataflow.operators.accumulate.exact import decimal_array, to_floats
from reclock.dataflow.operators.accumulate.term import Count, Dyadic, What, Whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from reclock.dataflow.operators.accumulate.aggregate import Mask
    from reclock.dataflow.operators.accumulate.exact import Exact
    from reclock.dataflow.operators.accumulate.term import Term

DIGITS: Final = 38


@dataclass(frozen=True)
class WholeSum:
    """The sum of an integer or decimal column of ``kind``."""

    column: int
    kind: pa.DataType
    filter: int | None = None

    @property
    def terms(self) -> tuple[Term, ...]:
        """How many values, and their sum."""
        return (
            Count(What.PRESENT, self.column, self.filter),
            Whole(self.column, self.kind, 1, self.filter),
        )

    @property
    def type(self) -> pa.DataType:
        """Bigint for the short integers, else numeric."""
        if pa.types.is_decimal(self.kind):
            return pa.decimal128(DIGITS, self.kind.scale)
        return pa.decimal128(DIGITS, 0) if self.kind.bit_width == 64 else pa.int64()

    def read(self, totals: Sequence[Exact]) -> Answer:
        """Return the sums, NULL where there is no value."""
        count, total = totals
        return whole_answer(total.units, self.type, present(count))


@dataclass(frozen=True)
class FloatSum:
    """The sum of a column of reals or doubles."""

    column: int
    kind: pa.DataType
    filter: int | None = None

    @property
    def terms(self) -> tuple[Term, ...]:
        """How many values, the sum of the finite ones, and how many of the others."""
        return float_terms(self.column, self.filter)

    @property
    def type(self) -> pa.DataType:
        """The type of the column."""
        return self.kind

    def read(self, totals: Sequence[Exact]) -> Answer:
        """Return the sums, NULL where there is no value."""
        count, total, *others = totals
        made = with_others(to_floats(total), others)
        with np.errstate(over="ignore", under="ignore"):
            return Answer(pa.array(made.astype(self.kind.to_pandas_dtype()), mask=~present(count)))


def sum_of(column: int, kind: pa.DataType, filter_: int | None = None) -> WholeSum | FloatSum:
    """Return the sum of a column of this type."""
    if pa.types.is_floating(kind):
        return FloatSum(column, kind, filter_)
    return WholeSum(column, kind, filter_)


def float_terms(column: int, filter_: int | None) -> tuple[Term, ...]:
    """Return the terms of a sum of floats: count, finite sum, NaN, +inf, −inf."""
    return (
        Count(What.PRESENT, column, filter_),
        Dyadic(column, 1, filter_),
        Count(What.NAN, column, filter_),
        Count(What.POSITIVE_INFINITY, column, filter_),
        Count(What.NEGATIVE_INFINITY, column, filter_),
    )


def with_others(
    finite: npt.NDArray[np.float64], others: Sequence[Exact]
) -> npt.NDArray[np.float64]:
    """Return the sums with the counted NaN, +inf and −inf added."""
    nan, up, down = (present(count) for count in others)
    made = np.where(up, np.inf, np.where(down, -np.inf, finite))
    made[nan | (up & down)] = np.nan
    return made


def whole_answer(units: npt.NDArray[Any], kind: pa.DataType, valid: Mask) -> Answer:
    """Return integers as bigint or numeric; those that it cannot hold have failed."""
    decimal = pa.types.is_decimal(kind)
    limit = 10**DIGITS if decimal else 1 << 63
    failed: Mask | None = None
    if units.dtype == object:
        failed = ((units >= limit) | (units <= -limit if decimal else units < -limit)).astype(
            np.bool_
        )
        units = np.where(failed, 0, units)
        if not failed.any():
            failed = None
    if decimal:
        return Answer(decimal_array(units, kind, valid), failed)
    return Answer(pa.array(units.astype(np.int64), mask=~valid), failed)
