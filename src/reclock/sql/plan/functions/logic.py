"""Comparison, NULL tests and choice. AND, OR, CASE and COALESCE are scalars of their own.

Comparisons take two operands of one type. NaN equals itself and is greater than any
number, in PostgreSQL and in Spark alike.
"""

from __future__ import annotations

from reclock.sql.plan.functions.overload import Failure, Overload
from reclock.sql.plan.functions.patterns import ANY, ARRAY, same
from reclock.sql.types import BIGINT, BOOLEAN

TOO_MANY_ROWS = Failure(
    "21000",
    "more than one row returned by a subquery used as an expression",
    "{1} > 1",
    even_null=True,
)

_SORTED = "transform({%d}, __e -> struct(__e IS NULL, __e))"
"""An array as it is compared: NULL after all elements."""

OVERLOADS = (
    *(
        Overload(symbol, (ARRAY, ARRAY), BOOLEAN, f"({_SORTED % 0} {symbol} {_SORTED % 1})")
        for symbol in ("<", "<=", ">", ">=")
    ),
    *(
        Overload(symbol, (ANY, ANY), BOOLEAN, f"({{0}} {symbol} {{1}})")
        for symbol in ("=", "<>", "<", "<=", ">", ">=")
    ),
    Overload("is not distinct from", (ANY, ANY), BOOLEAN, "({0} <=> {1})", never_null=True),
    Overload("is distinct from", (ANY, ANY), BOOLEAN, "(NOT ({0} <=> {1}))", never_null=True),
    Overload("not", (BOOLEAN,), BOOLEAN, "(NOT {0})"),
    Overload("is null", (ANY,), BOOLEAN, "({0} IS NULL)", never_null=True),
    Overload("is true", (BOOLEAN,), BOOLEAN, "({0} <=> true)", never_null=True),
    Overload("is false", (BOOLEAN,), BOOLEAN, "({0} <=> false)", never_null=True),
    Overload("nullif", (ANY, ANY), same(), "nullif({0}, {1})", makes_null=True),
    Overload("greatest", (ANY, ANY), same(), "greatest({*})", variadic=True),
    Overload("least", (ANY, ANY), same(), "least({*})", variadic=True),
    Overload("single_row", (ANY, BIGINT), same(), "{0}", (TOO_MANY_ROWS,)),
)
