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
