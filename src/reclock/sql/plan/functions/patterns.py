"""Parameter patterns and result rules shared by the files of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.sql.plan.functions.overload import AnyOf, Failure
from reclock.sql.types import Array, Numeric, Record, adjusted, is_number

if TYPE_CHECKING:
    from reclock.sql.plan.functions.overload import ResultRule
    from reclock.sql.types import Type

ANY = AnyOf("any", lambda t: True)
ARRAY = AnyOf("anyarray", lambda t: isinstance(t, Array))
RECORD = AnyOf("record", lambda t: isinstance(t, Record))
NUMBER = AnyOf("number", is_number)
NUMERIC = AnyOf("numeric", lambda t: isinstance(t, Numeric))

OUT_OF_RANGE = Failure("22003", "integer out of range")
NUMERIC_OVERFLOW = Failure("22003", "numeric field overflow")
DIVISION_BY_ZERO = Failure("22012", "division by zero", "{1} = 0")
FLOAT_BY_ZERO = Failure("22012", "division by zero", "{1} = 0 AND NOT isnan({0})")

_INFINITE = "double('Infinity')"
_FINITE = f"abs({{0}}) < {_INFINITE} AND abs({{1}}) < {_INFINITE}"
OVERFLOW = Failure(
    "22003", "value out of range: overflow", f"abs({{value}}) = {_INFINITE} AND {_FINITE}"
)
PRODUCT_UNDERFLOW = Failure(
    "22003", "value out of range: underflow", "{value} = 0 AND {0} <> 0 AND {1} <> 0"
)
QUOTIENT_UNDERFLOW = Failure(
    "22003",
    "value out of range: underflow",
    f"{{value}} = 0 AND {{0}} <> 0 AND abs({{1}}) <> {_INFINITE}",
)
"""Of floats: finite numbers whose result is none, or is not 0 but cannot be told from it."""

POWER = (
    f"CASE WHEN {{0}} = 1 OR ({{0}} = -1 AND abs({{1}}) = {_INFINITE}) THEN 1D"
    " ELSE power({0}, {1}) END"
)
_NEITHER_NAN = "NOT isnan({0}) AND NOT isnan({1})"
POWER_FAILURES = (
    Failure("2201F", "zero raised to a negative power is undefined", "{0} = 0 AND {1} < 0"),
    Failure(
        "2201F",
        "a negative number raised to a non-integer power yields a complex result",
        f"{{0}} < 0 AND {{1}} <> rint({{1}}) AND {_NEITHER_NAN}",
    ),
    OVERFLOW,
    Failure(
        "22003", "value out of range: underflow", f"{{value}} = 0 AND {{0}} <> 0 AND {_FINITE}"
    ),
)
"""PostgreSQL's power: 1 to any power is 1, also to NaN."""


def same(index: int = 0) -> ResultRule:
    """Return the rule: the type of argument ``index``."""
    return lambda types: types[index]


def element(index: int = 0) -> ResultRule:
    """Return the rule: the element type of the array at ``index``."""

    def rule(types: tuple[Type, ...]) -> Type:
        array = types[index]
        return array.element if isinstance(array, Array) else array

    return rule


def rescaled(scale: int) -> ResultRule:
    """Return the rule: a numeric of the same whole digits, one more, and ``scale`` others."""

    def rule(types: tuple[Type, ...]) -> Type:
        given = types[0]
        if not isinstance(given, Numeric):
            return given
        return adjusted(given.precision - given.scale + 1 + scale, scale)

    return rule
