"""Times for people: a timestamp next to the moment that it is.

Timestamps of ``EpochMilliseconds`` are milliseconds since 1970; those of other timelines are
numbers that mean something else. A number that would be a moment before 1973, or after 9999, is
taken for one of these, and shown as it is. The number always stays: it is what ``AS OF`` takes.

Tests: tests/rows/test_result.py.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_FIRST: Final = 100_000_000_000
_LAST: Final = 253_402_300_799_999


def moment(timestamp: int) -> str | None:
    """Return the moment that a timestamp is, in UTC; None if it is none.

    >>> moment(1795023922709), moment(7)
    ('2026-11-18 17:45:22.709', None)
    """
    if not _FIRST <= timestamp <= _LAST:
        return None
    seconds, millis = divmod(timestamp, 1_000)
    at = datetime.fromtimestamp(seconds, UTC).replace(microsecond=millis * 1_000, tzinfo=None)
    return at.isoformat(" ", "milliseconds")


def with_moment(timestamp: int) -> str:
    """Return a timestamp for people.

    >>> with_moment(1795023922709), with_moment(7)
    ('1795023922709 (2026-11-18 17:45:22.709 UTC)', '7')
    """
    found = moment(timestamp)
    return str(timestamp) if found is None else f"{timestamp} ({found} UTC)"
