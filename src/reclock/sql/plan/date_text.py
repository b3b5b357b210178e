r"""Dates and times as texts: ISO 8601, with the fraction of a second rounded to microseconds.

The digits after the sixth are rounded, halves to even, as PostgreSQL does; Python and Spark cut
them off. A date is year, month and day: not a week, and digits are ASCII's.

Tests: tests/slt/scalars.slt, tests/sql/test_date_text.py.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

from reclock.sql.zone import moment, named, zone

_DATE: Final = re.compile(r"\d{4}(-\d\d-\d\d|\d{4})(?![^T ])", re.ASCII)
_ROUNDED_UP: Final = re.compile(r"[.]\d{5}([13579]50*|\d([6-9]\d*|5\d*[1-9]\d*))(?!\d)", re.ASCII)
_ZONED: Final = re.compile(r"(\d.*?) *((?!T\d|Z$)[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*)")
"""A moment with the name of a zone behind it."""


def read_date(text: str) -> date:
    """Return the day; of a text with a time, that of the time before it is rounded.

    >>> read_date("2026-01-31"), read_date("2026-01-31 23:59:59")
    (datetime.date(2026, 1, 31), datetime.date(2026, 1, 31))
    """
    _check(text)
    if len(text) > len("2026-01-31"):
        return datetime.fromisoformat(text).date()
    return date.fromisoformat(text)


def read_timestamp(text: str) -> datetime:
    """Return the time, whatever zone is named.

    >>> read_timestamp("2026-01-31 00:00:00.1234567")
    datetime.datetime(2026, 1, 31, 0, 0, 0, 123457)
    """
    return _read(text).replace(tzinfo=None)


def read_timestamptz(text: str) -> datetime:
    """Return the moment in UTC; a text without an offset is a time of the session's zone.

    >>> read_timestamptz("2026-01-31 00:00:00.9999999+02").isoformat()
    '2026-01-30T22:00:01+00:00'
    >>> read_timestamptz("2026-01-31 00:00:00 Europe/Berlin").isoformat()
    '2026-01-30T23:00:00+00:00'
    """
    name, found = zone(), _ZONED.fullmatch(text)
    if found is not None:
        text, name = found[1], named(found[2])
    at = _read(text)
    return moment(at, name) if at.tzinfo is None else at.astimezone(UTC)


def rounding_text(value: str) -> str:
    """Return Spark SQL for what the text ``value`` has more than Spark reads of it."""
    pattern = _ROUNDED_UP.pattern.replace("\\d{5}", "\\d" * 5).replace("\\d", "[0-9]")
    micro = "INTERVAL '0.000001' SECOND"
    return f"CASE WHEN rlike({value}, '{pattern}') THEN {micro} ELSE INTERVAL '0' SECOND END"


def _read(text: str) -> datetime:
    _check(text)
    made = datetime.fromisoformat(text)
    return made + timedelta(microseconds=1) if _ROUNDED_UP.search(text) else made


def _check(text: str) -> None:
    if not (text.isascii() and _DATE.match(text)):
        message = "no date"
        raise ValueError(message)
