"""Mathematics, with PostgreSQL's domain errors."""

from __future__ import annotations

from reclock.sql.plan.functions.overload import Failure, Overload
from reclock.sql.plan.functions.patterns import DIVISION_BY_ZERO, NUMERIC, rescaled
from reclock.sql.types import BIGINT, DOUBLE, INTEGER, SMALLINT

_LOG_ZERO = Failure("2201E", "cannot take logarithm of zero", "{0} = 0")
_LOG_NEGATIVE = Failure("2201E", "cannot take logarithm of a negative number", "{0} < 0")
_LOGS = (_LOG_ZERO, _LOG_NEGATIVE)
_ROOT = Failure("2201F", "cannot take square root of a negative number", "{0} < 0")
_RANGE = Failure("22003", "input is out of range", "{0} < -1 OR {0} > 1")
_OVERFLOW = Failure(
    "22003",
    "value out of range: overflow",
    "abs({value}) = double('Infinity') AND abs({0}) <> double('Infinity')",
)
_ZERO_POWER = Failure(
    "2201F", "zero raised to a negative power is undefined", "{0} = 0 AND {1} < 0"
)
_COMPLEX = Failure(
    "2201F",
    "a negative number raised to a non-integer power yields a complex result",
    "{0} < 0 AND {1} <> floor({1})",
)


def _double(name: str, spark: str, *failures: Failure) -> Overload:
    return Overload(name, (DOUBLE,), DOUBLE, spark, failures)


OVERLOADS = (
    *(Overload("sign", (t,), t, f"CAST(sign({{0}}) AS {t.spark_name})") for t in (INTEGER, BIGINT)),
    _double("sign", "sign({0})"),
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
    _double("exp", "exp({0})", _OVERFLOW),
    _double("ln", "ln({0})", *_LOGS),
    _double("log", "log10({0})", *_LOGS),
    _double("log10", "log10({0})", *_LOGS),
    Overload("power", (DOUBLE, DOUBLE), DOUBLE, "power({0}, {1})", (_ZERO_POWER, _COMPLEX)),
    _double("sin", "sin({0})"),
    _double("cos", "cos({0})"),
    _double("tan", "tan({0})"),
    _double("asin", "asin({0})", _RANGE),
    _double("acos", "acos({0})", _RANGE),
    _double("atan", "atan({0})"),
    Overload("atan2", (DOUBLE, DOUBLE), DOUBLE, "atan2({0}, {1})"),
    _double("degrees", "degrees({0})"),
    _double("radians", "radians({0})"),
    Overload("pi", (), DOUBLE, "pi()", never_null=True),
)  # fmt: skip
