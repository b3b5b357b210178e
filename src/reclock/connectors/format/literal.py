r"""Text as a value of a SQL type, read as PostgreSQL's input functions read it.

``reader_of`` gives the function from text to the value that Arrow takes for the type, which
raises ``Fault`` for text that is none. JSON uses it for values that come as strings, CSV for
all of them. ::

    integers       [+-]digits, in range
    numeric(p,s)   a number, rounded half away from zero to s digits; what then needs more
                   than p is a fault
    floats         a number that does not overflow, NaN, [-]Infinity
    boolean        true, false, yes, no, on, off, 1, 0 and their beginnings
    date           YYYY-MM-DD
    timestamp      YYYY-MM-DD[(T| )HH[:MM[:SS[.digits]]][Z|±HH[[:]MM]]], rounded to
                   microseconds; the zone, if there is one, says nothing
    timestamptz    the same, and the zone counts; without one it is UTC
    interval       as PostgreSQL reads it: 1 year 2 days 03:00, P1Y2DT3H
    bytea          \x and hexadecimal digits, or the escape form
    json           a JSON value, kept in canonical form
    arrays         {a,b,"c d",NULL}

Blanks around a value do not count, except in text and bytea. Years are 0001 to 9999.
Invariant: time and memory are linear in the text, however large the number it writes.

Tests: tests/connectors/format/test_literal.py.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from reclock.connectors.format.array_literal import elements_of
from reclock.connectors.format.canonical import canonical_text
from reclock.connectors.format.decoder import Fault, shown
from reclock.errors import Error
from reclock.sql import types as t
from reclock.sql.interval import parse_interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.sql.types import Type

    Reader = Callable[[str], Any]

RANGES: Final[dict[Type, int]] = {t.SMALLINT: 2**15, t.INTEGER: 2**31, t.BIGINT: 2**63}
DAY: Final = 86_400_000_000
"""Microseconds of a day."""

FIRST_DAY: Final = date.min.toordinal() - date(1970, 1, 1).toordinal()
LAST_DAY: Final = date.max.toordinal() - date(1970, 1, 1).toordinal()

BLANKS: Final = " \t\n\r\f\v"
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE: Final = {"nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"}
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_MOMENT: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?)?"
    r" ?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_TRUE: Final = {"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"}
_FALSE: Final = {"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"}
_ESCAPED: Final = re.compile(rb"\\(\\|[0-3][0-7]{2})")
_EXACT: Final = Context(prec=t.MAX_PRECISION * 2, rounding=ROUND_HALF_UP)
_ONE: Final = tuple(Decimal(1).scaleb(-scale) for scale in range(t.MAX_PRECISION + 1))
_LIMIT: Final = tuple(Decimal(10) ** digits for digits in range(t.MAX_PRECISION + 1))


@lru_cache(maxsize=1024)
def reader_of(kind: Type) -> Reader:
    """Return how text becomes a value of ``kind``.

    >>> from reclock.sql.types import BIGINT, DATE, Numeric
    >>> reader_of(BIGINT)(" 42 "), reader_of(Numeric(4, 1))("2.25")
    (42, Decimal('2.3'))
    >>> reader_of(BIGINT)("4 2")
    Traceback (most recent call last):
    reclock.connectors.format.decoder.Fault: 4 2 is not of type bigint
    """
    if isinstance(kind, t.Numeric):
        return lambda text: numeric(text.strip(BLANKS), kind)
    if isinstance(kind, t.Array):
        each = reader_of(kind.element)
        return lambda text: [e if e is None else each(e) for e in elements_of(text, kind)]
    if kind in RANGES:
        return lambda text: integer(text.strip(BLANKS), kind)
    if kind in t.FLOATS:
        return lambda text: floating(text.strip(BLANKS), kind)
    if isinstance(kind, t.Simple) and kind in _SIMPLE:
        return _SIMPLE[kind]
    message = f"no literals of type {kind}"
    raise NotImplementedError(message)


def wrong(value: object, kind: Type) -> Fault:
    """Return the fault of a value that is not of its type."""
    return Fault(f"{shown(value)} is not of type {kind}")


def out_of_range(value: object, kind: Type) -> Fault:
    """Return the fault of a value that its type has no place for."""
    return Fault(f"{shown(value)} is out of range for type {kind}")


def integer(text: str, kind: Type) -> int:
    """Return the integer that ``text`` writes."""
    if _INTEGER.fullmatch(text) is None:
        raise wrong(text, kind)
    if len(text) > 20:
        text = text[0] + text[1:].lstrip("0")
        if len(text) > 20:
            raise out_of_range(text, kind)
    return in_range(int(text), kind)


def in_range(number: int, kind: Type) -> int:
    """Return ``number`` if the integer type ``kind`` has it."""
    most = RANGES[kind]
    if not -most <= number < most:
        raise out_of_range(number, kind)
    return number


def numeric(text: str, kind: t.Numeric) -> Decimal:
    """Return the number that ``text`` writes, rounded to the scale."""
    if _NUMBER.fullmatch(text) is None:
        raise wrong(text, kind)
    try:
        number = Decimal(text)
        rounded = number.quantize(_ONE[kind.scale], context=_EXACT)
        fits = rounded.copy_abs() < _LIMIT[kind.precision - kind.scale]
    except InvalidOperation:  # far more digits than any numeric has
        fits = False
    if not fits:
        raise out_of_range(text, kind)
    return rounded


def floating(text: str, kind: Type) -> float:
    """Return the float nearest to the number that ``text`` writes; of a real, by its double."""
    if _NUMBER.fullmatch(text) is None:
        if text.lower() not in _NOT_FINITE:
            raise wrong(text, kind)
        return float(text)
    number = float(text)
    return fitting(number, text, kind)


def fitting(number: float, written: object, kind: Type) -> float:
    """Return ``number`` if it is finite in ``kind``."""
    with np.errstate(over="ignore"):
        if not np.isfinite(np.float32(number) if kind == t.REAL else number):
            raise out_of_range(written, kind)
    return number


def boolean(text: str) -> bool:
    """Return the boolean that ``text`` stands for."""
    lowered = text.strip(BLANKS).lower()
    if lowered in _TRUE or lowered in _FALSE:
        return lowered in _TRUE
    raise wrong(text, t.BOOLEAN)


def day(text: str) -> int:
    """Return a date as days since 1970-01-01."""
    found = _DATE.fullmatch(text.strip(BLANKS))
    try:
        if found is not None:
            return date(*map(int, found.groups())).toordinal() - 719_163
    except ValueError:  # no such day
        pass
    raise wrong(text, t.DATE)


def timestamp(text: str) -> int:
    """Return a time without its zone as microseconds since 1970-01-01."""
    return _moment(text, t.TIMESTAMP)[0]


def timestamptz(text: str) -> int:
    """Return a time as microseconds since 1970-01-01 in UTC."""
    moment, offset = _moment(text, t.TIMESTAMPTZ)
    return in_time(moment - offset, text, t.TIMESTAMPTZ)


def in_time(micros: int, written: object, kind: Type) -> int:
    """Return ``micros`` if they are in the years 0001 to 9999."""
    if not FIRST_DAY * DAY <= micros < (LAST_DAY + 1) * DAY:
        raise out_of_range(written, kind)
    return micros


def _moment(text: str, kind: Type) -> tuple[int, int]:
    """Return a local time and its offset from UTC, in microseconds."""
    found = _MOMENT.fullmatch(text.strip(BLANKS))
    if found is None:
        raise wrong(text, kind)
    days, hours, minutes, seconds, fraction, zone = found.groups()
    clock = [int(part or 0) for part in (hours, minutes, seconds)]
    offset = _offset(zone)
    if clock[0] > 23 or max(clock) > 59 or offset is None:
        raise wrong(text, kind)
    try:
        since = day(days)
    except Fault as fault:
        raise wrong(text, kind) from fault
    digits = (fraction or "").ljust(7, "0")
    micros = int(digits[:6]) + (digits[6] >= "5")
    total = ((clock[0] * 60 + clock[1]) * 60 + clock[2]) * 1_000_000 + micros
    return in_time(since * DAY + total, text, kind), offset


def _offset(zone: str | None) -> int | None:
    """Return the offset of a zone in microseconds; None if there is no such."""
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        return None
    size = (hours * 60 + minutes) * 60_000_000
    return -size if zone[0] == "-" else size


def _interval(text: str) -> dict[str, int]:
    try:
        value = parse_interval(text)
    except Error as error:
        if error.code in {"22008", "22015"}:
            raise out_of_range(text, t.INTERVAL) from error
        raise wrong(text, t.INTERVAL) from error
    return {"days": value.days, "micros": value.microseconds, "months": value.months}


def _bytea(text: str) -> bytes:
    """Return bytes from the hexadecimal or the escape form."""
    try:
        if text.startswith("\\x"):
            return bytes.fromhex(text[2:])
        raw = text.encode()
    except ValueError as error:
        raise wrong(text, t.BYTEA) from error
    if b"\\" in _ESCAPED.sub(b"", raw):
        raise wrong(text, t.BYTEA)
    return _ESCAPED.sub(lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 8)]), raw)


def _json(text: str) -> str:
    try:
        return canonical_text(text)
    except Fault as fault:
        raise wrong(text, t.JSON) from fault


def _text(text: str) -> str:
    return text


_SIMPLE: Final[dict[Type, Reader]] = {
    t.BOOLEAN: boolean,
    t.TEXT: _text,
    t.BYTEA: _bytea,
    t.DATE: day,
    t.TIMESTAMP: timestamp,
    t.TIMESTAMPTZ: timestamptz,
    t.INTERVAL: _interval,
    t.JSON: _json,
}
