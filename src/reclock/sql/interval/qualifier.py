"""The qualifier after ``interval``: the fields it keeps, and the digits of its seconds.

``interval '1' year`` says the unit of a number without one, and what is shorter than its last
field is cut off; ``interval(3)`` and ``second(3)`` round the seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reclock.errors import InvalidSyntax, InvalidValue
from reclock.interval import HOUR, MINUTE, MONTHS_PER_YEAR, Interval

FIELDS: Final = ("year", "month", "day", "hour", "minute", "second")
_RANGES: Final = {
    *((field, field) for field in FIELDS), ("year", "month"), ("day", "hour"), ("day", "minute"),
    ("day", "second"), ("hour", "minute"), ("hour", "second"), ("minute", "second"),
}  # fmt: skip
_DIGITS: Final = 6
_KEPT: Final = {"hour": HOUR, "minute": MINUTE}


@dataclass(frozen=True, slots=True)
class Qualifier:
    """The first and last field, if given, and the digits of seconds.

    >>> str(Qualifier("day", "second", 3)), str(Qualifier("year", "year")), str(PLAIN)
    ('day to second(3)', 'year', '')
    """

    first: str | None = None
    last: str | None = None
    digits: int | None = None

    def __post_init__(self) -> None:
        """Refuse what SQL does not have."""
        if self.first is not None and (self.first, self.last) not in _RANGES:
            message = f'syntax error: an interval has no fields "{self.first} to {self.last}"'
            hint = "fields are year to month, or day, hour, minute and second, in this order"
            raise InvalidSyntax(message, hint=hint)
        if self.digits is not None and not 0 <= self.digits <= _DIGITS:
            message = f"interval({self.digits}) precision must be between 0 and {_DIGITS}"
            raise InvalidValue(message)

    @property
    def unit(self) -> str:
        """The unit of the last number, if the text says none."""
        return self.last or "second"

    def applied(self, value: Interval) -> Interval:
        """Return ``value`` without what is shorter than the last field, seconds rounded."""
        months, days, micros = value.months, value.days, value.microseconds
        if self.last == "year":
            months = int(months / MONTHS_PER_YEAR) * MONTHS_PER_YEAR
        if self.last in {"year", "month"}:
            days = 0
        if self.last in {"year", "month", "day"}:
            micros = 0
        unit = _KEPT.get(self.last or "", 1)
        micros = _toward_zero(micros, unit)
        if self.digits is not None:
            scale = 10 ** (_DIGITS - self.digits)
            size = (abs(micros) + scale // 2) // scale * scale
            micros = size if micros >= 0 else -size
        return Interval(months, days, micros)

    def __str__(self) -> str:
        text = self.first or ""
        if self.last != self.first:
            text += f" to {self.last}"
        return text if self.digits is None else f"{text}({self.digits})"


def _toward_zero(value: int, unit: int) -> int:
    size = abs(value) // unit * unit
    return size if value >= 0 else -size


PLAIN: Final = Qualifier()
"""``interval`` alone: everything is kept."""
