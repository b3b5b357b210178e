"""Arithmetic of floats: what finite numbers make is finite, or an error, and not lost as 0."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from reclock.dataflow.local.piece import Kernel, Piece, columns, plain, refused
from reclock.dataflow.types import arrow_type
from reclock.sql import types as t
from reclock.sql.plan.functions.patterns import (
    FLOAT_BY_ZERO,
    OVERFLOW,
    PRODUCT_UNDERFLOW,
    QUOTIENT_UNDERFLOW,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.dataflow.local.piece import Datum
    from reclock.sql.plan.scalar import Call

_OPERATORS: Final[dict[str, Callable[..., pa.Array]]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
}
_SIGNS: Final[dict[str, Callable[[pa.Array], pa.Array]]] = {"-": pc.negate, "abs": pc.abs}


def kernel_of(call: Call) -> Kernel | None:
    """Return the kernel of an operator on floats of one type."""
    name, kinds = call.function.name, [a.type for a in call.arguments]
    if not kinds or kinds[0] not in t.FLOATS or any(k != kinds[0] for k in kinds):
        return None
    if len(kinds) == 1:
        return plain(_SIGNS[name]) if name in _SIGNS else None
    if name in _OPERATORS:
        return partial(_computed, name)
    return partial(_divided, arrow_type(kinds[0])) if name == "/" else None


def _computed(name: str, arguments: Sequence[Datum]) -> Piece:
    found = _OPERATORS[name](*arguments)
    finite = pc.and_(*map(pc.is_finite, arguments))
    rules = [(pc.and_(pc.is_inf(found), finite), OVERFLOW)]
    if name == "*":
        one, other = arguments
        lost = pc.and_(pc.equal(found, 0), pc.and_(pc.not_equal(one, 0), pc.not_equal(other, 0)))
        rules.append((lost, PRODUCT_UNDERFLOW))
    return refused(found, *rules)


def _divided(kind: pa.DataType, arguments: Sequence[Datum]) -> Piece:
    one, other = columns(arguments)
    by_zero = pc.equal(other, 0)
    nothing = pc.is_nan(one)
    found = pc.divide(one, pc.if_else(by_zero, pa.scalar(1, kind), other))
    finite = pc.and_(pc.is_finite(one), pc.is_finite(other))
    lost = pc.and_(pc.equal(found, 0), pc.not_equal(one, 0))
    return refused(
        found,
        (pc.and_(by_zero, pc.invert(nothing)), FLOAT_BY_ZERO),
        (pc.and_(pc.is_inf(found), finite), OVERFLOW),
        (pc.and_(lost, pc.invert(pc.is_inf(other))), QUOTIENT_UNDERFLOW),
    )
