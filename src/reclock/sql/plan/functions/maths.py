"""Mathematics, with PostgreSQL's domain errors."""

from __future__ import annotations

from reclock.sql.plan.functions.overload import Failure, Overload
from reclock.sql.plan.functions.patterns import (
    DIVISION_BY_ZERO,
    NUMERIC,
    POWER,
    POWER_FAILURES,
    rescaled,
)
from reclock.sql.types import BIGINT, DOUBLE, INTEGER, SMALLINT

_LOG_ZERO = Failure("2201E", "cannot take logarithm of zero", "{0} = 0")
_LOG_NEGATIVE = Failure("2201E", "cannot take logarithm of a negative number", "{0} < 0")
_LOGS = (_LOG_ZERO, _LOG_NEGATIVE)
_ROOT = Failure("2201F", "cannot take square root of a negative number", "{0} < 0")
_RANGE = Failure("22003", "input is out of range", "abs({0}) > 1 AND NOT isnan({0})")
_INFINITE = "double('Infinity')"
_ANGLE = Failure("22003", "input is out of range", f"abs({{0}}) = {_INFINITE}")
_OVERFLOW = Failure(
    "22003",
    "value out of range: overflow",
    f"abs({{value}}) = {_INFINITE} AND abs({{0}}) <> {_INFINITE}",
)
_UNDERFLOW = Failure(
    "22003",
    "value out of range: underflow",
    f"{{value}} = 0 AND {{0}} <> 0 AND abs({{0}}) <> {_INFINITE}",
)
_DEGREE = "0.017453292519943295D"
_MINUS_ZERO = "left(CAST({%d} AS STRING), 1) = '-'"
_ATAN2 = (
    "CASE WHEN {0} = 0 AND NOT isnan({1})"
    f" THEN CASE WHEN {_MINUS_ZERO % 0} THEN -1D ELSE 1D END"
    f" * CASE WHEN {_MINUS_ZERO % 1} THEN pi() ELSE 0D END"
    " ELSE atan2({0}, {1}) END"
)
"""Spark's knows no zero with a sign."""

_SIGN = "CASE WHEN isnan({0}) OR {0} = 0 THEN 0D WHEN {0} > 0 THEN 1D WHEN {0} < 0 THEN -1D END"


def _double(name: str, spark: str, *failures: Failure) -> Overload:
    return Overload(name, (DOUBLE,), DOUBLE, spark, failures)


OVERLOADS = (
    *(Overload("sign", (t,), t, f"CAST(sign({{0}}) AS {t.spark_name})") for t in (INTEGER, BIGINT)),
    _double("sign", _SIGN),
    _double("ceil", "CASE WHEN rint({0}) >= {0} THEN rint({0}) ELSE rint({0}) + 1D END"),
    _double("floor", "CASE WHEN rint({0}) <= {0} THEN rint({0}) ELSE rint({0}) - 1D END"),
    _double("round", "rint({0})"),
    Overload("ceil", (NUMERIC,), rescaled(0), "ceil({0})"),
    Overload("floor", (NUMERIC,), rescaled(0), "floor({0})"),
    Overload("round", (NUMERIC,), rescaled(0), "round({0}, 0)"),
    Overload("mod", (SMALLINT, SMALLINT), SMALLINT, "try_mod({0}, {1})", (DIVISION_BY_ZERO,)),
    Overload("mod", (INTEGER, INTEGER), INTEGER, "try_mod({0}, {1})", (DIVISION_BY_ZERO,)),
    Overload("mod", (BIGINT, BIGINT), BIGINT, "try_mod({0}, {1})", (DIVISION_BY_ZERO,)),
    _double("sqrt", "sqrt({0})", _ROOT),
    _double("cbrt", "cbrt({0})"),
    _double("exp", "exp({0})", _OVERFLOW, _UNDERFLOW),
    _double("ln", "ln({0})", *_LOGS),
    _double("log", "log10({0})", *_LOGS),
    _double("log10", "log10({0})", *_LOGS),
    Overload("power", (DOUBLE, DOUBLE), DOUBLE, POWER, POWER_FAILURES, guarded=True),
    _double("sin", "sin({0})", _ANGLE),
    _double("cos", "cos({0})", _ANGLE),
    _double("tan", "tan({0})", _ANGLE),
    _double("asin", "asin({0})", _RANGE),
    _double("acos", "acos({0})", _RANGE),
    _double("atan", "atan({0})"),
    Overload("atan2", (DOUBLE, DOUBLE), DOUBLE, _ATAN2, guarded=True),
    _double("degrees", f"({{0}} / {_DEGREE})", _OVERFLOW),
    _double("radians", f"({{0}} * {_DEGREE})", _UNDERFLOW),
    Overload("pi", (), DOUBLE, "pi()", never_null=True),
)  # fmt: skip
