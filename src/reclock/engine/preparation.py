"""New objects are filled in the background: nothing else waits for a first load.

The rows of a new view, index or subscribed query are computed as of the last complete time of a
world that is kept for them, without the lock. Meanwhile ticks and writes go on; their changes are
then followed (``dataflow.work``) in rounds, and the last, of few rows that came since, under the
lock, in the append that makes the object known. So the object is right at every time from the first
one on (P3), and ticks wait for a moment, not for the load. A tick under way goes on: it follows for
the object what it brings (``joining``).

A round must take at most half of what the one before took (the first: of what the load took), for
it follows what happened meanwhile. If one does not, the ticks bring more than can be followed at
the same time: those of the pace pause (``turns``) while the rest is followed and the object is
published. So there are at most log2(load / SHORT) rounds, whatever the ticks do. What computes runs
in a thread of its own (``detached``): a statement that is cancelled ends at once, in every phase
before the append.

The rows that are followed are held until then. Files that were written have no name before the
append: a crash leaves nothing but them.

Views over objects that do not become complete together (``multi_pace``) are filled where all of
these are complete; their copies of these objects are filled too, and follow the objects themselves.

Cost: that of the load, and of the changes meanwhile. Tests: tests/engine/test_prepare.py,
test_prepare_busy.py.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Final

from reclock.arrangement.cache import process_cache
from reclock.arrangement.shard import Shard
from reclock.catalog.item import MaterializedView, Sink
from reclock.dataflow.graph import Limits, collection_of, errors_of
from reclock.engine import multi_pace as joint
from reclock.engine import replacement
from reclock.engine.arrangements import beginning, following, layouts_of, write_runs
from reclock.engine.detached import apart
from reclock.engine.joining import joins
from reclock.engine.parts import Progress
from reclock.engine.replacement import Difference
from reclock.engine.shape import Shape
from reclock.engine.turns import LONGEST
from reclock.errors import HoldViolation, InvalidDefinition, InvalidValue
from reclock.failpoints import hit
from reclock.ids import HolderId
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reclock.arrangement.run import RunRef
    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Item
    from reclock.dataflow.graph import ArrangementId
    from reclock.engine.arrangements import Runs
    from reclock.engine.core import Core
    from reclock.engine.engine import Updates
    from reclock.engine.interrupt import Interrupt
    from reclock.engine.timeline import TimelineState, Untils
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.time.description import Description
    from reclock.time.holds import Hold
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp

SHORT: Final = 0.05
"""A round of so many seconds is the last one before the lock."""

SHRINK: Final = 0.5
"""A round takes at most this part of what the one before took, or ticks pause."""

PAUSED_ROUNDS: Final = 2
"""Rounds while ticks pause: of all there is, and of the tick that was under way."""

_numbers: Final = count(1)


@dataclass(frozen=True)
class _Reach:
    """How far a pace is: its upper, and its traces up to there.

    ``imports`` are the objects of other paces that it has copies of, where they are kept.
    """

    upper: Timestamp
    traces: Mapping[ArrangementId, Shard]
    imports: Mapping[ArrangementId, Shard]

    @classmethod
    def of(cls, world: World, state: TimelineState | None, shape: Shape) -> _Reach:
        """Return how far a pace is in a world, or, if it has no state yet, can be."""
        given = joint.traces_of(world, shape.imports)
        if state is None or (shape.imports and not state.arrangements.runs):
            return cls(joint.begin(world, shape), {}, given)
        return cls(state.upper, state.traces, given)

    @property
    def as_of(self) -> Timestamp:
        """The last time that is there."""
        return self.upper.back()


class Prepared:
    """What an object needs and nothing keeps yet, filled up to some time; one thread uses it."""

    def __init__(
        self,
        core: Core,
        world: World,
        pace: Pace,
        item: Item,
        interrupt: Interrupt,
        *,
        transient: bool,
        changed: Callable[[Catalog, Item], Catalog] | None = None,
    ) -> None:
        self._core = core
        self._changed = changed or (lambda catalog, item: catalog.changed([item], ()))
        self._interrupt = interrupt
        self._phase = "loading"
        self._took = 0.0
        """How many seconds the load, and then each round, took."""
        self._shrinks = True
        self._pause = ExitStack()
        self._pace = pace
        self._asked = item
        self._transient = transient
        self._catalog, self._transients = world.catalog, world.transients
        state = world.timelines.get(pace)
        shape = self._shape_in(world, item)
        self._reach = _Reach.of(world, state, shape)
        self.item = item
        """The object; the schedule of a view begins when its first rows are computed."""
        if isinstance(item, MaterializedView) and item.schedule is not None:
            self.item = scheduled(item, self._reach.as_of)
            shape = self._shape_in(world, self.item)
        graph = shape.graph
        there = set() if state is None else state.shape.graph.arrangements.keys()
        self._before = None if state is None else state.shape.graph
        self._fresh = self._renewed(world, self.item, shape)
        self.difference: Difference | None = None
        """What a view that is replaced has otherwise than before, so far."""
        self.new = frozenset(graph.arrangements.keys() - there) | self._fresh
        """The arrangements that are filled."""
        names = (of(i) for i in shape.imports for of in (collection_of, errors_of))
        self._copies = self.new & frozenset(names)
        steps = graph.needed(self.new, ())
        objects = (*graph.tables.items(), *graph.views.items())
        known = shape.imports | (frozenset() if state is None else state.shape.kept.keys())
        self._below = frozenset(i for i, step in objects if step in steps and i in known)
        self._untils: Untils = dict.fromkeys(shape.filters.keys() & self.new)
        if state is not None:
            decided = core.expirations.untils(state, shape)
            self._untils = {name: decided[name] for name in self._untils}
        self._dropped: Counter[ArrangementId] = Counter()
        kept = {name: until for name, until in self._untils.items() if until is not None}
        self._shape = replace(shape, limits=Limits(kept, self._dropped))
        self._runs: dict[ArrangementId, tuple[RunRef, ...]] = {}
        self._number = next(_numbers)
        self._hold: Hold | None = None
        self._world = world
        core.pin(world)
        core.preparing.append(self)

    @property
    def progress(self) -> Progress:
        """How far it is; for all threads."""
        state = self._core.world.timelines.get(self._pace)
        upper = self._reach.upper
        behind = 0 if state is None else max(int(state.upper) - int(upper), 0)
        return Progress(self.item.name, self._phase, behind)

    def _shape_in(self, world: World, item: Item) -> Shape:
        """Return the shape that the pace has when an object is added to a world."""
        catalog, transients = world.catalog, dict(world.transients)
        if self._transient:
            assert isinstance(item, MaterializedView)
            transients[item.id] = item
        else:
            catalog = self._changed(catalog, item)
        return Shape.of(catalog, self._pace, transients.values())

    def _renewed(self, world: World, item: Item, shape: Shape) -> frozenset[ArrangementId]:
        """Return what is filled although it is there, because a view is replaced."""
        if self._transient or item.id not in world.catalog.items:
            return frozenset()
        replaced = replacement.roots(world.catalog, self._changed(world.catalog, item))
        return replacement.renewed(shape.graph, replaced)

    def holds(self) -> bool:
        """Hold what is followed, and return whether that can be: nothing is forgotten yet."""
        try:
            holder = HolderId(f"prepare/{self._number}")
            self._hold = self._core.hold(holder, self._below, self._reach.as_of)
        except (HoldViolation, InvalidValue):  # forgotten, or dropped, just now
            return False
        return True

    def fill(self) -> None:
        """Compute everything as of the last complete time, and write it."""
        hit("ddl.prepare.before")
        begun, reach, engine = monotonic(), self._reach, self._core.engine
        traces = self._others({**reach.traces, **reach.imports})
        new = self.new - self._copies
        made = apart(
            self._interrupt,
            lambda stop: engine.hydrate(self._shape, new, traces, reach.as_of, stop=stop),
        )
        updates = {**made, **joint.copied(reach.imports, self._copies, reach.as_of)}
        self._write(updates, dict.fromkeys(sorted(self.new), beginning(reach.as_of.step())))
        if self._fresh and self._before is not None:
            graph = self._shape.graph
            kept = replacement.with_history(self._fresh, self._before, graph)
            layouts = layouts_of(graph)
            difference = Difference(self._core.segments, layouts, reach.upper)
            fresh = {name: shard for name, shard in self._shards().items() if name in kept}
            apart(self._interrupt, lambda _: difference.begin(fresh, reach.traces))
            self.difference = difference
        self._took = monotonic() - begun

    def catch_up(self) -> None:
        """Follow what has happened, until that takes no time, or it cannot be followed."""
        self._phase = "following"
        while self._round() and self._took >= SHORT:
            self._interrupt.check()
            if not self._shrinks:
                self._phase = "following while ticks pause"
                self.pause()
                for _ in range(PAUSED_ROUNDS):
                    self._round()
                break
        self._phase = "waiting for its turn"

    def pause(self) -> None:
        """Have ticks wait until this is closed."""
        self._pause.enter_context(self._core.turns.pausing(self._paces()))

    def _joins(self) -> bool:
        """Return whether the object can be published while a tick computes, which follows it."""
        world, made = self._core.world, [self.item]
        return not self._transient and joins(self._core, world, self._pace, made)

    def _await_landing(self) -> None:
        """Wait for the tick under way, so that what it brings is not left for the lock."""
        if self._joins():
            return
        until = monotonic() + LONGEST
        while not self._core.flights.wait(self._paces(), SHORT) and monotonic() < until:
            self._interrupt.check()

    def _round(self) -> bool:
        """Follow what has happened until now; return whether that can be done."""
        self._await_landing()
        begun, before = monotonic(), self._took
        with self._core.reading() as world:
            if not self._is_below(world):
                return False
            self._follow(_Reach.of(world, world.timelines.get(self._pace), self._shape))
            self._core.pin(world)
            self._core.unpin(self._world)
            self._world = world
        if self._hold is not None and self._below:
            self._hold.downgrade(at(self._reach.as_of))
        self._took = monotonic() - begun
        self._shrinks = self._took <= SHRINK * before
        return True

    def _paces(self) -> set[Pace]:
        """Return the paces that bring what is followed."""
        items = self._world.items
        return {self._pace, *(self._world.pace(items[i]) for i in self._shape.imports)}

    def _is_below(self, world: World) -> bool:
        """Return whether all that is followed is still there."""
        there = (world.items.get(item) for item in self._below)
        return all(item is not None and item.id in world.of(item).sinces for item in there)

    def _follow(self, reach: _Reach) -> None:
        """Bring what is filled to where its pace is later."""
        lower, upper = self._reach.upper, reach.upper
        if lower < upper:
            before = {**self._reach.traces, **self._shards()}
            after = self._others({**reach.traces, **reach.imports})
            new, engine = self.new - self._copies, self._core.engine
            made = apart(
                self._interrupt,
                lambda stop: engine.follow(
                    self._shape, new, before, after, lower=lower, upper=upper, stop=stop
                ),
            )
            updates = {**made, **joint.followed(reach.imports, self._copies, lower, upper)}
            self._write(updates, {a: following(self._runs[a], upper) for a in sorted(updates)})
            if self.difference is not None:
                self.difference.follow(reach.traces, upper)
        self._reach = reach

    def _others(self, traces: dict[ArrangementId, Shard]) -> dict[ArrangementId, Shard]:
        """Return the arrangements that are not filled anew."""
        return {name: shard for name, shard in traces.items() if name not in self._fresh}

    def _write(
        self,
        updates: Mapping[ArrangementId, Updates],
        descriptions: Mapping[ArrangementId, Description[Timestamp]],
    ) -> None:
        stem = f"prepare-{self._number}-{self._reach.upper}"
        layouts = layouts_of(self._shape.graph)
        made = write_runs(self._core.segments, stem, updates, layouts, descriptions)
        self._runs |= {a: (*self._runs.get(a, ()), *refs) for a, refs in made.items()}

    def _shards(self) -> dict[ArrangementId, Shard]:
        layouts, upper = layouts_of(self._shape.graph), at(self._reach.upper)
        return {
            a: Shard.open(layouts[a], refs, self._core.segments, process_cache(), upper)
            for a, refs in self._runs.items()
        }

    # Under the lock.

    def fits(self, world: World, item: Item) -> bool:
        """Return whether this is what an object needs that is to be added to a world."""
        asked = replace(self._asked, id=item.id)
        if isinstance(asked, Sink) and isinstance(item, Sink):
            asked = replace(asked, facts=item.facts)  # what is arranged for it is not in them
        if asked != item or not self._is_below(world):
            return False
        if world.catalog is self._catalog and world.transients is self._transients:
            return True
        if replacement.roots(self._catalog, world.catalog):
            return False  # what it is made of is called as before, and something else
        shape = self._shape_in(world, replace(self.item, id=item.id))
        needed = shape.graph.arrangements
        state = world.timelines.get(self._pace)
        there = set() if state is None else state.shape.graph.arrangements.keys()
        fresh = self._renewed(world, item, shape)
        if self._fresh or fresh:
            known = frozenset() if self.difference is None else self.difference.names
            graph = None if state is None else state.shape.graph
            if graph is None or replacement.with_history(fresh, graph, shape.graph) != known:
                return False
        wanted = (needed.keys() - there) | fresh
        return all(self._own(name, item.id) in self._runs for name in wanted)

    def rows_behind(self, world: World) -> int:
        """Return about how many rows have come that are not followed yet."""
        after, rows = at(self._reach.upper), 0
        for item in self._below:
            runs = world.of(world.items[item]).arrangements.runs
            for name in (collection_of(item), errors_of(item)):
                refs = runs.get(name, ())
                rows += sum(ref.rows for ref in refs if not ref.description.upper.precedes(after))
        return rows

    def dated(self, item: Item) -> Item:
        """Return an object as it is published: the schedule of a view has begun."""
        if isinstance(item, MaterializedView) and isinstance(self.item, MaterializedView):
            return replace(item, schedule=self.item.schedule)
        return item

    def finished(
        self, item: ObjectId, state: TimelineState, new: frozenset[ArrangementId], untils: Untils
    ) -> Runs | None:
        """Return the runs of new arrangements up to a state; None if they cannot be had."""
        own = {name: self._own(name, item) for name in new}
        if any(self._untils.get(own[name]) != until for name, until in untils.items()):
            return None  # the process renewed its expiration
        imports = joint.traces_of(self._core.world, self._shape.imports)
        self._follow(_Reach(state.upper, state.traces, imports))
        self._core.expirations.dropped.update(self._dropped)
        return {name: self._runs[own[name]] for name in new}

    def _own(self, name: ArrangementId, item: ObjectId) -> ArrangementId:
        """Return how an arrangement was called when the object had another id."""
        for of in (collection_of, errors_of):
            if name == of(item):
                return of(self.item.id)
        return name

    def close(self) -> None:
        """Let go of what was kept, and let ticks go on."""
        self._pause.close()
        self._core.preparing.remove(self)
        self._core.unpin(self._world)
        if self._hold is not None:
            self._hold.release()


def scheduled(view: MaterializedView, as_of: Timestamp) -> MaterializedView:
    """Return a view whose schedule, if it has one, begins when its first rows are computed."""
    if view.schedule is None:
        return view
    schedule = view.schedule.begun(as_of)
    if schedule.first is None:
        message = f"every REFRESH AT of {view} is in the past"
        hint = "write REFRESH AT CREATION, or a time to come"
        raise InvalidDefinition(message, hint=hint)
    return replace(view, schedule=schedule)
