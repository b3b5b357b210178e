"""New objects filled beside the ticks: nobody waits for a first load.

What a new view, index or followed query needs is computed as of the last complete time of a world
that is kept for it, without the lock. Meanwhile ticks and writes go on; what they did is then
followed (``dataflow.follow``) in rounds, each as short as the one before it took, and the last, of
what happened since, under the lock, in the append that makes the object known. So the object is
right at every time from the first one on (P3), and ticks wait for a moment, not for the load.

The rows that are followed are held until then. Files that were written have no name before the
append: a crash leaves nothing but them.

What was prepared may not fit any more, because objects came or went meanwhile: whoever prepared
it does so again (``beside``), and after some attempts fills it under the lock. So are views over
objects that do not become complete together (``joint``).

Tests: tests/coordinator/test_prepare.py.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from reclock.arrangement.cache import process_cache
from reclock.arrangement.shard import Shard
from reclock.coordinator.arrangements import FIRST, beginning, following, layouts_of, write_runs
from reclock.coordinator.change import scheduled
from reclock.coordinator.item import MaterializedView
from reclock.coordinator.shape import Shape
from reclock.dataflow.graph import Limits, collection_of, errors_of
from reclock.errors import HoldViolation, InvalidValue
from reclock.failpoints import hit
from reclock.ids import HolderId
from reclock.time.frontier import at
from reclock.time.pace import is_joint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from reclock.arrangement.run import RunRef
    from reclock.coordinator.arrangements import Runs
    from reclock.coordinator.core import Core
    from reclock.coordinator.engine import Updates
    from reclock.coordinator.interrupt import Interrupt
    from reclock.coordinator.item import Item
    from reclock.coordinator.sequence.context import Context
    from reclock.coordinator.timeline import TimelineState, Untils
    from reclock.coordinator.world import World
    from reclock.dataflow.graph import ArrangementId
    from reclock.ids import ObjectId
    from reclock.time.description import Description
    from reclock.time.holds import Hold
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp

T = TypeVar("T")

ATTEMPTS: Final = 3
"""How often something is prepared before it is filled under the lock."""

ROUNDS: Final = 16
SHORT: Final = 0.05
"""A round of so many seconds is the last one before the lock."""

_numbers: Final = count(1)


def beside(
    context: Context,
    make: Callable[[World], Item | None],
    finish: Callable[[World, Item, Prepared | None], T],
    *,
    transient: bool = False,
) -> T | None:
    """Add an object: ``make`` defines it, ``finish`` publishes it under the lock.

    ``make`` is called for the world as it is, before and under the lock; None is nothing to do.
    """
    interrupt = context.session.interrupt
    for attempt in range(ATTEMPTS):
        with (
            prepared(context.core, make, interrupt, transient=transient) as ready,
            context.writing() as world,
        ):
            item = make(world)
            if item is None:
                return None
            fits = ready is not None and ready.fits(world, item)
            if ready is None or fits or attempt == ATTEMPTS - 1:
                return finish(world, item, ready if fits else None)
    raise AssertionError


@contextmanager
def prepared(
    core: Core,
    make: Callable[[World], Item | None],
    interrupt: Interrupt,
    *,
    transient: bool = False,
) -> Iterator[Prepared | None]:
    """Fill what an object needs without the lock; None if that is nothing, or not possible."""
    with ExitStack() as stack:
        ready = _begun(core, make, stack, transient=transient)
        if ready is not None:
            stack.enter_context(core.unnamed())
            ready.fill(interrupt)
            ready.catch_up(interrupt)
            hit("ddl.prepare.after")
        yield ready


def _begun(
    core: Core, make: Callable[[World], Item | None], stack: ExitStack, *, transient: bool
) -> Prepared | None:
    """Return what is to be prepared, in a world that is kept while ``stack`` is."""
    with core.reading() as world:
        item = make(world)
        if item is None or item.timeline is None or not item.arranges:
            return None
        pace = world.catalog.pace(item.timeline, item.depends)
        state = world.timelines.get(pace)
        if state is None or is_joint(pace) or state.upper <= FIRST:
            return None
        ready = Prepared(core, world, pace, item, transient=transient)
        if not ready.new:
            return None
        stack.callback(ready.close)
        return ready if ready.holds() else None


class Prepared:
    """What an object needs and nothing keeps yet, filled up to some time; one thread uses it."""

    def __init__(
        self, core: Core, world: World, pace: Pace, item: Item, *, transient: bool
    ) -> None:
        self._core = core
        self._pace = pace
        self._asked = item
        self._transient = transient
        self._state = state = world[pace]
        self.item = item
        """The object; the schedule of a view begins when its first rows are computed."""
        if isinstance(item, MaterializedView):
            self.item = scheduled(item, self._as_of)
        self._shape = self._shape_in(world, self.item)
        graph = self._shape.graph
        self.new = frozenset(graph.arrangements.keys() - state.shape.graph.arrangements.keys())
        """The arrangements that are filled."""
        steps = graph.needed(self.new, ())
        objects = (*graph.tables.items(), *graph.views.items())
        known = state.shape.kept
        self._below = frozenset(i for i, step in objects if step in steps and i in known)
        decided = core.expirations.untils(state, self._shape)
        self._untils = {name: until for name, until in decided.items() if name in self.new}
        self._dropped: Counter[ArrangementId] = Counter()
        kept = {name: until for name, until in self._untils.items() if until is not None}
        self._shape = replace(self._shape, limits=Limits(kept, self._dropped))
        self._runs: dict[ArrangementId, tuple[RunRef, ...]] = {}
        self._number = next(_numbers)
        self._hold: Hold | None = None
        self._world = world
        core.pin(world)

    @property
    def _as_of(self) -> Timestamp:
        """The last time that is there."""
        return self._state.upper.back()

    def _shape_in(self, world: World, item: Item) -> Shape:
        """Return the shape that the pace has when an object is added to a world."""
        catalog, transients = world.catalog, dict(world.transients)
        if self._transient:
            assert isinstance(item, MaterializedView)
            transients[item.id] = item
        else:
            catalog = catalog.changed([item], ())
        return Shape.of(catalog, self._pace, transients.values())

    def holds(self) -> bool:
        """Hold what is followed, and return whether that can be: nothing is forgotten yet."""
        try:
            holder = HolderId(f"prepare/{self._number}")
            self._hold = self._core.hold(holder, self._below, self._as_of)
        except (HoldViolation, InvalidValue):  # forgotten, or dropped, just now
            return False
        return True

    def fill(self, interrupt: Interrupt) -> None:
        """Compute everything as of the last complete time, and write it."""
        hit("ddl.prepare.before")
        updates = self._core.engine.hydrate(
            self._shape, self.new, self._state.traces, self._as_of, stop=interrupt
        )
        descriptions = dict.fromkeys(sorted(self.new), beginning(self._as_of))
        self._write(updates, descriptions)

    def catch_up(self, interrupt: Interrupt) -> None:
        """Follow what has happened, until that takes no time, or it cannot be followed."""
        for _ in range(ROUNDS):
            interrupt.check()
            begun = monotonic()
            with self._core.reading() as world:
                if not self._is_below(world):
                    return
                self._follow(world[self._pace])
                self._core.pin(world)
                self._core.unpin(self._world)
                self._world = world
            if self._hold is not None and self._below:
                self._hold.downgrade(at(self._as_of))
            if monotonic() - begun < SHORT:
                return

    def _is_below(self, world: World) -> bool:
        """Return whether all that is followed is still there."""
        state = world.timelines.get(self._pace)
        return state is not None and self._below <= state.sinces.keys()

    def _follow(self, state: TimelineState) -> None:
        """Bring what is filled to where a later state is."""
        lower, upper = self._state.upper, state.upper
        if lower < upper:
            before = {**self._state.traces, **self._shards()}
            updates = self._core.engine.follow(
                self._shape, self.new, before, state.traces, lower=lower, upper=upper
            )
            self._write(updates, {a: following(self._runs[a], upper) for a in sorted(updates)})
        self._state = state

    def _write(
        self,
        updates: Mapping[ArrangementId, Updates],
        descriptions: Mapping[ArrangementId, Description[Timestamp]],
    ) -> None:
        stem = self._state.stem(f"prepare{self._number}", self._state.upper)
        layouts = layouts_of(self._shape.graph)
        made = write_runs(self._state.segments, stem, updates, layouts, descriptions)
        self._runs |= {a: (*self._runs.get(a, ()), *refs) for a, refs in made.items()}

    def _shards(self) -> dict[ArrangementId, Shard]:
        layouts, upper = layouts_of(self._shape.graph), at(self._state.upper)
        return {
            a: Shard.open(layouts[a], refs, self._state.segments, process_cache(), upper)
            for a, refs in self._runs.items()
        }

    # Under the lock.

    def fits(self, world: World, item: Item) -> bool:
        """Return whether this is what an object needs that is to be added to a world."""
        if replace(self._asked, id=item.id) != item or not self._is_below(world):
            return False
        needed = self._shape_in(world, replace(self.item, id=item.id)).graph.arrangements
        there = world[self._pace].shape.graph.arrangements.keys()
        return all(self._own(name, item.id) in self._runs for name in needed.keys() - there)

    def finished(
        self, item: ObjectId, state: TimelineState, new: frozenset[ArrangementId], untils: Untils
    ) -> Runs | None:
        """Return the runs of new arrangements up to a state; None if they cannot be had."""
        own = {name: self._own(name, item) for name in new}
        if any(self._untils.get(own[name]) != until for name, until in untils.items()):
            return None  # the process renewed its expiration
        self._follow(state)
        self._core.expirations.dropped.update(self._dropped)
        return {name: self._runs[own[name]] for name in new}

    def _own(self, name: ArrangementId, item: ObjectId) -> ArrangementId:
        """Return how an arrangement was called when the object had another id."""
        for of in (collection_of, errors_of):
            if name == of(item):
                return of(self.item.id)
        return name

    def close(self) -> None:
        """Let go of what was kept."""
        self._core.unpin(self._world)
        if self._hold is not None:
            self._hold.release()
