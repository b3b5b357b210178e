"""The times that statements name: AS OF t, UP TO t.

A time is a number of its timeline, or, in the ``EpochMilliseconds`` timeline, a date and
time as text; one without a zone is in UTC. Constants have no timeline and take either.

Tests: tests/coordinator/test_read.py.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from reclock.errors import InvalidValue
from reclock.sql.plan.coerce import read_literal
from reclock.sql.types import TIMESTAMPTZ
from reclock.time import select
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from reclock.sql.statement.select import AsOf
    from reclock.time.timeline import Timeline

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def time_of(given: int | str, timeline: Timeline | None) -> Timestamp:
    """Return the time of a timeline that a statement names.

    >>> time_of("1970-01-01 00:00:01.5", EPOCH_MS), time_of("1970-01-01 01:00+01", None)
    (Timestamp(1500), Timestamp(0))
    """
    if isinstance(given, int) or given.strip().isdigit():
        return Timestamp(int(given))
    if timeline not in {None, EPOCH_MS}:
        message = f'"{given}" is not a time of timeline {timeline}'
        hint = "only EpochMilliseconds has dates; write a whole number"
        raise InvalidValue(message, hint=hint)
    moment = read_literal(given, TIMESTAMPTZ)
    assert isinstance(moment, datetime)
    return Timestamp((moment - _EPOCH) // timedelta(milliseconds=1))


def asked(as_of: AsOf | None, timeline: Timeline | None) -> select.AsOf | select.AsOfAtLeast | None:
    """Return what AS OF asks of a read in a timeline."""
    if as_of is None:
        return None
    time = time_of(as_of.time, timeline)
    return select.AsOfAtLeast(time) if as_of.at_least else select.AsOf(time)
