"""Failed ticks: retried with growing pauses, or given up with a reason.

Each timeline has at most one ``Failure``: the last one, how often in a row it happened, and
when the tick is tried again::

    pause after the n-th failure in a row  =  min(FIRST_PAUSE · 2^(n−1), LONGEST_PAUSE)

A tick that succeeds ends it. Failures of the classes in ``PERMANENT`` cannot heal while this
process lives (the state does not decode, a file of it is gone, another process owns it, there is no
Java): the timeline stops there, and its waiters are told why. All others are retried without end: a
full disk, a broken connection, a lost race, a Spark job. Meanwhile answers are late but never
wrong: a tick happens as a whole or not at all.

The failure of one timeline does not affect the others. Tests: tests/engine/test_loop.py.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.errors import (
    Corrupt,
    DataflowExpired,
    Error,
    Fenced,
    JavaMissing,
    NewerFormat,
    SegmentMissing,
    StateInUse,
    StorageError,
)

if TYPE_CHECKING:
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 30.0
"""Seconds between a failure and the next attempt."""

PERMANENT: Final = (
    Corrupt, DataflowExpired, Fenced, JavaMissing, NewerFormat, SegmentMissing, StateInUse
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a timeline does not move: ``timestamp`` is the first time that is not complete.

    ``attempts`` have failed in a row; the next one is at ``retry_at`` of the monotonic clock.
    """

    timeline: Pace
    timestamp: Timestamp
    error: Error
    attempts: int
    retry_at: float

    @property
    def permanent(self) -> bool:
        """Whether the timeline has stopped for good."""
        return isinstance(self.error, PERMANENT)

    @property
    def code(self) -> str:
        """The SQLSTATE of the error."""
        return self.error.code

    @property
    def message(self) -> str:
        """What failed."""
        return self.error.message

    @property
    def detail(self) -> str:
        """The facts: how often it failed, and what the error says."""
        state = "does not tick any more" if self.permanent else "is tried again"
        facts = f"{self.timeline} {state}; {self.attempts} attempts failed at {self.timestamp}"
        return f"{facts}; {self.error.detail}" if self.error.detail else facts

    def told(self) -> Error:
        """Return the error for one waiter: a copy, as errors carry tracebacks."""
        error = copy(self.error)
        error.detail = self.detail
        return error


def failed(
    timeline: Pace, upper: Timestamp, error: Exception, before: Failure | None, now: float
) -> Failure:
    """Return the failure of a tick, the next one after ``before``."""
    attempts = 1 if before is None else before.attempts + 1
    return Failure(timeline, upper, _as_error(error), attempts, now + pause(attempts))


def pause(attempts: int) -> float:
    """Return how many seconds to wait after so many failures in a row.

    >>> [pause(n) for n in (1, 2, 3, 9, 10, 5_000)]
    [0.1, 0.2, 0.4, 25.6, 30.0, 30.0]
    """
    doublings = min(attempts - 1, 16)
    return min(FIRST_PAUSE * 2.0**doublings, LONGEST_PAUSE)


def _as_error(error: Exception) -> Error:
    if isinstance(error, Error):
        return error
    kind = StorageError if isinstance(error, OSError) else Error
    return kind(f"a tick failed: {error}", detail=f"it raised {type(error).__name__}")
