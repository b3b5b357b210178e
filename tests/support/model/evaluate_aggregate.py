"""Aggregates in plain Python, over the rows of one group."""

from __future__ import annotations

import operator
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from statistics import pstdev, pvariance, stdev, variance
from typing import TYPE_CHECKING, Any

from model import evaluate_interval as model
from model.evaluate_scalar import EvaluationError, fits, normal
from reclock.sql.plan.functions.length import MAX_BYTES, TOO_LONG
from reclock.sql.types import INTERVAL, Numeric

if TYPE_CHECKING:
    from reclock.sql.plan.order import WindowCall
    from reclock.sql.plan.reduce import AggregateCall

Row = tuple[object, ...]
_BITS = {"bit_and": operator.and_, "bit_or": operator.or_, "bit_xor": operator.xor}
KNOWN = frozenset(
    {"count", "array_agg", "any_row", "string_agg", "sum", "avg", "min", "max", "bool_and",
     "bool_or", *_BITS}
)  # fmt: skip
"""Aggregates that are computed here to the last digit."""


def aggregate(call: AggregateCall, rows: list[Row]) -> object:
    """Return the value of ``call`` over ``rows``, which are in its order."""
    if call.filter is not None:
        rows = [row for row in rows if row[call.filter] is True]
    arguments = [tuple(row[a] for a in call.arguments) for row in rows]
    if call.distinct:
        arguments = list(dict.fromkeys(arguments))
    return apply_aggregate(call, arguments)


def apply_aggregate(call: AggregateCall | WindowCall, arguments: list[Row]) -> object:
    """Return the value of the function of ``call`` over its argument tuples."""
    return normal(_applied(call, arguments))


def _applied(call: AggregateCall | WindowCall, arguments: list[Row]) -> object:
    name = call.function.name
    if name == "count":
        return sum(all(v is not None for v in a) for a in arguments)
    if name == "array_agg":
        return tuple(a[0] for a in arguments) or None
    if name == "any_row":
        return arguments[0][0] if arguments else None
    present: list[Any] = [a[0] for a in arguments if a[0] is not None]
    if name == "string_agg":
        texts = [a for a in arguments if a[0] is not None]
        pieces = [f"{'' if i == 0 else a[1] or ''}{a[0]}" for i, a in enumerate(texts)]
        if sum(len(piece.encode()) for piece in pieces) > MAX_BYTES:
            raise EvaluationError(code=TOO_LONG.code, message=TOO_LONG.message)
        return "".join(pieces) if texts else None
    if not present:
        return None
    try:
        return fits(_value(name, present, call), call.type)
    except model.OutOfRange as error:
        raise EvaluationError(code=error.code, message=error.message) from error


def _value(name: str, values: list[Any], call: AggregateCall | WindowCall) -> object:  # noqa: PLR0911, PLR0912  # one per function
    if call.type == INTERVAL:
        return _of_intervals(name, values)
    match name:
        case "sum":
            return sum(values[1:], values[0])
        case "avg":
            if isinstance(call.type, Numeric):
                total = sum((Decimal(v) for v in values), Decimal(0))
                unit = Decimal(1).scaleb(-call.type.scale)
                return (total / len(values)).quantize(unit, ROUND_HALF_UP)
            return sum(values) / len(values)
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "bool_and":
            return all(values)
        case "bool_or":
            return any(values)
        case "bit_and" | "bit_or" | "bit_xor":
            return reduce(_BITS[name], values)
        case "stddev_samp":
            return stdev(values) if len(values) > 1 else None
        case "var_samp":
            return variance(values) if len(values) > 1 else None
        case "stddev_pop":
            return pstdev(values)
        case "var_pop":
            return pvariance(values)
    message = f"no evaluation of aggregate {name}"
    raise EvaluationError(code="0A000", message=message)


def _of_intervals(name: str, values: list[Any]) -> object:
    if name in {"min", "max"}:
        sign = 1 if name == "min" else -1
        return min(values, key=lambda v: (sign * v.span, v.days, v.microseconds, v.months))
    total = values[0]
    for value in values[1:]:
        total = model.plus(total, value)
    return total if name == "sum" else model.divided(total, len(values))
