"""Numbers and units, added up with PostgreSQL's rules for fractions.

A fraction of a unit goes down to the next shorter kind: of a year to whole months, of a month
or week to days and then microseconds, of a day and shorter to microseconds. Each of the sums has
PostgreSQL's width: one that does not fit is ``FieldOverflow``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reclock.errors import InvalidValue
from reclock.interval import DAY, DAYS_PER_MONTH, MONTHS_PER_YEAR, Interval

_INT: Final = 2**31
_LONG: Final = 2**63


class BadFormat(Exception):
    """The text is no interval in this form."""


class FieldOverflow(Exception):
    """A number in the text is larger than an interval can have."""


@dataclass(slots=True)
class Amount:
    """What has been read so far."""

    years: int = 0
    months: int = 0
    days: int = 0
    micros: int = 0

    def add_micros(self, value: int, fraction: float, unit: int) -> None:
        """Add ``value`` and a fraction of a ``unit`` of microseconds."""
        self.micros = _long(self.micros + _long(value * unit))
        self.add_part(fraction, unit)

    def add_part(self, fraction: float, unit: int) -> None:
        """Add a fraction of a ``unit`` of microseconds, rounded."""
        exact = fraction * unit
        whole = int(exact)
        rest = exact - whole
        self.micros = _long(self.micros + whole + (rest > 0.5) - (rest < -0.5))

    def add_days(self, value: int, fraction: float, unit: int) -> None:
        """Add ``value`` and a fraction of a ``unit`` of days."""
        self.days = _int(self.days + _int(_int(value) * unit))
        self.add_day_part(fraction, unit)

    def add_day_part(self, fraction: float, unit: int) -> None:
        """Add a fraction of a ``unit`` of days: whole ones, and the rest as microseconds."""
        exact = fraction * unit
        self.days = _int(self.days + int(exact))
        self.add_part(exact - int(exact), DAY)

    def add_months(self, value: int, fraction: float) -> None:
        """Add months."""
        self.months = _int(self.months + _int(value))
        self.add_day_part(fraction, DAYS_PER_MONTH)

    def add_years(self, value: int, fraction: float, unit: int) -> None:
        """Add ``value`` and a fraction of a ``unit`` of years."""
        self.years = _int(self.years + _int(_int(value) * unit))
        self.months = _int(self.months + round(fraction * unit * MONTHS_PER_YEAR))

    def negated(self) -> Amount:
        """Return the same back in time."""
        return Amount(_int(-self.years), _int(-self.months), _int(-self.days), _long(-self.micros))

    def interval(self) -> Interval:
        """Return the three numbers; 22008 if years and months are too many together."""
        months = self.years * MONTHS_PER_YEAR + self.months
        if not -_INT <= months < _INT:
            message = "interval out of range"
            raise InvalidValue(message, detail=f"it has {months} months", code="22008")
        return Interval(months, self.days, self.micros)


def _int(value: int) -> int:
    if not -_INT <= value < _INT:
        raise FieldOverflow
    return value


def _long(value: int) -> int:
    if not -_LONG <= value < _LONG:
        raise FieldOverflow
    return value
