"""Intervals as Spark SQL: a struct of three numbers, and texts over it that never raise.

Spark's own intervals are either months or days and time; the one that is both can be neither
stored nor compared. So an interval is ``STRUCT<days: INT, micros: BIGINT, months: INT>``, which
Arrow, runs and hashes take as it is, and SQL's rules are texts here. Structs compare number by
number, SQL compares spans: what sorts, groups or joins uses ``key_text`` (``comparable``).

Tests: tests/session/test_intervals_spark.py, against PostgreSQL.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from reclock.interval import DAY, HOUR, MINUTE, SECOND
from reclock.sql.plan.spark_literal import quote_name, quote_string
from reclock.sql.types import INTERVAL, Array, Numeric, Record

if TYPE_CHECKING:
    from reclock.sql.types import Type

KEY: Final = Numeric(24, 0)
"""The type of a span in microseconds: months of 32 bits, 30 days each, need 73 bits."""

READER: Final = "reclock_read_interval"
"""The function of the session that reads a text: the parser itself (``spark.exact_text``)."""

_INT: Final = 2147483648
_LONG: Final = "9223372036854775808D"


def has_interval(kind: Type) -> bool:
    """Return whether values of ``kind`` may be equal without being the same."""
    match kind:
        case Array():
            return has_interval(kind.element)
        case Record():
            return any(has_interval(inside) for _, inside in kind.fields)
    return kind == INTERVAL


def key_type(kind: Type) -> Type:
    """Return the type of what values of ``kind`` are compared by.

    >>> str(key_type(Array(INTERVAL)))
    'numeric(24,0)[]'
    """
    match kind:
        case Array():
            return Array(key_type(kind.element))
        case Record():
            return Record(tuple((name, key_type(inside)) for name, inside in kind.fields))
    return KEY if kind == INTERVAL else kind


def key_text(text: str, kind: Type, depth: int = 0) -> str:
    """Return text for what a value of ``kind`` is compared by; NULL for NULL."""
    if not has_interval(kind):
        return text
    match kind:
        case Array():
            each = f"k{depth}"
            return f"transform({text}, {each} -> {key_text(each, kind.element, depth + 1)})"
        case Record():
            fields = ", ".join(
                f"{quote_string(name)}, {key_text(f'{text}.{quote_name(name)}', inside, depth)}"
                for name, inside in kind.fields
            )
            return f"CASE WHEN {text} IS NOT NULL THEN named_struct({fields}) END"
    days = f"(CAST({text}.months AS DECIMAL(10, 0)) * 30 + {text}.days)"
    return f"CAST({days} * {DAY} + {text}.micros AS {KEY.spark_name})"


def key_value(value: Any, kind: Type) -> Any:
    """Return what a constant of ``kind`` is compared by."""
    if value is None or not has_interval(kind):
        return value
    match kind:
        case Array():
            return tuple(key_value(v, kind.element) for v in value)
        case Record():
            pairs = zip(value, kind.fields, strict=True)
            return tuple(key_value(v, inside) for v, (_, inside) in pairs)
    return Decimal(value.span)


def struct_text(months: str, days: str, micros: str) -> str:
    """Return text for an interval of three numbers that are there.

    The cast lets the fields be NULL: Arrow refuses NULL as an interval whose fields cannot be.
    """
    made = f"named_struct('days', {days}, 'micros', {micros}, 'months', {months})"
    return f"CAST({made} AS {INTERVAL.spark_name})"


def whole_text(months: str, days: str, micros: str) -> str:
    """Return text for an interval of three numbers; NULL if one of them is."""
    made = struct_text("v.m", "v.d", "v.u")
    present = "v.m IS NOT NULL AND v.d IS NOT NULL AND v.u IS NOT NULL"
    given = f"named_struct('m', {months}, 'd', {days}, 'u', {micros})"
    return let("v", given, f"CASE WHEN {present} THEN {made} END")


def let(name: str, value: str, body: str) -> str:
    """Return ``body``, in which ``name`` stands for ``value``, computed once."""
    return f"transform(array({value}), {name} -> {body})[0]"


def to_text(value: str) -> str:
    """Return the text of an interval, as ``str(Interval)`` writes it."""
    x = "i"
    months, days, micros = f"{x}.months", f"{x}.days", f"{x}.micros"
    years, rest = f"({months} div 12)", f"({months} % 12)"
    clock = (
        f"concat(CASE WHEN {micros} < 0 THEN '-'"
        f" WHEN {days} < 0 OR ({days} = 0 AND {months} < 0) THEN '+' ELSE '' END, "
        f"{_two(f'abs({micros} div {HOUR})')}, ':', {_two(f'abs({micros} div {MINUTE} % 60)')}, "
        f"':', {_two(f'abs({micros} div {SECOND} % 60)')}, "
        f"CASE WHEN {micros} % {SECOND} <> 0 THEN concat('.', rtrim('0', "
        f"lpad(CAST(abs({micros} % {SECOND}) AS STRING), 6, '0'))) ELSE '' END)"
    )
    nothing = f"({months} = 0 AND {days} = 0)"
    parts = [
        _unit(years, "year"),
        _unit(rest, "mon"),
        _unit(days, "day", f"CASE WHEN {days} > 0 AND {months} < 0 THEN '+' ELSE '' END"),
        f"CASE WHEN {micros} <> 0 OR {nothing} THEN {clock} END",
    ]
    shown = f"CASE WHEN {x} IS NOT NULL THEN concat_ws(' ', {', '.join(parts)}) END"
    return let(x, value, shown)


def _two(number: str) -> str:
    """Return a number with at least two digits."""
    return f"concat(CASE WHEN {number} < 10 THEN '0' ELSE '' END, CAST({number} AS STRING))"


def _unit(number: str, unit: str, sign: str = "''") -> str:
    plural = f"CASE WHEN {number} = 1 THEN ' {unit}' ELSE ' {unit}s' END"
    shown = f"concat({sign}, CAST({number} AS STRING), {plural})"
    return f"CASE WHEN {number} <> 0 THEN {shown} END"


def scaled(value: str, by: str) -> str:
    """Return text for each number of an interval times, or by, a double: ``by`` has a hole.

    What is left of a month goes to days and of a day to microseconds, as PostgreSQL rounds
    them; NULL if the result is too large.
    """
    parts = "named_struct('m', {}, 'd', {}, 'u', {})".format(
        *(by.replace("?", f"CAST({value}.{f} AS DOUBLE)") for f in ("months", "days", "micros"))
    )
    fits = " AND ".join(f"p.{f} >= -{_INT}D AND p.{f} < {_INT}D" for f in ("m", "d"))
    whole = (
        "named_struct('m', try_cast(p.m AS INT), 'd', try_cast(p.d AS INT), 'u', p.u,"
        f" 'md', {_rounded('(p.m - try_cast(p.m AS INT)) * 30D')},"
        " 'dd', p.d - try_cast(p.d AS INT))"
    )
    rest = (
        "named_struct('m', q.m, 'd', try_add(q.d, CAST(q.md AS INT)), 'u', q.u,"
        f" 's', {_rounded('(q.dd + q.md - CAST(q.md AS INT)) * 86400D')})"
    )
    extra = "CASE WHEN abs(r.s) >= 86400D THEN CAST(r.s / 86400D AS INT) ELSE 0 END"
    split = f"named_struct('m', r.m, 'd', r.d, 'u', r.u, 's', r.s, 'e', {extra})"
    last = (
        "named_struct('m', t.m, 'd', try_add(t.d, t.e),"
        " 'u', rint(t.u + (t.s - t.e * 86400D) * 1000000D))"
    )
    made = (
        f"CASE WHEN w.d IS NOT NULL AND w.u >= -{_LONG} AND w.u < {_LONG}"
        f" THEN {struct_text('w.m', 'w.d', 'try_cast(w.u AS BIGINT)')} END"
    )
    text = let("w", last, made)
    text = let("t", split, text)
    text = let("r", rest, text)
    text = let("q", whole, text)
    return let("p", parts, f"CASE WHEN {fits} THEN {text} END")


def _rounded(text: str) -> str:
    """Round to microseconds of a second, as PostgreSQL's TSROUND."""
    return f"rint(({text}) * 1000000D) / 1000000D"
