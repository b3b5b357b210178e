"""The intake of a source that brings its times: it moves at a pace of its own.

Reading is that of other sources (``intake``). What is read is not bound by whichever tick comes
next: which times are complete, the source says itself (``cdcv2_intake``), or the bindings that its
user supplies (``supplied_intake``). A tick of its own pace asks ``closable`` for the last of them,
and ``take_own`` for what it publishes then, in one append with the positions that it is bound to,
so that a process that begins with these goes on as the first would have (P2).

In wall-clock time a source cannot close a time that is further ahead than ``AHEAD_MS``: its rows
wait. No other reader does: neither the oracle nor another pace moves with it (P6).

Tests: tests/ingest/test_materialize.py, test_using.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from reclock.engine.arrangements import FIRST
from reclock.ingest.intake import Intake
from reclock.time.oracle import MAX_AHEAD_MS
from reclock.time.skew import distance, suspicion
from reclock.time.timeline import EPOCH_MS

if TYPE_CHECKING:
    from reclock.catalog.item import Source
    from reclock.engine.core import Core
    from reclock.engine.taken import Taken
    from reclock.engine.timeline import TimelineState
    from reclock.ingest.connect import Connected
    from reclock.remap.trace import Remap
    from reclock.time.timestamp import Timestamp

AHEAD_MS: Final = MAX_AHEAD_MS
"""How far ahead of now a source may close times of the wall clock's timeline."""


class OwnIntake(Intake, ABC):
    """Reads one source whose times are its own."""

    def __init__(
        self, connected: Connected, core: Core, state: TimelineState, source: Source, most: int
    ) -> None:
        remap = state.bindings[source.id].remap
        super().__init__(connected, core.engine, core.clock, remap, most)
        self._source = source

    @property
    @abstractmethod
    def upper(self) -> Timestamp:
        """The first time that is not published."""

    @property
    @abstractmethod
    def latest(self) -> int | None:
        """The last time that is spoken of and not published; None if none is."""

    @property
    def is_behind(self) -> bool:
        """Whether there is more to read."""
        return self.upstream != self.frontier

    @property
    def is_stuck(self) -> bool:
        """Whether nothing more can be read, and no tick makes room."""
        return self.is_full

    @abstractmethod
    def waits(self, now_ms: int) -> str | None:
        """Say what it waits for, for a person; None if all that there is, is published."""

    @abstractmethod
    def closable(self, state: TimelineState, now_ms: int) -> Timestamp | None:
        """Return the last time that is complete now; None if no other is than before."""

    @abstractmethod
    def take_own(self, state: TimelineState, time: Timestamp) -> Taken:
        """Return what a tick publishes that closes ``time``, which ``closable`` gave."""

    @abstractmethod
    def settle_own(self, state: TimelineState) -> None:
        """Forget what is durably published."""

    def settle(self, remap: Remap[Any]) -> None:
        """Do nothing: what is published is told by ``settle_own``."""

    def limit(self, now_ms: int) -> int | None:
        """Return before which time it may close now; None: before any."""
        ahead = self._source.timeline == EPOCH_MS
        return max(0, now_ms) + AHEAD_MS + 1 if ahead else None

    def skew(self, now_ms: int) -> str | None:
        """Say how far its times are from the clock, if that is theirs and it is far."""
        if self._source.timeline != EPOCH_MS:
            return None
        with self.room:
            last = max(self.last_ms(None) or 0, self.latest or 0)
        if not last:
            return None
        if abs(last - now_ms) <= AHEAD_MS:
            return None
        where = "ahead of" if last > now_ms else "behind"
        looks = suspicion(last, now_ms)
        said = f"its last time, {last}, is {distance(last, now_ms)} {where} the clock"
        return said if looks is None else f"{said}: {looks}"

    def last_ms(self, otherwise: int | None) -> int | None:
        """Return the last time that is complete, if it is one of the clock's."""
        with self.room:
            published = self.upper > FIRST and self._source.timeline == EPOCH_MS
            return int(self.upper) - 1 if published else otherwise
