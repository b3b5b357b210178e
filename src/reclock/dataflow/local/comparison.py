"""Comparisons, tests for NULL and truth, and choices by comparison.

Numbers, dates and moments compare as such, texts by their bytes, and NULL with anything is NULL.
NaN equals itself and is greater than every number. Operands have one type, one of ``ORDERED`` or
numeric; NULL tests take any.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from reclock.dataflow.local.piece import Kernel, columns, plain
from reclock.dataflow.types import arrow_type
from reclock.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.dataflow.local.piece import Datum
    from reclock.sql.plan.scalar import Call
    from reclock.sql.types import Type

ORDERED: Final = frozenset({t.BOOLEAN, *t.INTEGERS, t.DATE, t.TIMESTAMP, t.TIMESTAMPTZ, t.TEXT})

_COMPARISONS: Final[dict[str, Callable[..., pa.Array]]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_TESTS: Final[dict[str, Callable[[pa.Array], pa.Array]]] = {
    "is null": lambda value: value.is_null(),
    "is true": lambda value: value.fill_null(False),
    "is false": lambda value: pc.invert(value.fill_null(True)),
    "not": pc.invert,
}
_EXTREMES: Final = {"greatest": pc.max_element_wise, "least": pc.min_element_wise}
_NOT_EXTREME: Final = frozenset({t.BOOLEAN, t.TIMESTAMPTZ})
"""Ordered types whose greatest Arrow does not look for."""


def kernel_of(call: Call) -> Kernel | None:
    """Return the kernel of a comparison, a test or a choice."""
    name, kind = call.function.name, call.arguments[0].type if call.arguments else None
    if name in _TESTS:
        return plain(_TESTS[name])
    if kind is None or any(a.type != kind for a in call.arguments):
        return None
    if name in _EXTREMES:
        extreme = is_ordered(kind) and kind not in _NOT_EXTREME
        return plain(_EXTREMES[name]) if extreme else None
    compare = _comparison("=" if name in _DISTINCT or name == "nullif" else name, kind)
    if compare is None:
        return None
    if name in _DISTINCT:
        return plain(partial(_distinct, compare, _DISTINCT[name]))
    return plain(partial(_null_if, compare, arrow_type(kind)) if name == "nullif" else compare)


def is_ordered(kind: Type) -> bool:
    """Return whether values of a type compare as Arrow compares them."""
    return kind in ORDERED or isinstance(kind, t.Numeric)


def _comparison(name: str, kind: Type) -> Callable[..., pa.Array] | None:
    if name not in _COMPARISONS:
        return None
    if is_ordered(kind):
        return _COMPARISONS[name]
    return partial(_of_floats, name) if kind in t.FLOATS else None


def _of_floats(name: str, one: Datum, other: Datum) -> pa.Array:
    if name in {">", ">="}:
        return _of_floats({">": "<", ">=": "<="}[name], other, one)
    if name == "<>":
        return pc.invert(_of_floats("=", one, other))
    found = _COMPARISONS[name](one, other)
    first, last = pc.is_nan(one), pc.is_nan(other)
    if name == "=":
        return pc.or_(found, pc.and_(first, last))
    return pc.or_(found, last if name == "<=" else pc.and_(last, pc.invert(first)))


_DISTINCT: Final = {"is distinct from": True, "is not distinct from": False}


def _distinct(compare: Callable[..., pa.Array], wanted: bool, one: Datum, other: Datum) -> pa.Array:
    a, b = columns([one, other])
    same = compare(a, b).fill_null(False)
    same = pc.or_(same, pc.and_(a.is_null(), b.is_null()))
    return pc.invert(same) if wanted else same


def _null_if(
    compare: Callable[..., pa.Array], kind: pa.DataType, one: Datum, other: Datum
) -> pa.Array:
    a, b = columns([one, other])
    return pc.if_else(compare(a, b).fill_null(False), pa.scalar(None, kind), a)
