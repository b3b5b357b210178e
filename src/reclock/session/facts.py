"""The state of everything, now: named values for metrics, health and the console.

Read from the published world and from counters, without the lock, without a file and without a
query: a reader delays nothing, and sees each object as it was at one moment of its own. A count may
be a moment older than the one next to it; none is ever wrong for good. What takes reading is in the
system relations, but for the errors of views, which are read when they have changed (``faults``).

Cost: a few microseconds for each object and arrangement. Which arrangement is whose is found once
for each shape of a timeline.

Tests: tests/session/test_facts.py.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reclock.arrangement.store import LocalStore
from reclock.catalog.item import (
    Index,
    MaterializedView,
    RelationItem,
    Sink,
    Source,
    Table,
)
from reclock.dataflow.graph import collection_of
from reclock.engine.meters import Steps
from reclock.ingest.condition import Glimpses
from reclock.session.faults import Faults
from reclock.session.source_facts import bindings_of, sources_of
from reclock.spark.engine import SparkEngine
from reclock.system.arrangement_sizes import owners
from reclock.time.timeline import EPOCH_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from reclock.catalog.item import Item
    from reclock.dataflow.graph import ArrangementId
    from reclock.engine.shape import Shape
    from reclock.engine.timeline import TimelineState
    from reclock.errors import Error
    from reclock.export.exporter import Commit, Exporter
    from reclock.ids import ObjectId
    from reclock.session.source_facts import Binding, SourceFacts
    from reclock.session.system import System
    from reclock.time.frontier import Frontier
    from reclock.time.pace import Pace

    Owners = Mapping[ArrangementId, tuple[ObjectId, str]]

LATE_MS: Final = 30_000
"""So long after its time a tick is not just late: the timeline does not tick."""

SINK_STATES: Final = ("starting", "recovering", "running", "stalled", "failed")


@dataclass(frozen=True)
class SinkFacts:
    """How a sink does."""

    name: str
    state: str
    frontier: int | None
    messages: int
    bytes: int
    transactions: int
    retries: int
    in_flight: int
    lag_ms: int | None
    why: Error | None = None
    topic: str = ""
    consistency: str = ""
    """Where it writes how far it is, in the transaction of the data."""
    recent: tuple[Commit, ...] = ()


@dataclass(frozen=True)
class ObjectFacts:
    """The frontiers of an object that keeps rows, and how many of its rows have changed."""

    name: str
    kind: str
    since: int | None
    upper: int | None
    lag_ms: int | None
    changed: int


class Size(NamedTuple):
    """What an arrangement stores."""

    object: str
    operator: str
    records: int
    bytes: int
    runs: int


@dataclass(frozen=True)
class TimelineFacts:
    """How far a timeline is, and why it does not move."""

    name: str
    upper: int
    lag_ms: int | None
    failure: Error | None


class Moving(NamedTuple):
    """All that should move, looked at once."""

    timelines: list[TimelineFacts]
    sources: list[SourceFacts]
    sinks: list[SinkFacts]


class Held(NamedTuple):
    """Who keeps history of an object, and from when on."""

    object: str
    holder: str
    since: int | None


@dataclass(frozen=True)
class Disk:
    """The disk that files of the database are on."""

    free: int
    size: int


class Facts:
    """Looks at a core; every method looks again."""

    def __init__(self, core: System) -> None:
        self._core = core
        self._owners: dict[Pace, tuple[Shape, Owners]] = {}
        self._glimpses = Glimpses()
        self.faults: Final = Faults(core)
        """What cannot be read because of errors."""

    def sources(self) -> Iterator[SourceFacts]:
        """Yield how each source does."""
        return sources_of(self._core, self._glimpses)

    def sinks(self) -> Iterator[SinkFacts]:
        """Yield how each sink does."""
        core, world = self._core, self._core.world
        for sink in world.catalog.of_kind(Sink):
            try:
                exporter = core.exporters[sink.id]
            except KeyError:
                continue  # it comes or goes
            yield _sink(exporter, sink.name, world.of(sink))

    def objects(self) -> Iterator[ObjectFacts]:
        """Yield the frontiers of all that keeps rows."""
        core, world, now = self._core, self._core.world, self._core.clock.now_ms()
        changed = core.meters.changed()
        for state in world.timelines.values():
            lag = _lag(state, now)
            for item, since in state.sinces.items():
                shown = world.items.get(item)
                if isinstance(shown, Table | Source | MaterializedView | Index):
                    yield ObjectFacts(
                        shown.name, shown.kind, _time(since), _time(state.frontier), lag,
                        changed[collection_of(item)],
                    )  # fmt: skip

    def sizes(self) -> Iterator[Size]:
        """Yield what each arrangement stores, once, under the first object that needs it."""
        world = self._core.world
        for state in world.timelines.values():
            for name, (owner, operator) in self._owned(state).items():
                item, refs = world.items.get(owner), state.arrangements.runs.get(name)
                if item is not None and refs is not None:
                    yield Size(
                        item.name, operator, sum(r.rows for r in refs),
                        sum(r.length for r in refs), len(refs),
                    )  # fmt: skip

    def _owned(self, state: TimelineState) -> Owners:
        known = self._owners.get(state.pace)
        if known is None or known[0] is not state.shape:
            known = self._owners[state.pace] = state.shape, owners(state)
        return known[1]

    def timelines(self) -> Iterator[TimelineFacts]:
        """Yield how far each pace is."""
        core, now = self._core, self._core.clock.now_ms()
        failures = {} if core.loop is None else core.loop.failures
        for pace, state in core.world.timelines.items():
            failure = failures.get(pace)
            yield TimelineFacts(
                str(pace), int(state.upper), None if state.is_own else _lag(state, now),
                None if failure is None else failure.error,
            )  # fmt: skip

    def moving(self) -> Moving:
        """Return how all does that should move."""
        return Moving(list(self.timelines()), list(self.sources()), list(self.sinks()))

    def is_late(self, timeline: TimelineFacts) -> bool:
        """Return whether a timeline has not ticked for too long."""
        most = LATE_MS + 3 * self._core.settings.timestamp_interval_ms
        return timeline.lag_ms is not None and timeline.upper > 0 and timeline.lag_ms > most

    def holds(self) -> dict[str, tuple[int, int | None]]:
        """Return by object how many hold it, and the first time that is held."""
        items = self._core.world.items
        found: dict[str, tuple[int, int | None]] = {}
        for held in self._core.holds.rows():
            item = items.get(held.object)
            name = str(held.object) if item is None else item.name
            count, first = found.get(name, (0, None))
            since = _time(held.since)
            least = min((t for t in (first, since) if t is not None), default=None)
            found[name] = count + 1, least
        return found

    def holders(self) -> list[Held]:
        """Return who keeps history of what; what has a name is called by it, as a person would."""
        items = self._core.world.items
        names = {str(item.id): item.name for item in items.values()}
        found = []
        for held in self._core.holds.rows():
            item = items.get(held.object)
            kind, _, number = str(held.holder).partition("/")
            holder = f"{kind} {names.get(number, number)}".strip()
            name = str(held.object) if item is None else item.name
            found.append(Held(name, holder, _time(held.since)))
        return found

    def bindings(self) -> Iterator[tuple[ObjectId, str, Callable[[int], list[Binding]]]]:
        """Yield each source, its name, and what gives its bindings after a time."""
        return bindings_of(self._core.world)

    def expirations(self) -> dict[str, int]:
        """Return by object how many milliseconds are left until it keeps nothing."""
        world, now = self._core.world, self._core.clock.now_ms()
        found: dict[str, int] = {}
        for state in world.timelines.values():
            for name, views in state.shape.filters.items():
                until = state.arrangements.untils.get(name)
                for view in views if until is not None else ():
                    item = world.items.get(view)
                    if item is not None and until is not None:
                        left = until - now
                        found[item.name] = min(left, found.get(item.name, left))
        return found

    @property
    def lifetime_ms(self) -> int:
        """For how long a process keeps future retractions; 0 is for ever."""
        return self._core.expirations.lifetime.offset_ms

    def disk(self) -> Disk | None:
        """Return how full the disk of the files is; None if they are elsewhere."""
        store = self._core.segments
        if not isinstance(store, LocalStore):
            return None
        try:
            usage = shutil.disk_usage(store.root)
        except OSError:
            return None
        return Disk(usage.free, usage.total)

    @property
    def catalog(self) -> object:
        """What ``graph`` is of: the same object as long as no object is another."""
        return self._core.world.catalog

    def graph(self) -> list[dict[str, Any]]:
        """Return every object that changes go through, with what it reads, by name."""
        known = self._core.world.catalog.items
        flows = RelationItem | Index | Sink
        items = {i: item for i, item in known.items() if isinstance(item, flows)}
        return [
            {
                "name": item.name,
                "kind": item.kind,
                "reads": sorted(items[read].name for read in _reads(item) if read in items),
                "owner": item.owner,
            }
            for item in items.values()
        ]

    def operators(self, name: str) -> dict[str, Any] | None:
        """Return the steps that compute an object, with their state and what they took.

        ``millis`` are of an average tick since the graph is what it is, by where ticks ran; on
        Spark of all tasks together. ``rows`` are the updates that a step gave in an average tick on
        the driver.
        """
        world = self._core.world
        item = next((i for i in world.items.values() if i.name == name), None)
        if item is None or item.timeline is None or isinstance(item, Sink):
            return None
        state = world.of(item)
        graph = state.shape.graph
        top = collection_of(item.id)
        if top not in graph.arrangements:
            return {"operators": [], "ticks": {}}
        measured = self._core.meters.steps(state.pace)
        if measured is None or measured.graph is not graph:
            measured = Steps(graph, Counter(), {})
        return {
            "ticks": dict(measured.ticks),
            "operators": [
                self._operator(state, at, measured)
                for at in sorted(graph.needed(frozenset({top}), frozenset(graph.references)))
            ],
        }

    @staticmethod
    def _operator(state: TimelineState, at: int, measured: Steps) -> dict[str, Any]:
        graph = state.shape.graph
        held = [state.arrangements.runs.get(name, ()) for name in graph.reads.get(at, ())]
        driven = measured.ticks["driver"]
        return {
            "step": at,
            "operator": type(graph.steps[at]).__name__,
            "inputs": list(graph.steps[at].inputs),
            "keeps": bool(held),
            "records": sum(ref.rows for refs in held for ref in refs),
            "bytes": sum(ref.length for refs in held for ref in refs),
            "millis": {
                place: round(1_000 * measured.seconds[place].get(at, 0.0) / ticks, 4)
                for place, ticks in measured.ticks.items()
            },
            "rows": round(measured.rows.get(at, 0) / driven, 2) if driven else None,
        }

    def spark(self) -> dict[str, tuple[int, int, int]]:
        """Return jobs, tasks and bytes that tasks sent one another, by what they were for."""
        engine = self._core.engine
        return engine.spent.now() if isinstance(engine, SparkEngine) else {}

    def spark_ui(self) -> str | None:
        """Return where Spark shows what it does."""
        engine = self._core.engine
        return engine.ui if isinstance(engine, SparkEngine) else None


def _reads(item: Item) -> frozenset[ObjectId]:
    if isinstance(item, Sink):
        return frozenset({item.relation})
    return frozenset({item.on}) if isinstance(item, Index) else item.depends


def _sink(exporter: Exporter, name: str, state: TimelineState) -> SinkFacts:
    shown, why = exporter.condition
    frontier = exporter.frontier if exporter.is_open else exporter.reached
    written, reached = exporter.written, exporter.reached
    return SinkFacts(
        name, shown, None if frontier is None else int(frontier),
        written.messages, written.bytes, written.transactions, exporter.retries,
        exporter.in_flight, None if reached is None else max(0, state.upper - reached), why,
        exporter.target.topic, exporter.target.consistency, tuple(exporter.recent),
    )  # fmt: skip


def _lag(state: TimelineState, now_ms: int) -> int | None:
    if state.timeline != EPOCH_MS:
        return None
    upper = state.frontier
    return 0 if upper.is_closed else max(0, now_ms + 1 - upper.element())


def _time(frontier: Frontier) -> int | None:
    return None if frontier.is_closed else int(frontier.element())
