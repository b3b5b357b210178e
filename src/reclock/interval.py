"""A length of time as PostgreSQL has it: months, days and microseconds, kept apart.

Definition. A month has 28 to 31 days and a day 23 to 25 hours, so none of the three numbers
is a part of another: ``'1 mon'`` after January 31st is the end of February. SQL compares two
intervals by their ``span``, which takes a month for 30 days and a day for 24 hours:
``'1 mon' = '30 days'``. Their texts differ all the same, and so do these values: ``==`` is of
the three numbers, and ``<`` is of the spans, then of the numbers.

>>> Interval(months=1) == Interval(days=30), Interval(months=1).span == Interval(days=30).span
(False, True)
>>> str(Interval(-14, 3, -1_500_000))
'-1 years -2 mons +3 days -00:00:01.5'

Tests: tests/test_interval.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import total_ordering
from typing import Final

from reclock.errors import InvalidValue

DAYS_PER_MONTH: Final = 30
MONTHS_PER_YEAR: Final = 12
SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
"""In microseconds."""

_RANGES: Final = {"months": 2**31, "days": 2**31, "microseconds": 2**63}


@total_ordering
@dataclass(frozen=True, slots=True)
class Interval:
    """Months, days and microseconds; each may be negative."""

    months: int = 0
    days: int = 0
    microseconds: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that PostgreSQL cannot hold."""
        for name, most in _RANGES.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                message = f"{name} of an interval must be an int, not {type(value).__name__}"
                raise InvalidValue(message, code="42804")
            if not -most <= value < most:
                message = "interval out of range"
                raise InvalidValue(message, detail=f"{name} is {value}", code="22008")

    @classmethod
    def of(cls, value: timedelta) -> Interval:
        """Return the days and microseconds of a timedelta.

        >>> Interval.of(timedelta(hours=-25))
        Interval(months=0, days=-1, microseconds=-3600000000)
        """
        days, rest = divmod(abs(value) // timedelta(microseconds=1), DAY)
        sign = -1 if value < timedelta() else 1
        return cls(0, sign * days, sign * rest)

    @property
    def span(self) -> int:
        """What SQL compares: microseconds, with months of 30 days and days of 24 hours."""
        return (self.months * DAYS_PER_MONTH + self.days) * DAY + self.microseconds

    def timedelta(self) -> timedelta:
        """Return days of 24 hours and microseconds; an interval with months has no such value.

        >>> Interval(days=1, microseconds=500).timedelta()
        datetime.timedelta(days=1, microseconds=500)
        """
        if self.months:
            message = f"interval {self} is no timedelta: a month has no fixed number of days"
            raise InvalidValue(message, hint="add it to a timestamp in SQL, or read its span")
        try:
            return timedelta(days=self.days, microseconds=self.microseconds)
        except OverflowError as cause:
            message = f"interval {self} is out of the range of Python's timedelta"
            raise InvalidValue(message, code="22008") from cause

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.days, -self.microseconds)

    def __bool__(self) -> bool:
        return (self.months, self.days, self.microseconds) != (0, 0, 0)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Interval):
            return NotImplemented
        return self._order() < other._order()

    def _order(self) -> tuple[int, int, int, int]:
        return (self.span, self.months, self.days, self.microseconds)

    def __str__(self) -> str:
        """Return PostgreSQL's text: each part with its sign, what is zero left out."""
        years, months = _parts(self.months, MONTHS_PER_YEAR)
        text, before = "", False
        for value, unit in ((years, "year"), (months, "mon"), (self.days, "day")):
            if value:
                plus = "+" if before and value > 0 else ""
                text += f"{' ' if text else ''}{plus}{value} {unit}{'' if value == 1 else 's'}"
                before = value < 0
        if text and not self.microseconds:
            return text
        sign = "-" if self.microseconds < 0 else "+" if before else ""
        return f"{text}{' ' if text else ''}{sign}{_clock(abs(self.microseconds))}"


def _parts(value: int, unit: int) -> tuple[int, int]:
    """Divide toward zero, as C does."""
    whole, rest = divmod(abs(value), unit)
    return (whole, rest) if value >= 0 else (-whole, -rest)


def _clock(microseconds: int) -> str:
    seconds, fraction = divmod(microseconds, SECOND)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{clock}.{fraction:06}".rstrip("0") if fraction else clock
