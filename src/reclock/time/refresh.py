"""Refresh schedules: views that change at some times only, and are still in between.

Definition. A schedule is a set of times, from ``created`` on: that of the creation itself, some
single times, and for each ``Every`` the times ``aligned_to + k · interval`` for whole k. A view
with a schedule shows at every time what its query gave at the last of these; an update of the
query at t is one of the view at ``round_up(t)``::

    round_up(t)    =  min { r ∈ schedule : r ≥ t }        None: after the last one, never
    round_down(t)  =  max { r ∈ schedule : r ≤ t }        None: before the first one

Invariants: both are monotone and idempotent; ``round_up`` never goes back. Before ``first`` the
view has not been computed, and says so.

Cost O(n) in the parts of the schedule. Tests: tests/time/test_refresh.py.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from reclock.config import format_duration
from reclock.errors import InvalidValue
from reclock.time.timestamp import INT64_MAX, Timestamp


@dataclass(frozen=True, slots=True)
class Every:
    """Times at a distance of ``interval_ms`` from each other; ``aligned_to`` is one of them.

    None is the time of the creation.
    """

    interval_ms: int
    aligned_to: int | None = None

    def __post_init__(self) -> None:
        """Refuse an interval that does not lead anywhere."""
        if self.interval_ms <= 0:
            message = "the interval of REFRESH EVERY must be positive"
            raise InvalidValue(message, hint="leave REFRESH out: a view is right at every tick")

    def round_up(self, time: int, created: int) -> int:
        """Return the first of its times that is not before ``time``."""
        origin = created if self.aligned_to is None else self.aligned_to
        return time + (origin - time) % self.interval_ms

    def round_down(self, time: int, created: int) -> int:
        """Return the last of its times that is not after ``time``."""
        origin = created if self.aligned_to is None else self.aligned_to
        return time - (time - origin) % self.interval_ms


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a view is refreshed; ``at`` are single times, ascending.

    >>> hourly = Schedule(every=(Every(3_600_000, aligned_to=0),), created=5_000)
    >>> hourly.round_up(7_000), hourly.round_up(3_600_000)
    (Timestamp(3600000), Timestamp(3600000))
    >>> str(Schedule((Every(1_000, 0),), (90_000,)))
    'every 1s from 0 (1970-01-01 00:00:00), at 90000 (1970-01-01 00:01:30)'
    """

    every: tuple[Every, ...] = ()
    at: tuple[int, ...] = ()
    at_creation: bool = False
    created: int = 0

    def __post_init__(self) -> None:
        """Put the times in order."""
        object.__setattr__(self, "at", tuple(sorted(set(self.at))))

    def begun(self, created: Timestamp) -> Schedule:
        """Return the schedule of a view that is created at a time."""
        return replace(self, created=int(created))

    @property
    def times(self) -> tuple[int, ...]:
        """The single times that count, ascending: none is before the creation."""
        own = {self.created} if self.at_creation else set()
        return tuple(sorted(own | {time for time in self.at if time >= self.created}))

    @property
    def first(self) -> Timestamp | None:
        """The first refresh; None if there is none."""
        return self.round_up(self.created)

    def round_up(self, time: int) -> Timestamp | None:
        """Return the first refresh that is not before ``time``."""
        asked, times = max(time, self.created), self.times
        nth = bisect_left(times, asked)
        found = [every.round_up(asked, self.created) for every in self.every] + [
            *times[nth : nth + 1]
        ]
        due = min(found, default=INT64_MAX)
        return Timestamp(due) if due < INT64_MAX else None

    def round_down(self, time: int) -> Timestamp | None:
        """Return the last refresh that is not after ``time``."""
        times = self.times
        nth = bisect_right(times, time)
        found = [every.round_down(time, self.created) for every in self.every] + [
            *times[max(nth - 1, 0) : nth]
        ]
        last = max(found, default=-1)
        return Timestamp(last) if last >= self.created else None

    def __str__(self) -> str:
        parts = [
            f"every {format_duration(e.interval_ms)} from {self._shown(e.aligned_to)}"
            for e in self.every
        ]
        parts += [f"at {self._shown(time)}" for time in self.at]
        if self.at_creation:
            parts.append(f"at {self._shown(None)}")
        return ", ".join(parts)

    def _shown(self, time: int | None) -> str:
        if time is None:
            return _shown(self.created) if self.created else "its creation"
        return _shown(time)


def _shown(time: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time)
    return f"{time} ({moment:%Y-%m-%d %H:%M:%S})"
