"""Expressions as trees of kernels: what is evaluated, and whose errors count.

AND, OR, CASE and COALESCE look at their operands from left to right until one decides; an error
of an operand counts in the rows that come as far. Every expression is evaluated once for a batch,
however often it stands in others.

Tests: tests/dataflow/local/test_local.py.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from reclock.dataflow.evaluate import Evaluated
from reclock.dataflow.local import (
    casts,
    comparison,
    decimals,
    floats,
    integers,
    moments,
    series,
    texts,
)
from reclock.dataflow.local.piece import Kernel, Piece, column, earliest
from reclock.dataflow.types import arrow_type
from reclock.dataflow.values import from_python
from reclock.sql.plan.scalar import (
    And,
    Call,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Literal,
    Or,
    children,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.dataflow.local.piece import Datum
    from reclock.sql.plan.scalar import Scalar

_FAMILIES: Final = (comparison, integers, decimals, floats, moments, texts, series)
_NONE: Final = pa.nulls(1, pa.string())[0]  # ``pa.scalar`` would import pandas


def is_local(scalar: Scalar) -> bool:
    """Return whether an expression needs no Spark."""
    match scalar:
        case ColumnRef() | Literal():
            return True
        case Call() | Cast():
            return _kernel(scalar) is not None and all(map(is_local, children(scalar)))
        case And() | Or() | Case() | Coalesce():
            return all(map(is_local, children(scalar)))
    return False


def evaluated(scalars: Sequence[Scalar], rows: pa.RecordBatch) -> Evaluated:
    """Return the values and errors of local expressions over the columns of a delta.

    >>> from reclock.sql import types as t
    >>> from reclock.sql.plan.functions import find_function
    >>> by = find_function("/", (t.BIGINT, t.BIGINT))
    >>> scalar = Call(by, (Literal(6, t.BIGINT), ColumnRef(0, t.BIGINT)), t.BIGINT)
    >>> rows = pa.RecordBatch.from_arrays([pa.array([2, 0, None])], ["c0"])
    >>> found = evaluated([scalar], rows)
    >>> found.values[0].to_pylist(), found.errors[0].to_pylist()
    ([3, None, None], [None, '22012|division by zero', None])
    """
    made = _Batch(rows)
    pieces = [made.piece(scalar) for scalar in scalars]
    values = tuple(column(piece.value, rows.num_rows) for piece in pieces)
    return Evaluated(values, tuple(piece.error for piece in pieces))


@lru_cache(maxsize=4096)
def _kernel(scalar: Call | Cast) -> Kernel | None:
    if isinstance(scalar, Cast):
        return casts.kernel_of(scalar.operand.type, scalar.type)
    found = (family.kernel_of(scalar) for family in _FAMILIES)
    return next((kernel for kernel in found if kernel is not None), None)


class _Batch:
    """The pieces of one batch of rows."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._rows = rows
        self._made: dict[Scalar, Piece] = {}

    def piece(self, scalar: Scalar) -> Piece:
        """Return what a scalar is here."""
        found = self._made.get(scalar)
        if found is None:
            found = self._made[scalar] = self._piece(scalar)
        return found

    def _piece(self, scalar: Scalar) -> Piece:  # noqa: PLR0911 - one per case
        match scalar:
            case ColumnRef(index):
                return Piece(self._rows.column(index))
            case Literal(value, kind):
                return Piece(from_python([value], kind)[0])
            case And():
                return self._connected(scalar.operands, pc.and_kleene, decides=False)
            case Or():
                return self._connected(scalar.operands, pc.or_kleene, decides=True)
            case Coalesce():
                return self._coalesced(scalar)
            case Case():
                return self._chosen(scalar)
            case Call() | Cast():
                return self._called(scalar)
        raise AssertionError(scalar)

    def _called(self, scalar: Call | Cast) -> Piece:
        kernel = _kernel(scalar)
        assert kernel is not None, scalar
        pieces = [self.piece(part) for part in children(scalar)]
        values: list[Datum] = [piece.value for piece in pieces]
        if all(isinstance(value, pa.Scalar) for value in values):
            values = [self._column(value) for value in values]
        made = kernel(values)
        error = earliest(*(piece.error for piece in pieces), made.error)
        if error is None or error is made.error:
            return made
        return Piece(_nothing(made.value, error.is_valid()), error)

    def _column(self, datum: Datum) -> pa.Array:
        return column(datum, self._rows.num_rows)

    def _connected(
        self,
        operands: Sequence[Scalar],
        connect: Callable[[Datum, Datum], pa.Array],
        *,
        decides: bool,
    ) -> Piece:
        pieces = [self.piece(operand) for operand in operands]
        value: Datum = self._column(pieces[0].value)
        for piece in pieces[1:]:
            value = connect(value, piece.value)
        stops = [pc.equal(self._column(p.value), decides).fill_null(False) for p in pieces]
        return self._lazy(value, pieces, stops)

    def _coalesced(self, scalar: Coalesce) -> Piece:
        pieces = [self.piece(operand) for operand in scalar.operands]
        value = pc.coalesce(*(self._column(piece.value) for piece in pieces))
        return self._lazy(value, pieces, [self._column(p.value).is_valid() for p in pieces])

    def _lazy(self, value: pa.Array, pieces: Sequence[Piece], stops: Sequence[pa.Array]) -> Piece:
        """Return a value with the first error before an operand that decides."""
        error: pa.Array | None = None
        for piece, stop in zip(reversed(pieces), reversed(stops), strict=True):
            if error is not None:
                error = pc.if_else(stop, _NONE, error)
            error = earliest(piece.error, error)
        return _either(value, error)

    def _chosen(self, scalar: Case) -> Piece:
        last = self.piece(scalar.otherwise)
        value, error = self._column(last.value), last.error
        for condition, result in reversed(scalar.branches):
            asked, given = self.piece(condition), self.piece(result)
            holds = self._column(asked.value).fill_null(False)
            value = pc.if_else(holds, given.value, value)
            if error is not None or given.error is not None:
                none = _NONE
                error = pc.if_else(
                    holds,
                    none if given.error is None else given.error,
                    none if error is None else error,
                )
            error = earliest(asked.error, error)
        kind = arrow_type(scalar.type)
        return _either(value if value.type == kind else value.cast(kind), error)


def _either(value: pa.Array, error: pa.Array | None) -> Piece:
    """Return a value that is NULL where there is an error."""
    if error is None or error.null_count == len(error):
        return Piece(value)
    return Piece(_nothing(value, error.is_valid()), error)


def _nothing(value: Datum, there: pa.Array) -> pa.Array:
    values = column(value, len(there))
    return pc.if_else(there, pa.scalar(None, values.type), values)
