"""Interval literals: days and shorter, or months and years, never both."""

from __future__ import annotations

import re
from datetime import timedelta

from reclock.errors import NotSupported, StatementError
from reclock.sql.types import INTERVAL, MONTHS, Simple

_SECONDS = {
    "microsecond": 1e-6, "us": 1e-6, "millisecond": 1e-3, "ms": 1e-3, "second": 1.0, "sec": 1.0,
    "s": 1.0, "minute": 60.0, "min": 60.0, "m": 60.0, "hour": 3600.0, "hr": 3600.0,
    "h": 3600.0, "day": 86400.0, "d": 86400.0, "week": 604800.0, "w": 604800.0,
}  # fmt: skip
_MONTHS = {"month": 1, "mon": 1, "quarter": 3, "year": 12, "yr": 12, "y": 12, "decade": 120}
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_CLOCK = re.compile(r"\s*([+-]?)(\d+):(\d{2})(?::(\d{2}(?:\.\d+)?))?")


_EXAMPLE = "write numbers and units, such as 2 days 03:00 or 5 months"


def parse_interval(text: str) -> tuple[timedelta | int, Simple]:
    """Return the value of an interval and which kind it is; months are counted.

    >>> parse_interval("1 day 2 hours")
    (datetime.timedelta(days=1, seconds=7200), Simple(name='interval'))
    >>> parse_interval("1 year 2 months")
    (14, Simple(name='interval year to month'))
    """
    try:
        return _parsed(text)
    except OverflowError:
        message = f'interval out of range: "{text:.60}"'
        hint = "write one of less than a few million years"
        raise StatementError(message, code="22008", hint=hint) from None


def _parsed(text: str) -> tuple[timedelta | int, Simple]:
    at, months, span, used = 0, 0.0, timedelta(), set()
    stripped = text.strip()
    while at < len(stripped):
        clock = _CLOCK.match(stripped, at)
        part = None if clock else _PART.match(stripped, at)
        if clock:
            sign = -1 if clock[1] == "-" else 1
            span += sign * timedelta(
                hours=int(clock[2]), minutes=int(clock[3]), seconds=float(clock[4] or 0)
            )
            used.add(INTERVAL)
            at = clock.end()
            continue
        unit = part[2].lower() if part else ""
        unit = unit if unit in _SECONDS or unit in _MONTHS else unit.removesuffix("s")
        if part is None or (unit not in _SECONDS and unit not in _MONTHS):
            message = f'invalid input syntax for type interval: "{text}"'
            raise StatementError(message, code="22007", hint=_EXAMPLE)
        count = float(part[1])
        if unit in _MONTHS:
            months += count * _MONTHS[unit]
            used.add(MONTHS)
        else:
            span += timedelta(microseconds=round(count * _SECONDS[unit] * 1_000_000))
            used.add(INTERVAL)
        at = part.end()
    if len(used) > 1:
        message = "an interval of months and days together is not supported"
        raise NotSupported(message, hint="add two intervals, one of months and one of days")
    if not used:
        message = f'invalid input syntax for type interval: "{text}"'
        raise StatementError(message, code="22007", hint=_EXAMPLE)
    if used == {MONTHS}:
        return round(months), MONTHS
    return span, INTERVAL
