"""Arithmetic of numeric: exact, then rounded half up to the scale of its result.

A result that 38 digits hold is Arrow's; one that might need more is computed with 76, rounded, and
is an error if it does not fit. What even 76 digits might not hold is left to Spark.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from reclock.dataflow.local.piece import Kernel, Piece, column, plain, refused
from reclock.dataflow.types import arrow_type
from reclock.sql import types as t
from reclock.sql.plan.functions.patterns import NUMERIC_OVERFLOW

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.dataflow.local.piece import Datum
    from reclock.sql.plan.scalar import Call

MOST_DIGITS: Final = 76
_OPERATORS: Final[dict[str, Callable[..., pa.Array]]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
}
_SIGNS: Final[dict[str, Callable[[pa.Array], pa.Array]]] = {"-": pc.negate, "abs": pc.abs}


def kernel_of(call: Call) -> Kernel | None:
    """Return the kernel of an operator on decimals."""
    name, kinds = call.function.name, [a.type for a in call.arguments]
    if len(kinds) == 1 and isinstance(kinds[0], t.Numeric):
        return plain(_SIGNS[name]) if name in _SIGNS else None
    if len(kinds) != 2 or name not in _OPERATORS or not isinstance(call.type, t.Numeric):
        return None
    a, b = kinds
    if not isinstance(a, t.Numeric) or not isinstance(b, t.Numeric):
        return None
    digits = _digits(name, a, b)
    if digits > MOST_DIGITS:
        return None
    function = _OPERATORS[name]
    if digits <= t.MAX_PRECISION:
        return plain(partial(_exact, function, arrow_type(call.type)))
    return partial(_wide, function, a, b, call.type)


def _digits(name: str, a: t.Numeric, b: t.Numeric) -> int:
    """Return how many digits Arrow gives the exact result."""
    if name == "*":
        return a.precision + b.precision + 1
    return max(a.precision - a.scale, b.precision - b.scale) + max(a.scale, b.scale) + 1


def _exact(
    function: Callable[..., pa.Array], kind: pa.DataType, one: Datum, other: Datum
) -> pa.Array:
    found = function(one, other)
    return found if found.type == kind else found.cast(kind)


def _wide(
    function: Callable[..., pa.Array],
    a: t.Numeric,
    b: t.Numeric,
    kind: t.Numeric,
    arguments: Sequence[Datum],
) -> Piece:
    wide = [
        argument.cast(pa.decimal256(given.precision, given.scale))
        for argument, given in zip(arguments, (a, b), strict=True)
    ]
    return fitted(function(*wide), kind)


def fitted(values: pa.Array, kind: t.Numeric) -> Piece:
    """Return decimals of any size as ``kind`` has them; what does not fit is an error.

    >>> fitted(pa.array([Decimal("1.25"), Decimal("99.95")]), t.Numeric(3, 1)).value.to_pylist()
    [Decimal('1.3'), None]
    """
    given = values.type
    if given.scale > kind.scale:
        # One digit more: 9.99 becomes 10.0.
        values = values.cast(pa.decimal256(min(given.precision + 1, MOST_DIGITS), given.scale))
        values = pc.round(values, ndigits=kind.scale, round_mode="half_towards_infinity")
    limit = Decimal(10) ** (kind.precision - kind.scale)
    most = pa.scalar(limit, pa.decimal256(kind.precision - kind.scale + 1, 0))
    beyond = pc.greater_equal(pc.abs(values), most)
    there = pc.if_else(beyond, pa.scalar(None, values.type), values)
    wide = pa.decimal256(MOST_DIGITS, kind.scale)
    found = column(there, len(values)).cast(wide, safe=False).cast(arrow_type(kind), safe=False)
    return refused(found, (beyond, NUMERIC_OVERFLOW))
