"""The forms of PostgreSQL and of the SQL standard: numbers with units, clocks, years-months.

A port of ``ParseDateTime`` and ``DecodeInterval``. The text is split into fields; these are read
from right to left, so that a unit is known before its number. A number without a unit is a day
left of a clock or of hours, else the last field of the qualifier, else seconds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from reclock.interval import HOUR, MINUTE, MONTHS_PER_YEAR, SECOND
from reclock.sql.interval.amount import Amount, BadFormat, FieldOverflow

if TYPE_CHECKING:
    from reclock.sql.interval.qualifier import Qualifier

_MOST_FIELDS: Final = 25
_MOST_BYTES: Final = 256
_TOKEN: Final = 10
"""PostgreSQL compares so many characters of a word."""

_UNITS: Final = {
    "microsecond": "us usec usecs useconds microsecond microseconds",
    "millisecond": "ms msec msecs mseconds millisecond milliseconds",
    "second": "s sec secs second seconds",
    "minute": "m min mins minute minutes",
    "hour": "h hr hrs hour hours",
    "day": "d day days",
    "week": "w week weeks",
    "month": "mon mons month months",
    "year": "y yr yrs year years",
    "decade": "dec decs decade decades",
    "century": "c cent century centuries",
    "millennium": "mil mils millennia millennium",
    "": "qtr quarter timezone",  # words that no number may have
}
_WORDS: Final = {word[:_TOKEN]: unit for unit, words in _UNITS.items() for word in words.split()}
_IGNORED: Final = {"at", "on"}
_MICROS: Final = {
    "microsecond": 1, "millisecond": 1_000, "second": SECOND, "minute": MINUTE, "hour": HOUR,
}  # fmt: skip
_DAYS: Final = {"day": 1, "week": 7}
_YEARS: Final = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
_CLOCK: Final = frozenset({"hour", "minute", "second", "millisecond", "microsecond"})
_SECONDS: Final = frozenset({"second", "millisecond", "microsecond"})

_FIELD: Final = re.compile(
    r"(?P<clock>\d+:[\d:.]*)"
    r"|(?P<number>\d+(?![\d\-/.])|\.\d*)"
    r"|(?P<date>\d+(?P<by>[-/.])(?:\d+(?:(?P=by)(?:\d|(?P=by))*)?|(?:[^\W_]|(?P=by))*))"
    r"|(?P<signed>[+-]\s*\d[\d:.\-]*)"
    r"|(?P<special>[+-]\s*[a-z]+)"
    r"|(?P<word>(?:at|on|mon|dec|[dhmsy])(?=[\d+])|[a-z]+(?![a-z\d+\-/.]))"
    r"|(?P<mixed>[a-z]+[+\-/.\d][a-z\d+\-/_.:]*)"
    r"|(?P<space>[\s!-*,/:-@\[-`{-~])",
    re.ASCII,
)
_TIME: Final = re.compile(r"(\d+):(\d*)(?::(\d*))?(\.\d*)?", re.ASCII)
_NUMBER: Final = re.compile(r"([+-]?+\d*+)(?:(\.\d*)|-([+-]?\d*)(.*))?", re.ASCII)


def read_words(text: str, qualifier: Qualifier) -> Amount:
    """Return what ``text`` says; raise ``BadFormat`` if it has another form."""
    reader = _Reader(qualifier)
    fields = _fields(text)
    for at in reversed(range(len(fields))):
        reader.take(*fields[at], last=at == len(fields) - 1)
    return reader.amount()


def _fields(text: str) -> list[tuple[str, str]]:
    """Split a text into kinds and fields."""
    lowered = text.lower()
    if len(text.encode()) >= _MOST_BYTES or not text.isascii():
        raise BadFormat
    fields, at = [], 0
    while at < len(lowered):
        found = _FIELD.match(lowered, at)
        if found is None:
            raise BadFormat
        at = found.end()
        kind = next(k for k in _KINDS if found[k] is not None)
        if kind != "space":
            fields.append((kind, "".join(found[0].split())))
    if len(fields) > _MOST_FIELDS:
        raise BadFormat
    return fields


_KINDS: Final = ("clock", "number", "date", "signed", "special", "word", "mixed", "space")


class _Reader:
    """Fields from right to left: the amount, the unit of the next number, what was said."""

    def __init__(self, qualifier: Qualifier) -> None:
        self._qualifier = qualifier
        self._amount = Amount()
        self._unit: str | None = None
        self._waiting = False
        self._said: set[str] = set()
        self._ago = False

    def take(self, kind: str, field: str, *, last: bool) -> None:
        if kind == "clock":
            self._clock(field)
        elif kind == "signed" and ":" in field and self._signed_clock(field):
            pass
        elif kind in {"signed", "number", "date", "mixed"}:
            self._number(field)
        else:
            self._word(field, last=last)

    def amount(self) -> Amount:
        if not self._said:
            raise BadFormat
        return self._amount.negated() if self._ago else self._amount

    def _say(self, units: frozenset[str] | set[str]) -> None:
        if self._said & units:
            raise BadFormat
        self._said |= units

    def _word(self, field: str, *, last: bool) -> None:
        if self._waiting:
            raise BadFormat
        if field in _IGNORED:
            self._unit = None
            return
        if field == "ago":
            if not last:
                raise BadFormat
            self._ago, self._unit = True, field
            return
        self._unit = _WORDS.get(field[:_TOKEN])
        if self._unit is None:
            raise BadFormat
        self._waiting = True

    def _signed_clock(self, field: str) -> bool:
        try:
            self._clock(field[1:])
        except (BadFormat, FieldOverflow):
            return False
        if field[0] == "-":
            self._amount.micros = -self._amount.micros
        return True

    def _clock(self, field: str) -> None:
        found = _TIME.fullmatch(field)
        if found is None:
            raise BadFormat
        hours, minutes = int(found[1]), int(found[2] or 0)
        seconds = int(found[3] or 0)
        if found[3] is None and (found[4] or self._of_minutes()):
            hours, minutes, seconds = 0, hours, minutes  # mm:ss
        fraction = _fraction(found[4])
        if minutes > 59 or seconds > 60:
            raise FieldOverflow
        made = Amount(micros=round(fraction * SECOND))
        for value, unit in ((hours, HOUR), (minutes, MINUTE), (seconds, SECOND)):
            made.add_micros(value, 0, unit)
        self._say(_CLOCK)
        self._amount.micros = made.micros
        self._unit, self._waiting = "day", False

    def _of_minutes(self) -> bool:
        return (self._qualifier.first, self._qualifier.last) == ("minute", "second")

    def _number(self, field: str) -> None:
        if self._unit is None:
            self._unit = self._qualifier.unit
        found = _NUMBER.fullmatch(field)
        if found is None or found[1] in {"+", "-"}:
            raise BadFormat
        negative = field[0] == "-"
        value = int(found[1] or 0)
        if not -(2**63) <= value < 2**63:
            raise FieldOverflow
        fraction = _fraction(found[2])
        if found[3] is not None:
            months = 0 if found[3] in {"", "+", "-"} else int(found[3])
            if not 0 <= months < MONTHS_PER_YEAR:
                raise FieldOverflow
            if found[4]:
                raise BadFormat
            self._unit = "month"
            value = value * MONTHS_PER_YEAR + (-months if negative else months)
        self._add(value, -fraction if negative else fraction, self._unit)
        self._waiting = False

    def _add(self, value: int, fraction: float, unit: str) -> None:
        said = {unit}
        if unit in _MICROS:
            self._amount.add_micros(value, fraction, _MICROS[unit])
            if unit == "second" and fraction:
                said = set(_SECONDS)
        elif unit == "day":
            self._amount.add_days(value, 0, 1)
            self._amount.add_part(fraction, 24 * HOUR)
        elif unit in _DAYS:
            self._amount.add_days(value, fraction, _DAYS[unit])
        elif unit == "month":
            self._amount.add_months(value, fraction)
        elif unit in _YEARS:
            self._amount.add_years(value, fraction, _YEARS[unit])
        else:
            raise BadFormat
        self._say(said)
        if unit == "hour":
            self._unit = "day"


def _fraction(text: str | None) -> float:
    return float(text) if text and text != "." else 0.0
