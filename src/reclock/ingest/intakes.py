"""The intakes of all sources: made and ended with them, pulled, and taken from by ticks.

In the background every source has a thread that reads ahead (``pump``). Without it, time is
the caller's: a tick pulls, before it binds, all that is there, as far as one tick may take.
Sources that move with the ticks (load generators) are pulled once by each regular tick.

Nothing here fails because a source does: failures are in the status of the source, and the
lasting ones in its errors (P9).

Tests: tests/ingest/test_intake.py, test_kafka.py.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

from reclock.catalog.item import Source
from reclock.errors import Error
from reclock.failpoints import hit
from reclock.ingest.cdcv2_intake import StatedIntake
from reclock.ingest.condition import ending_of
from reclock.ingest.connect import connect, interval_of
from reclock.ingest.intake import Intake
from reclock.ingest.postgres.intake import PostgresIntake
from reclock.ingest.postgres.slots import Slots
from reclock.ingest.pump import Pump
from reclock.ingest.reclocked_intake import ReclockedIntake, limits
from reclock.ingest.source_clocked import OwnIntake
from reclock.ingest.staging import Grid
from reclock.ingest.supplied_intake import SuppliedIntake
from reclock.ingest.task_reader import TaskReader
from reclock.sql.statement.source import PostgresConnection
from reclock.time.timeline import EPOCH_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.engine.core import Core
    from reclock.engine.taken import Taken
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.ingest.condition import Condition
    from reclock.ingest.connect import Clusters
    from reclock.ingest.reclocked_intake import Limit
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp

MOST_ROWS: Final = 1_000_000
"""How many records of a source one tick takes, unless ``max_rows_per_tick`` says otherwise."""

_PATIENCE: Final = 5.0
"""Seconds to wait for reading threads at the end; what they read then is of no use."""


class Intakes:
    """One intake for each source that can still be read."""

    def __init__(self, core: Core, clusters: Clusters) -> None:
        self._core = core
        self.clusters = clusters
        self._intakes: dict[ObjectId, Intake] = {}
        self._reached: dict[ObjectId, object] = {}
        """How each source is reached that was begun; a secret may change."""
        self._pumps: dict[ObjectId, Pump] = {}
        self._ending: list[Pump] = []
        """Of sources that are gone: each ends after the pull under way."""
        self._endings: dict[ObjectId, Condition] = {}
        """Of sources that are read no more."""
        self._background = self._closed = False
        self.slots = Slots(core.store)
        self.follow(core.world)

    def __getitem__(self, item: ObjectId) -> Intake:
        return self._intakes[item]

    def get(self, item: ObjectId) -> Intake | None:
        """Return the intake of a source; None if it is not read any more."""
        return self._intakes.get(item)

    def ending(self, state: TimelineState, source: Source) -> Condition:
        """Return how a source is that is read no more; what is known is not read again."""
        found = self._endings.get(source.id)
        if found is None:
            found = self._endings[source.id] = ending_of(state, source)
        return found

    def ended(self, item: ObjectId) -> Condition | None:
        """Return the same if it is known, which takes no reading; else None."""
        return self._endings.get(item)

    def start(self) -> None:
        """Read ahead in the background from now on."""
        self._background = True
        self.follow(self._core.world)
        if self.slots.left_behind(self._core.world.catalog):
            sweep = partial(self.slots.sweep, self._core.world.catalog)
            threading.Thread(target=sweep, name="reclock-slots", daemon=True).start()

    def follow(self, world: World) -> None:
        """Have an intake for every source of a world that is not at its end, and no others."""
        if self._closed:
            return  # the world is read again at the end
        sources = {i.id: i for i in world.catalog.of_kind(Source) if i.parent is None}
        for gone in self._intakes.keys() - sources.keys():
            self._end(gone)
        for gone in self._endings.keys() - sources.keys():
            del self._endings[gone]
        for source in sources.values():
            before = self._intakes.get(source.id)
            if before is None:
                self._begin(source, world)
            elif (
                isinstance(before, PostgresIntake) and before.items != _tables(world, source)
            ) or (
                before.connected.on_error != source.on_error  # what it read is decoded otherwise
                or self._reached[source.id] != _reach(source)
            ):
                self._end(source.id)
                self._begin(source, world)
                if source.id in self._intakes:
                    self._intakes[source.id].counts = before.counts
            intake = self._intakes.get(source.id)
            waits = self._background and source.id not in self._pumps
            if intake is not None and waits and not intake.connected.paced:
                full = partial(self._ask, world.pace(source))
                self._pumps[source.id] = Pump(source.name, intake, self._interval_ms, full)

    def _begin(self, source: Source, world: World) -> None:
        self._reached[source.id] = _reach(source)
        state = world.of(source)
        remap = state.bindings[source.id].remap
        if remap.is_sealed:
            self._note_ending(state, source)
        else:
            given = dict(source.statement.options).get("max_rows_per_tick")
            most = MOST_ROWS if given is None else max(1, int(given))
            core = self._core
            made: Intake
            if isinstance(source.statement.connection, PostgresConnection):
                made = PostgresIntake(core, source, _tables(world, source), state, most)
                self._intakes[source.id] = made
                return
            connected = connect(source, self.clusters)
            if source.states:
                kind = StatedIntake if source.brings_times else ReclockedIntake
                made = kind(connected, core, state, source, most)
            elif source.using is not None:
                made = SuppliedIntake(connected, core, state, source, most)
            else:
                made = Intake(connected, core.engine, core.clock, remap, most)
            if not source.is_transactional or source.is_strict:
                made.tasks = TaskReader(core, source.id, connected)
            self._intakes[source.id] = made

    def _interval_ms(self) -> int:
        return self._core.settings.timestamp_interval_ms

    def _ask(self, pace: Pace) -> None:
        """Ask for a tick now: an intake waits for room."""
        if self._core.loop is not None:
            self._core.loop.wake(pace, self._core.world[pace].upper)

    def pull(self, pace: Pace, *, regular: bool) -> None:
        """Read what a tick of ``pace`` is about to bind, unless threads do."""
        for item, intake in self._of(pace):
            if intake.connected.paced:
                if regular:
                    intake.pull()
            elif item not in self._pumps:
                while intake.pull():
                    pass

    def is_ready(self, pace: Pace) -> bool:
        """Return whether a tick has something to bind."""
        if any(intake.is_ready for _, intake in self._of(pace)):
            return True
        found = self._limits(pace)
        released = any(isinstance(some, frozenset) and some for some in found.values())
        return released or any(intake.has_failed() for intake in found)

    def rows(self, pace: Pace) -> int:
        """Return how many records wait for a tick."""
        return sum(intake.staged_rows for _, intake in self._of(pace))

    def closable(self, state: TimelineState, now_ms: int) -> Timestamp | None:
        """Return the last time that the source of a pace has complete now; None if no other."""
        ends = [intake.closable(state, now_ms) for _, intake in self._own(state.pace)]
        return max((end for end in ends if end is not None), default=None)

    def take(self, state: TimelineState, time: Timestamp) -> dict[ObjectId, Taken]:
        """Return what a tick that closes ``time`` binds, of every source that has something."""
        hit("ingest.bind.before")
        self.settle(state)  # a tick may have been published without this being told
        found = {}
        if state.is_own:
            return {item: own.take_own(state, time) for item, own in self._own(state.pace)}
        whole = self._limits(state.pace)
        for item, intake in self._of(state.pace):
            source = self._core.world.catalog[item]
            assert isinstance(source, Source)
            system, own = self._interval_ms(), interval_of(source)
            grid = Grid(
                state.upper, time, max(system, own or 0), own is not None,
                state.timeline == EPOCH_MS,
            )  # fmt: skip
            remap = state.bindings[item].remap
            if isinstance(intake, ReclockedIntake):
                taken = intake.take_whole(remap, grid, whole.get(intake))
            else:
                taken = intake.take(remap, grid)
            if taken is not None:
                found[item] = taken
        return found

    def settle(self, state: TimelineState) -> None:
        """Forget what a published tick has bound; end what will bind nothing any more."""
        for item, intake in self._of(state.pace):
            remap = state.bindings[item].remap
            if isinstance(intake, OwnIntake) and state.is_own:
                intake.settle_own(state)
            else:
                intake.settle(remap)
            if remap.is_sealed:
                self._end(item)
                source = self._core.world.catalog.items.get(item)
                if isinstance(source, Source):
                    self._note_ending(state, source)

    def _note_ending(self, state: TimelineState, source: Source) -> None:
        """Look how a source has ended; if that cannot be read now, who asks for it is told."""
        with suppress(Error):
            self.ending(state, source)

    def _end(self, item: ObjectId) -> None:
        """Read a source no more; if a thread does, that ends some time."""
        intake = self._intakes.pop(item, None)
        if intake is None:
            return  # it has ended in another thread
        intake.end()
        if isinstance(intake, PostgresIntake):
            intake.ended = item not in self._core.world.catalog.items
        self._ending = [pump for pump in self._ending if pump.is_running]
        if (pump := self._pumps.pop(item, None)) is not None:
            pump.stop()
            self._ending.append(pump)
        else:
            intake.close()

    def close(self) -> None:
        """Stop reading; wait for threads that end, but not for ever."""
        self._closed = True
        for item in tuple(self._intakes):
            self._end(item)
        deadline = monotonic() + _PATIENCE
        for pump in self._ending:
            pump.join(max(0.0, deadline - monotonic()))
        self._ending.clear()

    def _limits(self, pace: Pace) -> dict[ReclockedIntake, Limit]:
        return limits(i for _, i in self._of(pace) if isinstance(i, ReclockedIntake))

    def _own(self, pace: Pace) -> Iterator[tuple[ObjectId, OwnIntake]]:
        for item, intake in self._of(pace):
            assert isinstance(intake, OwnIntake)
            yield item, intake

    def _of(self, pace: Pace) -> Iterator[tuple[ObjectId, Intake]]:
        bindings = self._core.world.timelines[pace].bindings
        for item in tuple(bindings):
            if (intake := self._intakes.get(item)) is not None:
                yield item, intake


def _reach(source: Source) -> object:
    """Return how a source is reached: what its connections say."""
    statement = source.statement
    names = source.linked.options
    return statement.connection, [o for o in statement.options if o[0] in names]


def _tables(world: World, source: Source) -> list[Source]:
    """Return the tables of a database."""
    return [i for i in world.catalog.of_kind(Source) if i.parent == source.id]
