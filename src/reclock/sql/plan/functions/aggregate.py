"""Aggregate and window functions: signatures, and which of them accumulate.

``fast`` aggregates have an accumulator per group that is exact under retraction, so a change costs
the changed rows; ``min`` and ``max`` read the head of a sorted arrangement; Spark recomputes every
other one for the changed groups. ``spark`` is Spark's name for the general case. Sums of integers
are exact: ``sum(int)`` is bigint, ``sum(bigint)`` is numeric, averages of exact numbers are numeric
with 16 digits after the point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reclock.sql.plan.functions.overload import AnyOf, Parameter, ResultRule
from reclock.sql.plan.functions.patterns import ANY, NUMERIC, same
from reclock.sql.plan.interval_text import has_interval
from reclock.sql.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    MAX_PRECISION,
    REAL,
    SMALLINT,
    TEXT,
    Array,
    Numeric,
    Record,
    Type,
)

_AVERAGE_SCALE = 16

FAST: Final = "accumulator"
HEAD: Final = "head of a sorted arrangement"
GENERAL: Final = "recomputed for changed groups"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate for certain argument types."""

    name: str
    parameters: tuple[Parameter, ...]
    result: Type | ResultRule
    spark: str
    how: str = GENERAL
    empty: object = None

    def result_type(self, arguments: tuple[Type, ...]) -> Type:
        """Return the type of the result for arguments already converted."""
        return self.result(arguments) if callable(self.result) else self.result

    def __repr__(self) -> str:
        inside = ", ".join(p.name if isinstance(p, AnyOf) else str(p) for p in self.parameters)
        return f"{self.name}({inside})"


def _sum_numeric(types: tuple[Type, ...]) -> Type:
    given = types[0]
    return Numeric(MAX_PRECISION, given.scale) if isinstance(given, Numeric) else given


def _average_numeric(types: tuple[Type, ...]) -> Type:
    given = types[0]
    scale = given.scale if isinstance(given, Numeric) else 0
    return Numeric(MAX_PRECISION, min(max(scale, _AVERAGE_SCALE), 28))


_ORDERED = AnyOf(
    "ordered", lambda t: t != JSON and not isinstance(t, Record) and not has_interval(t)
)
_INTERVAL_ARRAY = AnyOf("interval[]", lambda t: has_interval(t) and isinstance(t, Array))
_INTERVALS = AnyOf("interval", lambda t: has_interval(t) and not isinstance(t, Record))
"""Intervals and arrays of them: they are compared by their spans, not by their bytes."""

_NO_INTERVALS = AnyOf("any", lambda t: not has_interval(t))
_WHOLE = Numeric(20, 0)
_SUM = "sum({0})"
_AVG = "avg({0})"

AGGREGATES: Final = (
    Aggregate("count", (), BIGINT, "count(*)", FAST, 0),
    Aggregate("count", (ANY,), BIGINT, "count({0})", FAST, 0),
    Aggregate("sum", (SMALLINT,), BIGINT, _SUM, FAST),
    Aggregate("sum", (INTEGER,), BIGINT, _SUM, FAST),
    Aggregate("sum", (BIGINT,), Numeric(MAX_PRECISION, 0),
              "sum(CAST({0} AS DECIMAL(28, 0)))", FAST),
    Aggregate("sum", (NUMERIC,), _sum_numeric, "CAST(sum({0}) AS {type})", FAST),
    Aggregate("sum", (REAL,), REAL, "CAST(sum({0}) AS FLOAT)", FAST),
    Aggregate("sum", (DOUBLE,), DOUBLE, _SUM, FAST),
    Aggregate("sum", (INTERVAL,), INTERVAL, _SUM),
    *(
        Aggregate("avg", (t,), Numeric(MAX_PRECISION, _AVERAGE_SCALE),
                  "CAST(avg(CAST({0} AS DECIMAL(34, 12))) AS {type})", FAST)
        for t in (SMALLINT, INTEGER, BIGINT)
    ),
    Aggregate("avg", (NUMERIC,), _average_numeric, "CAST(avg({0}) AS {type})", FAST),
    Aggregate("avg", (REAL,), DOUBLE, _AVG, FAST),
    Aggregate("avg", (DOUBLE,), DOUBLE, _AVG, FAST),
    Aggregate("avg", (INTERVAL,), INTERVAL, _AVG),
    Aggregate("min", (_ORDERED,), same(), "min({0})", HEAD),
    Aggregate("min", (INTERVAL,), same(), "min({0})", HEAD),
    Aggregate("min", (_INTERVAL_ARRAY,), same(), "min({0})"),
    Aggregate("max", (_ORDERED,), same(), "max({0})", HEAD),
    Aggregate("max", (INTERVAL,), same(), "max({0})", HEAD),
    Aggregate("max", (_INTERVAL_ARRAY,), same(), "max({0})"),
    Aggregate("bool_and", (BOOLEAN,), BOOLEAN, "bool_and({0})", FAST),
    Aggregate("bool_or", (BOOLEAN,), BOOLEAN, "bool_or({0})", FAST),
    *(
        Aggregate(name, (DOUBLE,), DOUBLE, f"{name}({{0}})", FAST)
        for name in ("stddev_samp", "stddev_pop", "var_samp", "var_pop")
    ),
    *(
        Aggregate(name, (DOUBLE, DOUBLE), DOUBLE, f"{name}({{0}}, {{1}})")
        for name in ("corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2")
    ),
    *(
        Aggregate(name, (t,), t, f"{name}({{0}})")
        for name in ("bit_and", "bit_or", "bit_xor")
        for t in (SMALLINT, INTEGER, BIGINT)
    ),
    Aggregate("array_agg", (ANY,), lambda types: Array(types[0]), "array_agg({0})"),
    Aggregate("string_agg", (TEXT, TEXT), TEXT, "string_agg({0}, {1})"),
    Aggregate("percentile_cont", (DOUBLE, DOUBLE), DOUBLE, "percentile({1}, {0})"),
    Aggregate("percentile_disc", (DOUBLE, _ORDERED), same(1), "percentile_disc({1}, {0})"),
    Aggregate("percentile_disc", (DOUBLE, _INTERVALS), same(1), "percentile_disc({1}, {0})"),
    Aggregate("mode", (_NO_INTERVALS,), same(), "mode({0}, true)"),
    Aggregate("any_row", (ANY,), same(), "first({0})"),
)  # fmt: skip

AGGREGATE_SYNONYMS: Final = {
    "every": "bool_and",
    "stddev": "stddev_samp",
    "variance": "var_samp",
}

WINDOWS: Final = (
    Aggregate("row_number", (), BIGINT, "row_number()"),
    Aggregate("rank", (), BIGINT, "rank()"),
    Aggregate("dense_rank", (), BIGINT, "dense_rank()"),
    Aggregate("percent_rank", (), DOUBLE, "percent_rank()"),
    Aggregate("cume_dist", (), DOUBLE, "cume_dist()"),
    Aggregate("ntile", (INTEGER,), INTEGER, "ntile({0})"),
    Aggregate("lag", (ANY,), same(), "lag({0})"),
    Aggregate("lag", (ANY, INTEGER), same(), "lag({0}, {1})"),
    Aggregate("lag", (ANY, INTEGER, ANY), same(), "lag({0}, {1}, {2})"),
    Aggregate("lead", (ANY,), same(), "lead({0})"),
    Aggregate("lead", (ANY, INTEGER), same(), "lead({0}, {1})"),
    Aggregate("lead", (ANY, INTEGER, ANY), same(), "lead({0}, {1}, {2})"),
    Aggregate("first_value", (ANY,), same(), "first_value({0})"),
    Aggregate("last_value", (ANY,), same(), "last_value({0})"),
    Aggregate("nth_value", (ANY, INTEGER), same(), "nth_value({0}, {1})"),
)

NEVER_NULL: Final = frozenset(
    {"count", "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"}
)
