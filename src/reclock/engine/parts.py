"""The parts of a database as protocols: what the owner of the state needs of each.

Source readers and sink writers are in higher layers; the loop and what fills new objects know the
owner themselves. So the owner knows these protocols, and a database supplies the parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.engine.supervisor import Failure
    from reclock.engine.taken import Taken
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.errors import Error
    from reclock.ids import ObjectId
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp


class SourceReading(Protocol):
    """The reading of one source."""

    @property
    def stall(self) -> Error | None:
        """What keeps it, if something does."""
        ...


class SourceReadings(Protocol):
    """The reading of all sources: pulled, and taken from by ticks."""

    def get(self, item: ObjectId, /) -> SourceReading | None:
        """Return that of a source, None if it has ended."""
        ...

    def follow(self, world: World, /) -> None:
        """Begin and end readings, as sources come and go."""
        ...

    def pull(self, pace: Pace, /, *, regular: bool) -> None:
        """Read what there is of the sources of a pace, where no thread does."""
        ...

    def is_ready(self, pace: Pace, /) -> bool:
        """Return whether a tick of a pace would have something to take."""
        ...

    def rows(self, pace: Pace, /) -> int:
        """Return how many records are staged for a pace."""
        ...

    def closable(self, state: TimelineState, now_ms: int, /) -> Timestamp | None:
        """Return the last time that a pace of its own can close."""
        ...

    def take(self, state: TimelineState, time: Timestamp, /) -> Mapping[ObjectId, Taken]:
        """Return what a tick that closes ``time`` binds, of each source."""
        ...

    def settle(self, state: TimelineState, /) -> None:
        """Forget what is durable."""
        ...


class SinkWriters(Protocol):
    """The writing of all sinks."""

    def follow(self, world: World, /) -> None:
        """Begin and end, as sinks come and go."""
        ...


class Ticker(Protocol):
    """What ticks in the background."""

    @property
    def failures(self) -> Mapping[Pace, Failure]:
        """Why paces do not move, those that do not."""
        ...

    def wake(self, timeline: Pace, time: Timestamp, /) -> None:
        """Tick a pace at once, unless ``time`` is complete in it by then."""
        ...

    def interval_changed(self) -> None:
        """Look at the interval again."""
        ...

    def check(self, timeline: Pace, /) -> None:
        """Raise what keeps a pace from ever moving again, if something does."""
        ...

    def stop(self) -> None:
        """End it, and the ticks under way."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an object is that is filled: ``phase``, and what it has not followed yet."""

    name: str
    phase: str
    behind: int
    """The times from where it is to where its pace is."""


class Filling(Protocol):
    """A new object that is filled."""

    @property
    def progress(self) -> Progress:
        """How far it is."""
        ...
