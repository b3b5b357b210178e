"""The owner of the state: one world, one lock, one way to change it.

``publish`` appends to the durable store and then replaces the world: a reader sees the state before
or after, never between. Writers hold ``lock`` from their first read to the publication. If an
append fails, or its outcome is unknown, the world is *stale*: the next user reads all of it again
from the store, as a restarted process would, so memory can never disagree with the disk.

Segments are removed only here, under the lock, and never one that the current world or a world that
is still being read names.

Tests: tests/engine/test_crash.py: a crash, or an error, at every step of every statement.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.arrangement.cache import process_cache
from reclock.arrangement.gc import collect
from reclock.catalog.item import Sink, Source
from reclock.catalog.roles import Roles
from reclock.catalog.serial.item import Sequence
from reclock.catalog.serial.values import SequenceValues
from reclock.catalog.settings import SystemSettings, Values
from reclock.durable.catalog_store import CatalogStore
from reclock.durable.oracle_store import OracleStore
from reclock.durable.sink_store import SinkStore
from reclock.engine.expirations import Expirations
from reclock.engine.flights import Flights
from reclock.engine.history import History
from reclock.engine.merging import Merger
from reclock.engine.meters import Meters
from reclock.engine.source_bindings import drop_others
from reclock.engine.tick_log import TickLog
from reclock.engine.timeline import TimelineState
from reclock.engine.turns import Turns
from reclock.engine.world import World
from reclock.errors import StorageError
from reclock.time.frontier import at
from reclock.time.pace import Own, timeline_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from collections.abc import Sequence as Many

    from reclock.arrangement.store import Store as Segments
    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import MaterializedView
    from reclock.catalog.system_relation import SystemRelation
    from reclock.clock import Clock
    from reclock.durable import catalog_store
    from reclock.durable.store import Append, Store
    from reclock.engine.engine import Engine
    from reclock.engine.parts import Filling, SinkWriters, SourceReadings, Ticker
    from reclock.ids import HolderId, ObjectId
    from reclock.time.holds import Hold, Holds
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp

    LoadCatalog = Callable[[catalog_store.Catalog, Mapping[ObjectId, SystemRelation]], Catalog]
    """From durable records to the objects that they describe (``session.definition``)."""

    Reconcile = Callable[["Core"], None]
    """Brings arrangements into the shape that objects ask for (``catalog_change``)."""


class Core:
    """A durable store, a store of segments, an engine and a clock, put to work.

    What reads sources and writes sinks is added by the one that makes it (``session.system``).
    """

    intakes: SourceReadings
    exporters: SinkWriters

    def __init__(
        self,
        store: Store,
        segments: Segments,
        engine: Engine,
        clock: Clock,
        *,
        system: Mapping[ObjectId, SystemRelation],
        load_catalog: LoadCatalog,
        reconcile: Reconcile,
        is_copy: bool = False,
    ) -> None:
        self.is_copy = is_copy
        """Whether nothing outside may be changed in its name (``session.offline``)."""
        self._system = system
        self._load_catalog = load_catalog
        self._reconcile = reconcile
        self.store = store
        self.segments = segments
        self.engine = engine
        self.clock = clock
        self.settings = SystemSettings()
        self.lock = threading.RLock()
        """Held to begin and to publish a tick, to write, and to change the catalog."""
        self.turns = Turns()
        """Who waits for the lock, and what ticks wait for."""
        self.preparing: list[Filling] = []
        """What is filled for new objects (``preparation``)."""
        self.moved = threading.Condition()
        """Told whenever the world was replaced."""
        self.flights = Flights(self.pin, self.unpin)
        """Ticks that compute without the lock."""
        self.in_flight: set[str] = set()
        """Stems of segments that background work is writing."""
        self._unnamed = 0
        self.uncollected = False
        """Whether there may be segments to remove that could not be."""
        self._catalog_store = CatalogStore(store)
        self._oracle_store = OracleStore(store)
        self.sequences = SequenceValues(store)
        """The numbers of sequences."""
        self._stale = False
        self._readers: list[World] = []
        self.lost: deque[Callable[[], None]] = deque()
        """How to release what abandoned transactions held; done by the next tick."""
        self.history = History(self.settings)
        self._world = self.history.followed(self.load(), None)
        engine.configure(self.settings.execution)
        drop_others(store, (source.id for source in self._world.catalog.of_kind(Source)))
        self.sequences.clean(item.id for item in self._world.catalog.of_kind(Sequence))
        SinkStore(store).drop_others(sink.id for sink in self._world.catalog.of_kind(Sink))
        self.expirations = Expirations(self)
        self.merger = Merger(self)
        self.meters = Meters()
        """What is counted, for those who watch from outside."""
        self.ticks = TickLog()
        """What the last ticks cost."""
        self.loop: Ticker | None = None
        """Who ticks in the background; without it, readers tick themselves."""

    @property
    def world(self) -> World:
        """The last world that is known to be durable."""
        return self._world

    @property
    def catalog_store(self) -> CatalogStore:
        """Where changes of the catalog are made."""
        return self._catalog_store

    @property
    def holds(self) -> Holds:
        """The ledger of who keeps which history."""
        return self.history.holds

    def hold(self, holder: HolderId, objects: Iterable[ObjectId], since: Timestamp) -> Hold:
        """Keep ``objects`` readable from ``since`` on, or say which has forgotten it."""
        return self.history.holds.acquire(holder, objects, at(since))

    @contextmanager
    def writing(self) -> Iterator[World]:
        """Hold the lock, and give a world that agrees with the store."""
        with self.lock:
            if self._stale:
                self._replace(self.load(self._world.transients))
                self._stale = False
                self._reconcile(self)  # a transient view may have come or gone unnoticed
            yield self._world

    @contextmanager
    def quiet(self, paces: Callable[[World], Iterable[Pace]]) -> Iterator[World]:
        """Hold the lock while no tick of some paces of the world is under way."""
        while True:
            with self.writing() as world:
                busy = self.flights.among(paces(world))
                if not busy:
                    yield world
                    return
            self.flights.wait(busy)

    @contextmanager
    def reading(self) -> Iterator[World]:
        """Give a world whose segments stay until the block ends."""
        if self._stale:
            with self.writing():
                pass  # what was not known to be durable may be, and must be seen then
        with self.moved:
            world = self._world
            self._readers.append(world)
        try:
            yield world
        finally:
            self.unpin(world)

    def pinned(self) -> World | None:
        """Return the world, pinned; None if it must be read again first, which takes long."""
        if self._stale:
            return None
        with self.moved:
            self._readers.append(self._world)
            return self._world

    def pin(self, world: World) -> None:
        """Keep the segments of a world that is being read until it is unpinned."""
        with self.moved:
            self._readers.append(world)

    def unpin(self, world: World) -> None:
        """Let the segments of a pinned world go."""
        with self.moved:
            self._readers.remove(world)

    @contextmanager
    def unnamed(self) -> Iterator[None]:
        """Remove no segments in the block: some are written that nothing names yet."""
        with self.moved:
            self._unnamed += 1
        try:
            yield
        finally:
            with self.moved:
                self._unnamed -= 1

    def wake(self) -> None:
        """Have all who wait for the world to move look again."""
        with self.moved:
            self.moved.notify_all()

    def let_go(self) -> None:
        """Let go of what was held by transactions that are garbage; hold the lock."""
        while self.lost:
            self.lost.popleft()()

    def read_objects(self) -> set[ObjectId]:
        """Return the objects of all worlds that are being read."""
        with self.moved:
            return set().union(*(world.items for world in self._readers))

    def state(self, pace: Pace) -> TimelineState:
        """Return the state of a pace, beginning it if it is new; hold the lock."""
        found = self._world.timelines.get(pace)
        if found is None:
            world = self._world
            if isinstance(pace, Own):
                self.state(pace.timeline)  # which has the oracle
            found = TimelineState.open(
                self.store, self.segments, pace, world.catalog, world.transients.values()
            )
            self._replace(self._world.with_states([found]))
        return found

    def publish(self, world: World, appends: Many[Append], *moved: TimelineState) -> None:
        """Append to the store and make ``world``, with ``moved`` timelines, the current one."""
        durable = self._world.timelines
        oracles = [
            append
            for state in moved
            for append in state.oracle_appends(self._oracle_store, durable.get(state.pace))
        ]
        try:
            lost = self.store.append([*appends, *oracles])
            if lost is None:
                self._replace(world.with_states(moved))
        except BaseException:  # an interrupt too, wherever it comes
            self._stale = True
            raise
        if lost is not None:
            self._stale = True
            message = f'durable collection "{lost.collection}" has moved unexpectedly'
            detail = f"it is at {lost.current_upper}"
            raise StorageError(message, detail=detail, hint="try the statement again")

    def adopt(self, state: TimelineState) -> None:
        """Make a state of a timeline the current one that differs in nothing durable."""
        self._replace(self._world.with_states([state]))

    def collect_garbage(self) -> list[str]:
        """Remove the segments that no world names; hold the lock."""
        busy = bool(self._unnamed or self.flights or self.expirations.is_busy)
        self.uncollected = self._stale or busy
        if self.uncollected:
            return []
        removed = collect(self.segments, lambda: set(self.in_flight), self.named)
        if removed:
            process_cache().forget(self.segments, removed)
        return removed

    def named(self) -> set[str]:
        """Return the segments of all worlds that are read."""
        with self.moved:
            worlds = [self._world, *self._readers]
        return set().union(*(world.named_segments() for world in worlds))

    def compact_bindings(self) -> None:
        """Fold the bindings of sources that have many of them before their since."""
        moved = []
        for pace, state in self._world.timelines.items():
            if self.flights.among([pace]):
                continue  # a tick binds on from what they are
            bindings = {
                item: bound.compacted(state.sinces[item].element())
                for item, bound in state.bindings.items()
            }
            if any(bindings[item] is not bound for item, bound in state.bindings.items()):
                moved.append(replace(state, bindings=bindings))
        if moved:
            self._replace(self._world.with_states(moved))

    def _replace(self, world: World) -> None:
        with self.moved:
            self.settings.values = world.settings
            self.engine.configure(self.settings.execution)
            same = self._world.catalog is world.catalog
            self._world = self.history.followed(world, self._world)
            self.moved.notify_all()
        self.expirations.follow()
        if not same:
            self.intakes.follow(self._world)
            self.exporters.follow(self._world)

    def load(self, transients: Mapping[ObjectId, MaterializedView] | None = None) -> World:
        """Read everything from the store: what opening a database does.

        ``transients`` are those of this process, which no store has; those whose rows are not
        stored are left out: they never came, or have gone.
        """
        stored = self._catalog_store.load()
        catalog = self._load_catalog(stored, self._system)
        self.settings.values = Values.read(stored)
        passing = {} if transients is None else transients
        known: set[Pace] = set(catalog.paces.values())
        known |= {catalog.pace(v.timeline, v.depends) for v in passing.values() if v.timeline}
        known |= {timeline_of(pace) for pace in known} | self._oracle_store.load_all().keys()
        states = [
            TimelineState.open(self.store, self.segments, pace, catalog, passing.values())
            for pace in sorted(known, key=str)
        ]
        kept = {view for state in states for view in state.shape.views}
        there = {view: item for view, item in passing.items() if view in kept}
        roles = Roles.read(stored)
        world = World(stored, catalog, settings=self.settings.values, roles=roles, transients=there)
        return world.with_states(states)
