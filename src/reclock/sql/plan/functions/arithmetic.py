"""Operators on numbers; both operands already have the type they meet in.

Integer division truncates toward zero and ``%`` takes the sign of the dividend, as in
PostgreSQL; overflow and division by zero are errors; decimals follow Spark's rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.sql.plan.functions.overload import Overload
from reclock.sql.plan.functions.patterns import (
    DIVISION_BY_ZERO,
    FLOAT_BY_ZERO,
    NUMERIC,
    NUMERIC_OVERFLOW,
    OUT_OF_RANGE,
    OVERFLOW,
    POWER,
    POWER_FAILURES,
    PRODUCT_UNDERFLOW,
    QUOTIENT_UNDERFLOW,
    same,
)
from reclock.sql.types import BIGINT, DOUBLE, FLOATS, INTEGER, INTEGERS, Numeric, decimal_result

if TYPE_CHECKING:
    from reclock.sql.plan.functions.overload import ResultRule
    from reclock.sql.types import Type

_SIGNED = "regexp_replace(concat('-', CAST({0} AS STRING)), '^--', '')"
_NEGATED = f"CAST({_SIGNED} AS {{type}})"
"""By its text: Spark negates decimals with 34 digits, and fails where those are too few."""

_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}


def _decimal(operator: str) -> ResultRule:
    def rule(types: tuple[Type, ...]) -> Type:
        a, b = types
        if isinstance(a, Numeric) and isinstance(b, Numeric):
            return decimal_result(operator, a, b)
        return a

    return rule


def _integers() -> list[Overload]:
    made = []
    for t in INTEGERS:
        spark = t.spark_name
        for operator, function in _TRY.items():
            text = f"{function}({{0}}, {{1}})"
            if t.name == "smallint":
                text = f"try_cast({function}(CAST({{0}} AS INT), CAST({{1}} AS INT)) AS SMALLINT)"
            made.append(Overload(operator, (t, t), t, text, (OUT_OF_RANGE,)))
        quotient = (
            "CASE WHEN {1} = -1 THEN try_subtract(0L, CAST({0} AS BIGINT))"
            " ELSE CAST({0} AS BIGINT) div CAST(nullif({1}, 0) AS BIGINT) END"
        )
        quotient = f"try_cast({quotient} AS {spark})"
        made.append(Overload("/", (t, t), t, quotient, (DIVISION_BY_ZERO, OUT_OF_RANGE)))
        made.append(Overload("%", (t, t), t, "try_mod({0}, {1})", (DIVISION_BY_ZERO,)))
        negative = f"try_cast(try_subtract(0L, CAST({{0}} AS BIGINT)) AS {spark})"
        made.append(Overload("-", (t,), t, negative, (OUT_OF_RANGE,)))
        absolute = f"CASE WHEN {{0}} < 0 THEN {negative} ELSE {{0}} END"
        made.append(Overload("abs", (t,), t, absolute, (OUT_OF_RANGE,)))
        made.append(Overload("&", (t, t), t, "({0} & {1})"))
        made.append(Overload("|", (t, t), t, "({0} | {1})"))
        made.append(Overload("#", (t, t), t, "({0} ^ {1})"))
        made.append(Overload("~", (t,), t, "(~{0})"))
    return made


def _floats() -> list[Overload]:
    made = []
    for t in FLOATS:
        for operator in _TRY:
            lost = (PRODUCT_UNDERFLOW,) if operator == "*" else ()
            text = f"({{0}} {operator} {{1}})"
            made.append(Overload(operator, (t, t), t, text, (OVERFLOW, *lost)))
        quotient = (
            f"CASE WHEN {{1}} = 0 AND isnan({{0}}) THEN {{0}}"
            f" ELSE CAST(try_divide({{0}}, {{1}}) AS {t.spark_name}) END"
        )
        errors = (FLOAT_BY_ZERO, OVERFLOW, QUOTIENT_UNDERFLOW)
        made.append(Overload("/", (t, t), t, quotient, errors))
        made.append(Overload("-", (t,), t, "(-{0})"))
        made.append(Overload("abs", (t,), t, "abs({0})"))
    return made


def _decimals() -> list[Overload]:
    pair = (NUMERIC, NUMERIC)
    made = [
        Overload(operator, pair, _decimal(operator), f"{f}({{0}}, {{1}})", (NUMERIC_OVERFLOW,))
        for operator, f in _TRY.items()
    ]
    both = (DIVISION_BY_ZERO, NUMERIC_OVERFLOW)
    made.append(Overload("/", pair, _decimal("/"), "try_divide({0}, {1})", both))
    made.append(Overload("%", pair, _decimal("%"), "try_mod({0}, {1})", (DIVISION_BY_ZERO,)))
    made.append(
        Overload("-", (NUMERIC,), same(), f"CASE WHEN {{0}} = 0 THEN {{0}} ELSE {_NEGATED} END")
    )
    made.append(
        Overload("abs", (NUMERIC,), same(), f"CASE WHEN {{0}} < 0 THEN {_NEGATED} ELSE {{0}} END")
    )
    return made


OVERLOADS = (
    *_integers(),
    *_floats(),
    *_decimals(),
    Overload("<<", (INTEGER, INTEGER), INTEGER, "shiftleft({0}, {1})"),
    Overload("<<", (BIGINT, INTEGER), BIGINT, "shiftleft({0}, {1})"),
    Overload(">>", (INTEGER, INTEGER), INTEGER, "shiftright({0}, {1})"),
    Overload(">>", (BIGINT, INTEGER), BIGINT, "shiftright({0}, {1})"),
    Overload("^", (DOUBLE, DOUBLE), DOUBLE, POWER, POWER_FAILURES, guarded=True),
)
