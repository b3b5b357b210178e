"""Dataflow expiration: which future retractions need not be stored, and the guard (P8).

A temporal filter stores, for each row it shows, the retraction at the end of the row's
window. One that lies beyond the life of the process is never used: after a restart it is
derived again. A dataflow with expiration ``{e}`` drops updates at times e and later.

Decision table; the first line that applies decides:

    offset unset or 0                              off
    not a materialized view, index or subscribe    off    a peek ends by itself
    timeline is not EpochMilliseconds              off    its times are not the clock's
    a refresh schedule, its own or a dependency's  off    its upper is not the clock's
    the meet of the inputs' uppers is {}           off    constants and finished inputs
    otherwise                                      e = max(start + offset, upper + 1 step)
    until ≤ e                                      off    until drops no less
    e is beyond the largest timestamp              off    there is nothing to drop

    until' = until ∧ {e}

The inputs are those the dataflow actually reads, after optimisation: one that was folded
away must not pin the result of a constant. ``upper + 1``: with e at or before the inputs'
upper the dataflow would have expired before its first step.

Guard. Everything at times before e is exact; at e and later something may be missing. So
a frontier may go up to ``{e}`` and not beyond: ``check`` stands where views, indexes and
subscribes publish, and stops the process before a wrong answer can be served. The one
frontier that may pass is ``{}`` when nothing was dropped: the inputs have finished, no
update can come any more, and none is missing. After a drop, an ending dataflow publishes
``frontier.meet(expiration)`` instead.

On restart start is new, so e is, and what was dropped is derived again from the inputs.
If the offset is changed while the process runs, e follows it; what is stored, the next tick.

Cost O(n) in the inputs. The table, line by line: tests/datadriven/expiry.txt; properties:
tests/time/test_expiry.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from reclock.errors import DataflowExpired, InvalidValue
from reclock.time.antichain import meet_all
from reclock.time.frontier import CLOSED, Frontier, at
from reclock.time.timeline import EPOCH_MS, Timeline
from reclock.time.timestamp import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable


class DataflowKind(Enum):
    """What a dataflow is for."""

    MATERIALIZED_VIEW = "materialized view"
    INDEX = "index"
    SUBSCRIBE = "subscribe"
    SINK = "sink"
    PEEK = "peek"


EXPIRING = frozenset({DataflowKind.MATERIALIZED_VIEW, DataflowKind.INDEX, DataflowKind.SUBSCRIBE})
"""The dataflows that live long and hold state of their own."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """An input that the dataflow actually reads.

    ``refreshed`` says that it is, or transitively depends on, a view with a refresh schedule.
    """

    object: str
    upper: Frontier
    refreshed: bool = False


@dataclass(frozen=True, slots=True)
class Lifetime:
    """When the process started, and for how long it is expected to run (0: unlimited)."""

    started_ms: int
    offset_ms: int = 0

    def __post_init__(self) -> None:
        """Refuse a process that expired before it began."""
        if self.offset_ms < 0:
            message = f"an expiration offset must not be negative, got {self.offset_ms}"
            raise InvalidValue(message)


@dataclass(frozen=True, slots=True)
class Decision:
    """A dataflow's expiration: ``{}`` when off, and then the reason."""

    expiration: Frontier
    until: Frontier
    reason: str | None = None


def decide(
    kind: DataflowKind,
    timeline: Timeline | None,
    inputs: Iterable[Dependency],
    lifetime: Lifetime,
    until: Frontier = CLOSED,
    *,
    scheduled: bool = False,
) -> Decision:
    """Apply the decision table to one dataflow; ``scheduled`` if it is refreshed by a schedule.

    >>> orders, view = Dependency("orders", at(1_500)), DataflowKind.MATERIALIZED_VIEW
    >>> decide(view, EPOCH_MS, [orders], Lifetime(1_000, 60_000)).expiration
    {61000}
    >>> decide(view, EPOCH_MS, [], Lifetime(1_000, 60_000)).reason
    'its inputs are constant or finished'
    """
    read = tuple(inputs)
    upper = meet_all(i.upper for i in read)
    refreshed = ", ".join(i.object for i in read if i.refreshed)
    if not lifetime.offset_ms:
        reason = "compute_replica_expiration_offset is 0"
    elif kind not in EXPIRING:
        reason = f"a {kind.value} does not expire"
    elif timeline != EPOCH_MS:
        reason = f"its timeline is {timeline or 'none'}, not {EPOCH_MS}"
    elif scheduled:
        reason = "it has a refresh schedule"
    elif refreshed:
        reason = f"it depends on a refresh schedule through {refreshed}"
    elif upper.is_closed:
        reason = "its inputs are constant or finished"
    else:
        time = max(lifetime.started_ms + lifetime.offset_ms, upper.element() + 1)
        if time > INT64_MAX:
            reason = "it would be beyond the largest timestamp"
        elif until.precedes(expiration := at(time)):
            reason = f"it ends at until {until} already"
        else:
            return Decision(expiration, until.meet(expiration))
    return Decision(CLOSED, until, reason)


def check(
    frontier: Frontier,
    expiration: Frontier,
    *,
    dropped: bool = True,
    dataflow: str = "the dataflow",
) -> None:
    """Refuse to publish a frontier that passes the expiration of a ``dataflow``.

    ``dropped`` says whether the dataflow has dropped any update; it matters only to a
    frontier that closes.

    >>> check(at(61_000), at(61_000))
    >>> check(at(61_001), at(61_000))
    Traceback (most recent call last):
    reclock.errors.DataflowExpired: the dataflow expired at 61000
    detail: its frontier would move to {61001}, past retractions that were not stored
    hint: restart the process; raise compute_replica_expiration_offset to run longer
    """
    if frontier.precedes(expiration) or (frontier.is_closed and not dropped):
        return
    message = f"{dataflow} expired at {expiration.element()}"
    detail = f"its frontier would move to {frontier}, past retractions that were not stored"
    hint = "restart the process; raise compute_replica_expiration_offset to run longer"
    raise DataflowExpired(message, detail=detail, hint=hint)
