"""Intervals in plain Python, with PostgreSQL's meaning: the judge of ``interval_text``.

Written from PostgreSQL's rules with Python's exact numbers and calendar, not from the texts.
"""

from __future__ import annotations

import calendar
import math
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from reclock.errors import Error
from reclock.interval import DAY, HOUR, MINUTE, SECOND, Interval

if TYPE_CHECKING:
    from collections.abc import Callable

_UNITS: Final = {
    "day": DAY, "hour": HOUR, "minute": MINUTE, "second": SECOND, "milliseconds": 1_000,
    "microseconds": 1,
}  # fmt: skip
_MONTHS: Final = {
    "millennium": 12_000, "century": 1_200, "decade": 120, "year": 12, "quarter": 3, "month": 1,
}  # fmt: skip


class OutOfRange(Error):
    """A result that no interval, or no time, is."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="22008")


def _made(months: int, days: int, micros: int) -> Interval:
    try:
        return Interval(months, days, micros)
    except Error as error:
        message = "interval out of range"
        raise OutOfRange(message) from error


def plus(a: Any, b: Any, sign: int = 1) -> Any:
    """Return the sum of two intervals, or of a time and an interval."""
    if isinstance(a, Interval) and isinstance(b, Interval):
        return _made(
            a.months + sign * b.months,
            a.days + sign * b.days,
            a.microseconds + sign * b.microseconds,
        )
    time, span = (b, a) if isinstance(a, Interval) else (a, b)
    return moved(time, sign * span.months, sign * span.days, sign * span.microseconds)


def moved(time: datetime, months: int, days: int, micros: int) -> datetime:
    """Return a time after months, then days, then microseconds."""
    at = time.year * 12 + time.month - 1 + months
    year, month = at // 12, at % 12 + 1
    try:
        last = calendar.monthrange(year, month)[1]
        found = time.replace(year=year, month=month, day=min(time.day, last))
        return found + timedelta(days=days, microseconds=micros)
    except (ValueError, OverflowError, calendar.IllegalMonthError) as error:
        message = "timestamp out of range"
        raise OutOfRange(message) from error


def difference(a: datetime, b: datetime) -> Interval:
    """Return days and time between two times."""
    return Interval.of(a - b)


def negated(a: Interval) -> Interval:
    """Return the interval back in time."""
    return _made(-a.months, -a.days, -a.microseconds)


def scaled(a: Interval, by: Callable[[float], float]) -> Interval:
    """Return each number times or by a double, fractions handed down."""

    def rounded(x: float) -> float:
        return float(round(x * 1e6)) / 1e6 if abs(x) < 1e15 else x

    parts = [by(float(x)) for x in (a.months, a.days, a.microseconds)]
    if any(math.isnan(x) or math.isinf(x) for x in parts):
        message = "interval out of range"
        raise OutOfRange(message)
    months, days = int(parts[0]), int(parts[1])
    of_month = rounded((parts[0] - months) * 30)
    seconds = rounded((parts[1] - days + of_month - int(of_month)) * 86_400)
    if abs(seconds) >= 86_400:
        extra = int(seconds / 86_400)
        days, seconds = days + extra, seconds - extra * 86_400
    return _made(months, days + int(of_month), round(parts[2] + seconds * 1e6))


def divided(a: Interval, by: float) -> Interval:
    """Return an interval by a number."""
    if by == 0:
        raise ZeroDivisionError
    return scaled(a, lambda x: x / by)


def age(a: datetime, b: datetime) -> Interval:
    """Return years, months, days and time between two times, as a calendar counts them."""
    late, early = max(a, b), min(a, b)
    months = (late.year - early.year) * 12 + late.month - early.month
    days = late.day - early.day
    micros = (_clock(late) - _clock(early)) // timedelta(microseconds=1)
    if micros < 0:
        micros, days = micros + DAY, days - 1
    if days < 0:
        days, months = days + calendar.monthrange(early.year, early.month)[1], months - 1
    sign = -1 if a < b else 1
    return Interval(sign * months, sign * days, sign * micros)


def _clock(time: datetime) -> timedelta:
    return time - time.replace(hour=0, minute=0, second=0, microsecond=0)


def _cut(value: int, unit: int) -> int:
    return int(math.copysign(1, value)) * (abs(value) // unit)


def _rest(value: int, unit: int) -> int:
    return value - _cut(value, unit) * unit


def justified(a: Interval, *, hours: bool, days: bool) -> Interval:
    """Return an interval with days of 24 hours, and months of 30 days, as asked."""
    m, d, u = a.months, a.days, a.microseconds
    if hours:
        d, u = d + _cut(u, DAY), _rest(u, DAY)
    if days:
        m, d = m + _cut(d, 30), _rest(d, 30)
        below, above = (d, u if hours else 0) < (0, 0), (d, u if hours else 0) > (0, 0)
        carry = 1 if m > 0 and below else -1 if m < 0 and above else 0
        m, d = m - carry, d + 30 * carry
    if hours:
        carry = 1 if d > 0 and u < 0 else -1 if d < 0 and u > 0 else 0
        d, u = d - carry, u + DAY * carry
    return _made(m, d, u)


def truncated(a: Interval, field: str) -> Interval:
    """Return an interval without what is shorter than ``field``."""
    if field in _MONTHS:
        return Interval(a.months - _rest(a.months, _MONTHS[field]), 0, 0)
    if field == "day":
        return Interval(a.months, a.days, 0)
    return Interval(a.months, a.days, a.microseconds - _rest(a.microseconds, _UNITS[field]))


def extracted(a: Interval, field: str) -> Decimal:  # noqa: PLR0911 - one per field
    """Return a field of an interval."""
    match field:
        case "month":
            return Decimal(_rest(a.months, 12))
        case "quarter":
            sign = 1 if a.months >= 0 else -1
            return Decimal(sign * (abs(a.months) % 12 // 3 + 1))
        case "week":
            return Decimal(_cut(a.days, 7))
        case "day":
            return Decimal(a.days)
        case "hour":
            return Decimal(_cut(a.microseconds, HOUR))
        case "minute":
            return Decimal(_rest(_cut(a.microseconds, MINUTE), 60))
        case "second" | "milliseconds" | "microseconds":
            return Decimal(_rest(a.microseconds, MINUTE)) / _UNITS[field]
        case "epoch":
            years, months = _cut(a.months, 12), _rest(a.months, 12)
            days = Decimal(years) * Decimal("365.25") + months * 30 + a.days
            return days * 86_400 + Decimal(a.microseconds) / SECOND
    return Decimal(_cut(a.months, _MONTHS[field]))
