"""The inputs from which system relations take their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.time.timeline import EPOCH_MS

if TYPE_CHECKING:
    from reclock.engine.core import Core
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.time.timeline import Timeline
    from reclock.time.timestamp import Timestamp


@dataclass(frozen=True)
class Moment:
    """What rows are taken from: one world, at the time that a query is answered at.

    ``timeline`` is the query's, None if it reads nothing that has one; then ``timestamp``
    is of wall-clock time. ``now_ms`` is the clock when the query began to be answered.
    ``role`` is who asks; None is who opened the database.
    """

    core: Core
    world: World
    timeline: Timeline | None
    timestamp: Timestamp
    now_ms: int
    role: str | None

    @classmethod
    def of(
        cls,
        core: Core,
        world: World,
        timeline: Timeline | None,
        timestamp: Timestamp,
        role: str | None,
    ) -> Moment:
        """Return the moment at which a query is answered from ``world``."""
        return cls(core, world, timeline, timestamp, core.clock.now_ms(), role)

    def as_of(self, state: TimelineState, since: Timestamp) -> Timestamp:
        """Return when to look at an object that is readable from ``since`` on.

        At the query's own time where that is possible, else at the nearest readable one.
        """
        last = state.upper.back()
        same = state.timeline == (self.timeline or EPOCH_MS)
        wanted = self.timestamp if same else last
        return max(min(wanted, last), since)
