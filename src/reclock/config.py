"""Durations as people write them, and nothing else yet that is configurable.

``'250ms'``, ``'1s'``, ``'20 days'``, ``'0'``: one spelling for SQL options, settings and
the command line (DESIGN section 17). Values are whole milliseconds, a century at the most: what
is longer is a mistake, and more than clocks and locks can wait.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

from reclock.errors import InvalidValue

_UNITS = {
    "ms": 1, "millisecond": 1, "milliseconds": 1,
    "s": 1_000, "sec": 1_000, "second": 1_000, "seconds": 1_000,
    "m": 60_000, "min": 60_000, "minute": 60_000, "minutes": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "hours": 3_600_000,
    "d": 86_400_000, "day": 86_400_000, "days": 86_400_000,
    "w": 604_800_000, "week": 604_800_000, "weeks": 604_800_000,
}  # fmt: skip

LONGEST_MS = 36_500 * _UNITS["d"]

_DURATION = re.compile(r"\s*(?P<count>\d+(\.\d+)?)\s*(?P<unit>[a-z]+)\s*", re.IGNORECASE)


@lru_cache(maxsize=256)
def parse_duration(text: str) -> int:
    """Return the whole milliseconds that ``text`` stands for.

    >>> parse_duration("250ms"), parse_duration("1s"), parse_duration("20 days")
    (250, 1000, 1728000000)
    >>> parse_duration("0"), parse_duration("1.5 h")
    (0, 5400000)
    >>> parse_duration("soon")
    Traceback (most recent call last):
    reclock.errors.InvalidValue: invalid duration "soon"
    hint: write a number and a unit, such as '250ms', '1s', '20 days', or '0'
    """
    if text.strip() == "0":
        return 0
    match = _DURATION.fullmatch(text)
    scale = _UNITS.get(match["unit"].lower()) if match else None
    if match is None or scale is None:
        message = f'invalid duration "{text}"'
        hint = "write a number and a unit, such as '250ms', '1s', '20 days', or '0'"
        raise InvalidValue(message, hint=hint)
    ms = int(Decimal(match["count"]) * scale)
    if ms > LONGEST_MS:
        message = f'duration "{text}" is too long'
        raise InvalidValue(message, hint=f"write at most '{format_duration(LONGEST_MS)}'")
    return ms


def format_duration(ms: int) -> str:
    """Write ``ms`` with the largest unit that keeps it whole.

    >>> [format_duration(ms) for ms in (0, 250, 1000, 90_000, 1_728_000_000)]
    ['0', '250ms', '1s', '90s', '20d']
    """
    if ms == 0:
        return "0"
    for unit in ("d", "h", "m", "s"):
        if ms % _UNITS[unit] == 0:
            return f"{ms // _UNITS[unit]}{unit}"
    return f"{ms}ms"
