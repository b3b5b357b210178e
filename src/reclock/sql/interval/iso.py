"""ISO 8601: ``P1Y2M3DT4H5M6S`` with designators, ``P0001-02-03T04:05:06`` without.

A port of ``DecodeISO8601Interval``. Every number may be negative and have a fraction.
"""

from __future__ import annotations

import math
import re
from typing import Final

from reclock.interval import DAY, HOUR, MINUTE, SECOND
from reclock.sql.interval.amount import Amount, BadFormat, FieldOverflow

_NUMBER: Final = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WIDTH: Final = re.compile(r"-?(\d*)", re.ASCII)
_MOST: Final = 1.0e15
_CLOCK: Final = {"H": HOUR, "M": MINUTE, "S": SECOND}


def read_iso(text: str) -> Amount:
    """Return what ``text`` says; raise ``BadFormat`` if it has another form."""
    if len(text) < 2 or text[0] != "P":
        raise BadFormat
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 1
        self._amount = Amount()
        self._date = True
        self._some = False

    def read(self) -> Amount:
        while self._at < len(self._text):
            if self._text[self._at] == "T":
                self._at += 1
                self._begin_time()
                continue
            start = self._at
            value, fraction = self._number()
            unit = self._peek()
            self._at += 1
            width = len(_WIDTH.match(self._text, start)[1])  # type: ignore[index]  # it is optional
            if self._date:
                done = self._dated(value, fraction, unit, width)
            else:
                done = self._timed(value, fraction, unit, width)
            if done:
                break
        return self._amount

    def _begin_time(self) -> None:
        self._date = self._some = False

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _number(self) -> tuple[int, float]:
        found = _NUMBER.match(self._text, self._at)
        if found is None:
            raise BadFormat
        self._at = found.end()
        value = float(found[0])
        if math.isinf(value):
            raise BadFormat
        if abs(value) > _MOST:
            raise FieldOverflow
        return int(value), value - int(value)

    def _dated(self, value: int, fraction: float, unit: str, width: int) -> bool:
        """Take a number before ``T``; return whether the text has been read."""
        amount = self._amount
        match unit:
            case "Y":
                amount.add_years(value, fraction, 1)
            case "M":
                amount.add_months(value, fraction)
            case "W":
                amount.add_days(value, fraction, 7)
            case "D":
                self._days(value, fraction)
            case "T" | "" if width == 8 and not self._some:
                size, sign = abs(value), -1 if value < 0 else 1
                amount.add_years(sign * (size // 10_000), 0, 1)
                amount.add_months(sign * (size // 100 % 100), 0)
                self._days(sign * (size % 100), fraction)
                self._begin_time()
                return not unit
            case "T" | "" | "-":
                return self._alternative_date(value, fraction, unit)
            case _:
                raise BadFormat
        self._some = True
        return False

    def _alternative_date(self, value: int, fraction: float, unit: str) -> bool:
        """Take ``years-months-days``, of which the end may be left out."""
        if self._some:
            raise BadFormat
        self._amount.add_years(value, fraction, 1)
        if unit == "-":
            self._amount.add_months(*self._number())
            unit = self._peek()
            self._at += 1
            if unit == "-":
                self._days(*self._number())
                unit = self._peek()
                self._at += 1
        if unit not in {"", "T"}:
            raise BadFormat
        self._begin_time()
        return not unit

    def _days(self, value: int, fraction: float) -> None:
        self._amount.add_days(value, 0, 1)
        self._amount.add_part(fraction, DAY)

    def _timed(self, value: int, fraction: float, unit: str, width: int) -> bool:
        """Take a number after ``T``; return whether the text has been read."""
        amount = self._amount
        if unit in _CLOCK:
            amount.add_micros(value, fraction, _CLOCK[unit])
            self._some = True
            return False
        if not unit and width == 6 and not self._some:
            size, sign = abs(value), -1 if value < 0 else 1
            amount.add_micros(sign * (size // 10_000), 0, HOUR)
            amount.add_micros(sign * (size // 100 % 100), 0, MINUTE)
            amount.add_micros(sign * (size % 100), 0, SECOND)
            amount.add_part(fraction, 1)
            return True
        if unit not in {"", ":"} or self._some:
            raise BadFormat
        amount.add_micros(value, fraction, HOUR)
        for smaller in (MINUTE, SECOND):
            if not unit:
                return True
            amount.add_micros(*self._number(), smaller)
            unit = self._peek()
            self._at += 1
            if unit not in {"", ":"}:
                raise BadFormat
        if unit:
            raise BadFormat
        return True
