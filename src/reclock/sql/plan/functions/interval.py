"""Intervals: arithmetic, fields, justification, and what the difference of two times is.

An interval is a struct of three numbers (``interval_text``). PostgreSQL's rules: a number that
does not fit is an error (22008); months, days and microseconds are added to a time in this
order, the day being that of a shorter month if need be; a product hands what is left of a month
down to days and of a day to microseconds; the difference of two times has days and time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.interval import DAY, HOUR, MINUTE, SECOND
from reclock.sql.plan.functions.overload import Failure, Overload
from reclock.sql.plan.interval_text import let, scaled, struct_text, whole_text
from reclock.sql.types import (
    DOUBLE,
    INTEGER,
    INTERVAL,
    TIMESTAMP,
    TIMESTAMPTZ,
    Numeric,
)

if TYPE_CHECKING:
    from reclock.sql.interval.qualifier import Qualifier
    from reclock.sql.types import Type

OUT_OF_RANGE: Final = Failure("22008", "interval out of range")
TIME_RANGE: Final = Failure(
    "22008",
    "timestamp out of range",
    "{value} IS NULL OR year({value}) < 1 OR year({value}) > 9999",
)
_DIVISION_BY_ZERO: Final = Failure("22012", "division by zero", "{1} = 0")
_NO_MONTHS: Final = Failure(
    "0A000", "timestamps cannot be binned into intervals containing months or years",
    "{0}.months <> 0",
)  # fmt: skip
_STRIDE: Final = Failure("22008", "stride must be greater than zero")

EXTRACTED: Final = Numeric(26, 6)
EXTRACT_FIELDS: Final = {
    "millennium": "{0}.months div 12000",
    "century": "{0}.months div 1200",
    "decade": "{0}.months div 120",
    "year": "{0}.months div 12",
    "quarter": "(CASE WHEN {0}.months >= 0 THEN {0}.months % 12 div 3 + 1"
               " ELSE {0}.months % 12 div 3 - 1 END)",
    "month": "{0}.months % 12",
    "week": "{0}.days div 7",
    "day": "{0}.days",
    "hour": f"{{0}}.micros div {HOUR}",
    "minute": f"{{0}}.micros div {MINUTE} % 60",
    "second": f"CAST({{0}}.micros % {MINUTE} AS DECIMAL(20, 0)) * 0.000001BD",
    "milliseconds": f"CAST({{0}}.micros % {MINUTE} AS DECIMAL(20, 0)) * 0.001BD",
    "microseconds": f"{{0}}.micros % {MINUTE}",
    "epoch": "CAST((bigint({0}.months div 12) * 1461 + bigint({0}.months % 12) * 120"
             " + bigint({0}.days) * 4) * 21600 AS DECIMAL(20, 0))"
             " + CAST({0}.micros AS DECIMAL(20, 0)) * 0.000001BD",
}  # fmt: skip
"""Fields of an interval; a year of the epoch has 365.25 days, a month 30."""

_TRUNCATED: Final = {
    "millennium": 12_000, "century": 1_200, "decade": 120, "year": 12, "quarter": 3, "month": 1,
}  # fmt: skip
_CUT: Final = {
    "day": DAY, "hour": HOUR, "minute": MINUTE, "second": SECOND, "milliseconds": 1_000,
    "microseconds": 1,
}  # fmt: skip
TRUNC_FIELDS: Final = (*_TRUNCATED, *_CUT)


def moved(time: str, months: str, days: str, micros: str) -> str:
    """Return text for a time plus three numbers, in this order; NULL if it is out of range."""
    made = f"try_add({time}, try_multiply(INTERVAL '1' MONTH, {months}))"
    made = f"try_add({made}, try_multiply(INTERVAL '1' DAY, {days}))"
    return f"try_add({made}, try_multiply(INTERVAL '0.000001' SECOND, {micros}))"


def _numbers(pattern: str) -> list[str]:
    """Return ``pattern`` for the three fields: ``?`` stands for the name of each."""
    return [pattern.replace("?", name) for name in ("months", "days", "micros")]


def _negative(value: str) -> list[str]:
    return [
        f"try_subtract(0, {value}.months)",
        f"try_subtract(0, {value}.days)",
        f"try_subtract(0L, {value}.micros)",
    ]


def _arithmetic() -> list[Overload]:
    i, wide = INTERVAL, (OUT_OF_RANGE,)
    plus = whole_text(*_numbers("try_add({0}.?, {1}.?)"))
    minus = whole_text(*_numbers("try_subtract({0}.?, {1}.?)"))
    divided = scaled("{0}", "try_divide(?, {1})")
    made = [
        Overload("+", (i, i), i, plus, wide),
        Overload("-", (i, i), i, minus, wide),
        Overload("-", (i,), i, whole_text(*_negative("{0}")), wide),
        Overload("*", (i, DOUBLE), i, scaled("{0}", "(? * {1})"), wide),
        Overload("*", (DOUBLE, i), i, scaled("{1}", "(? * {0})"), wide),
        Overload("/", (i, DOUBLE), i, divided, (_DIVISION_BY_ZERO, OUT_OF_RANGE)),
    ]
    for t in (TIMESTAMP, TIMESTAMPTZ):
        made.append(Overload("-", (t, t), i, _difference(t), wide))
        made.append(Overload("+", (t, i), t, moved("{0}", *_numbers("{1}.?")), (TIME_RANGE,)))
        made.append(Overload("+", (i, t), t, moved("{1}", *_numbers("{0}.?")), (TIME_RANGE,)))
        made.append(Overload("-", (t, i), t, moved("{0}", *_negative("{1}")), (TIME_RANGE,)))
    return made


def micros_of(time: str, kind: Type) -> str:
    """Return text for the microseconds since 1970 of a time."""
    return (
        f"unix_micros({time})" if kind == TIMESTAMPTZ else f"unix_micros(CAST({time} AS TIMESTAMP))"
    )


def _difference(kind: Type) -> str:
    between = f"try_subtract({micros_of('{0}', kind)}, {micros_of('{1}', kind)})"
    made = struct_text("0", f"CAST(u div {DAY} AS INT)", f"u % {DAY}")
    return let("u", between, f"CASE WHEN u IS NOT NULL THEN {made} END")


def _age(kind: Type, one: str, other: str) -> str:
    """Return the years, months, days and time from one time to another, as a calendar counts."""
    ends = f"named_struct('a', {one}, 'b', {other})"
    sides = "named_struct('l', greatest(e.a, e.b), 's', least(e.a, e.b), 'n', e.a < e.b)"

    def clock(time: str) -> str:
        return f"pmod({micros_of(time, kind)}, {DAY})"

    parts = (
        "named_struct('m', (year(p.l) - year(p.s)) * 12 + month(p.l) - month(p.s),"
        f" 'd', day(p.l) - day(p.s), 'u', {clock('p.l')} - {clock('p.s')},"
        " 'k', day(last_day(p.s)), 'n', p.n)"
    )
    borrowed = (
        f"named_struct('m', q.m, 'd', q.d - CAST(q.u < 0 AS INT), 'k', q.k, 'n', q.n,"
        f" 'u', CASE WHEN q.u < 0 THEN q.u + {DAY} ELSE q.u END)"
    )
    whole = (
        "named_struct('m', r.m - CAST(r.d < 0 AS INT), 'u', r.u, 'n', r.n,"
        " 'd', CASE WHEN r.d < 0 THEN r.d + r.k ELSE r.d END)"
    )
    made = (
        f"CASE WHEN t.n THEN {struct_text('-t.m', '-t.d', '-t.u')}"
        f" ELSE {struct_text('t.m', 't.d', 't.u')} END"
    )
    text = let("t", whole, made)
    text = let("r", borrowed, text)
    text = let("q", parts, text)
    text = let("p", sides, text)
    return let("e", ends, f"CASE WHEN e.a IS NOT NULL AND e.b IS NOT NULL THEN {text} END")


def _ages() -> list[Overload]:
    made = []
    for t in (TIMESTAMPTZ, TIMESTAMP):
        today = f"CAST(current_date() AS {t.spark_name})"
        made.append(Overload("age", (t, t), INTERVAL, _age(t, "{0}", "{1}")))
        made.append(Overload("age", (t,), INTERVAL, _age(t, today, "{0}"), volatile=True))
    return made


def _fields() -> list[Overload]:
    made = [
        Overload(f"extract {field}", (INTERVAL,), EXTRACTED,
                 f"CAST({text} AS {EXTRACTED.spark_name})")
        for field, text in EXTRACT_FIELDS.items()
    ]  # fmt: skip
    for field, unit in _TRUNCATED.items():
        text = struct_text(f"{{0}}.months - {{0}}.months % {unit}", "0", "0L")
        made.append(Overload(f"date_trunc {field}", (INTERVAL,), INTERVAL, text, guarded=True))
    for field, unit in _CUT.items():
        micros = "0L" if field == "day" else f"{{0}}.micros - {{0}}.micros % {unit}"
        text = struct_text("{0}.months", "{0}.days", micros)
        made.append(Overload(f"date_trunc {field}", (INTERVAL,), INTERVAL, text, guarded=True))
    return made


def _justified() -> list[Overload]:
    """Return the functions that make days of 24 hours, and months of 30 days."""
    hours = (
        f"named_struct('m', {{0}}.months, 'd', try_add({{0}}.days, CAST({{0}}.micros div {DAY} AS"
        f" INT)), 'u', {{0}}.micros % {DAY})"
    )
    days = (
        "named_struct('m', try_cast({0}.months + {0}.days div 30 AS INT), 'd', {0}.days % 30,"
        " 'u', {0}.micros)"
    )
    all_days = f"(bigint({{0}}.days) + {{0}}.micros div {DAY})"
    both = (
        f"named_struct('m', try_cast({{0}}.months + {all_days} div 30 AS INT),"
        f" 'd', CAST({all_days} % 30 AS INT), 'u', {{0}}.micros % {DAY})"
    )
    month = _carried("j", "md", 30, "(j.d < 0 OR (j.d = 0 AND j.u < 0))",
                     "(j.d > 0 OR (j.d = 0 AND j.u > 0))")  # fmt: skip
    only_month = _carried("j", "md", 30, "j.d < 0", "j.d > 0")
    day = _carried("h", "du", DAY, "h.u < 0", "h.u > 0")
    made = struct_text("i.m", "i.d", "i.u")
    done = f"CASE WHEN i.m IS NOT NULL AND i.d IS NOT NULL THEN {made} END"
    texts = {
        "justify_hours": let("h", hours, let("i", day, done)),
        "justify_days": let("j", days, let("i", only_month, done)),
        "justify_interval": let("j", both, let("h", month, let("i", day, done))),
    }
    wide = (OUT_OF_RANGE,)
    return [Overload(name, (INTERVAL,), INTERVAL, text, wide) for name, text in texts.items()]


def _carried(of: str, fields: str, unit: int, below: str, above: str) -> str:
    """Return three numbers of which two have one sign: one ``unit`` is taken over if need be."""
    large, small = fields[0], fields[1]
    carry = (
        f"CASE WHEN {of}.{large} > 0 AND {below} THEN 1"
        f" WHEN {of}.{large} < 0 AND {above} THEN -1 ELSE 0 END"
    )
    changed = {
        large: f"{of}.{large} - {carry}",
        small: f"{of}.{small} + {unit} * {carry}",
    }
    parts = ", ".join(f"'{name}', {changed.get(name, f'{of}.{name}')}" for name in ("m", "d", "u"))
    return f"named_struct({parts})"


def _made() -> list[Overload]:
    seconds = "rint({6} * 1000000D)"
    fits = f"{seconds} >= -9223372036854775808D AND {seconds} < 9223372036854775808D"
    clock = f"(bigint({{4}}) * {HOUR} + bigint({{5}}) * {MINUTE})"
    text = whole_text(
        "try_cast(bigint({0}) * 12 + {1} AS INT)",
        "try_cast(bigint({2}) * 7 + {3} AS INT)",
        f"try_add({clock}, CASE WHEN {fits} THEN try_cast({seconds} AS BIGINT) END)",
    )
    kinds = (*(INTEGER,) * 6, DOUBLE)
    return [Overload("make_interval", kinds, INTERVAL, text, (OUT_OF_RANGE,))]


def _bins() -> list[Overload]:
    """Return ``date_bin``: the last of equal steps from an origin that is not after a time."""
    stride = f"try_add(try_multiply(bigint({{0}}.days), {DAY}), {{0}}.micros)"
    failures = (_NO_MONTHS, _STRIDE, TIME_RANGE)
    made = []
    for t, back in (
        (TIMESTAMPTZ, "timestamp_micros(%s)"),
        (TIMESTAMP, "CAST(timestamp_micros(%s) AS TIMESTAMP_NTZ)"),
    ):
        source, origin = micros_of("{1}", t), micros_of("{2}", t)
        binned = back % f"{source} - pmod({source} - {origin}, {stride})"
        text = f"CASE WHEN {stride} > 0 AND {{0}}.months = 0 THEN {binned} END"
        made.append(Overload("date_bin", (INTERVAL, t, t), t, text, failures))
    return made


def qualified(qualifier: Qualifier) -> Overload:
    """Return the cast to an interval of some fields, or with some digits of seconds."""
    months = "{0}.months - {0}.months % 12" if qualifier.last == "year" else "{0}.months"
    days = "0" if qualifier.last in {"year", "month"} else "{0}.days"
    unit = {"hour": HOUR, "minute": MINUTE}.get(qualifier.last or "", 1)
    micros = f"{{0}}.micros - {{0}}.micros % {unit}L"
    if qualifier.last in {"year", "month", "day"}:
        micros = "0L"
    elif qualifier.digits is not None:
        scale = 10 ** (6 - qualifier.digits)
        half = f"(CASE WHEN {{0}}.micros < 0 THEN -{scale // 2}L ELSE {scale // 2}L END)"
        micros = f"try_add({{0}}.micros, {half}) div {scale} * {scale}"
    text = whole_text(months, days, micros)
    return Overload(f"interval {qualifier}", (INTERVAL,), INTERVAL, text, (OUT_OF_RANGE,))


OVERLOADS = (
    *_arithmetic(),
    *_ages(),
    *_fields(),
    *_justified(),
    *_made(),
    *_bins(),
)
