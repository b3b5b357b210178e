"""Dataflow expiration at work: what need not be stored, the guard, and renewal (P8).

A pending arrangement (``operators.temporal``) may have an *until*: updates due at or after it are
not written. It is durable, in the manifest, with the runs that were written by it; which until a
view gets is the decision table of ``time.expiry``, for the start of the process and the value that
``compute_replica_expiration_offset`` has now. If that window is over already, because the setting
was made shorter than the process has run, a window begins when it is changed.

Guard. The upper of a timeline goes up to the least until, and not beyond: ``closing`` stands
before every tick and change of the catalog, where all views, indexes, subscriptions and sinks of
the timeline publish at once. So every time that is ever published was computed from all of its
retractions; the process stops (``DataflowExpired``) rather than go on.

Renewal. What was not written is derived again from the inputs: the whole arrangement as of the
last complete time, with another until. Its runs take the place of the old ones in the append of
a tick, with the new until; a crash before that leaves the old runs, the old until and a file that
nothing names. It happens

- in the first tick of a process, and in the first one after the offset was changed, if the
  decision is not the one that is stored. A smaller window drops, a larger one derives;
- with ``expiration_renewal``, in the last tenth of the window, by a background thread. The ticks
  write with the new until meanwhile (``TimelineState.ahead``), so what is derived as of the time it
  began, and what they wrote since, are together what it would be had it never expired. If the clock
  jumps past the end, the tick that finds it so renews first.

Cost: a renewal is a first load of the filter: the rows of its inputs. If that would take the driver
more than a moment it is a Spark job, in the pool of merges. In the driver it goes in small pieces,
lets ticks pass, and rests between (``arrangement.precedence``), until half of the time that is left
has passed; with an operator below the filter that needs all rows at once, in one. Closing ends it.

Tests: tests/engine/test_expirations.py.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol

from reclock.arrangement.precedence import Unhurried
from reclock.catalog.item import Index, MaterializedView
from reclock.dataflow.graph import Limits
from reclock.engine.arrangements import Swap, layouts_of, write_runs
from reclock.engine.interrupt import Interrupt
from reclock.engine.renewal import Due, Renewal
from reclock.errors import Interrupted
from reclock.failpoints import hit
from reclock.sql.plan.relation import Get, walk
from reclock.time.description import Description
from reclock.time.expiry import Decision, Dependency, Lifetime, check, decide
from reclock.time.frontier import at
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.catalog.item import Item
    from reclock.catalog.settings import SystemSettings
    from reclock.clock import Clock
    from reclock.dataflow.graph import ArrangementId
    from reclock.engine.engine import Engine
    from reclock.engine.shape import Shape
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.time.pace import Pace

    Reads = list[tuple[ObjectId, str]]

TENTH: Final = 10
"""Renewal begins when one of so many parts of the window is left."""


@dataclass
class _Running:
    """A renewal in the background."""

    untils: Mapping[ArrangementId, int | None]
    world: World
    pace: Unhurried
    deadline: int
    """From when on it hurries: half of what was left of the window."""
    future: Future[Renewal]


class Owner(Protocol):
    """What is needed of the owner of the state."""

    @property
    def clock(self) -> Clock:
        """Its clock."""
        ...

    @property
    def settings(self) -> SystemSettings:
        """The settings of the system."""
        ...

    @property
    def engine(self) -> Engine:
        """What computes."""
        ...

    @property
    def world(self) -> World:
        """The last world that is known to be durable."""
        ...

    def adopt(self, state: TimelineState) -> None:
        """Make a state the current one that differs in nothing durable."""
        ...

    def pin(self, world: World) -> None:
        """Keep the segments of a world."""
        ...

    def unpin(self, world: World) -> None:
        """Let them go."""
        ...


class Expirations:
    """The expiration of one process: its lifetime, and who derives what comes after it."""

    def __init__(self, core: Owner) -> None:
        self._core = core
        offset = core.settings.values.expiration_offset_ms
        self._started = core.clock.now_ms()
        self.lifetime = Lifetime(self._started, offset)
        self.dropped: Counter[ArrangementId] = Counter()
        """Updates that this process did not keep."""
        self._begun: set[Pace] = set()
        """The paces that keep what the decisions of this lifetime say."""
        self._decisions = 0
        """How often the decisions have changed."""
        self._door = Lock()
        self._closed = False
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reclock-renew")
        self._running: dict[Pace, _Running] = {}
        self._stop = Interrupt()

    def follow(self) -> None:
        """Follow the setting, if it has changed: the next ticks keep what it says."""
        offset, now = self._core.settings.values.expiration_offset_ms, self._core.clock.now_ms()
        if offset != self.lifetime.offset_ms:
            is_over = self._started + offset <= now
            self.lifetime = Lifetime(now if is_over else self._started, offset)
            self._begun.clear()
            self._decisions += 1

    # Decisions.

    def decision(self, item: MaterializedView | Index, state: TimelineState) -> Decision:
        """Apply the decision table to the dataflow that keeps an object."""
        items = self._core.world.items
        inputs = [
            Dependency(name, state.frontier, refreshed=_is_refreshed(read, items))
            for read, name in _reads(item, items)
        ]
        timeline = None if state.is_own else state.timeline  # its times are the sender's
        if isinstance(item, Index):
            return decide(item.dataflow, timeline, inputs, self.lifetime)
        scheduled = item.schedule is not None
        return decide(
            item.dataflow, timeline, inputs, self.lifetime, item.until, scheduled=scheduled
        )

    def untils(self, state: TimelineState, shape: Shape) -> dict[ArrangementId, int | None]:
        """Return until when each pending arrangement of a shape is to be kept."""
        found: dict[ArrangementId, int | None] = {}
        for name, views in shape.filters.items():
            ends = [self.decision(shape.defined[view], state).expiration for view in views]
            forever = not ends or any(end.is_closed for end in ends)
            found[name] = None if forever else max(int(end.element()) for end in ends)
        return found

    def is_followed(self, pace: Pace) -> bool:
        """Return whether what a pace stores is what the decisions say: since its last tick."""
        return pace in self._begun

    # The guard.

    def closing(
        self,
        state: TimelineState,
        time: Timestamp,
        renewed: Mapping[ArrangementId, int | None] | None = None,
    ) -> Timestamp:
        """Return the time that a step may close, or refuse to go past what is kept.

        A regular tick that would round up past the end closes what is before it. ``renewed`` are
        the untils that change with the step.
        """
        untils = {**self._known(state), **(renewed or {})}
        for name, until in untils.items():
            if until is None or time.step() <= until:
                continue
            last = Timestamp(until).back()
            if last >= state.table_upper and self._core.clock.now_ms() < until:
                return self.closing(state, last, renewed)
            items = self._core.world.items
            views = sorted(str(items[v]) for v in state.shape.filters.get(name, ()) if v in items)
            dataflow = ", ".join(views) or "the dataflow"
            check(at(time.step()), at(until), dataflow=dataflow)
        return time

    # Renewal.

    @property
    def is_busy(self) -> bool:
        """Whether files are being written that nothing names yet."""
        return bool(self._running)

    def due(self, state: TimelineState, time: Timestamp) -> Due:
        """Return what is renewed with the tick that closes ``time``; hold the lock."""
        pace, known = state.pace, self._known(state)
        if pace not in self._begun:
            wanted = self.untils(state, state.shape)
            if self._renews and _is_past(time, wanted):
                wanted = self._next(state)
            changed = {
                a: until for a, until in wanted.items() if known.get(a) != until or a in state.ahead
            }
            if pace in self._running:
                self._end(pace)  # it renews what an earlier decision said
            return Due(changed, begins=self._decisions)
        running = self._running.get(pace)
        if running is not None:
            if any(state.ahead.get(a) != until for a, until in running.untils.items()):
                self._end(pace)  # the world was read again: ticks have forgotten it
            elif running.future.done() and not running.future.cancelled():
                self._end(pace)
                if running.future.exception() is None and _fits(state, running.future.result()):
                    made = running.future.result()
                    return Due(made.untils, made)
        if self._renews and _is_past(time, known):
            return Due(self._next(state))
        return Due()

    def renewal(self, state: TimelineState, due: Due) -> Renewal:
        """Return what is renewed with a tick, derived and written."""
        return self._derived(state, due.untils) if due.made is None else due.made

    def landed(self, pace: Pace, due: Due, dropped: Counter[ArrangementId]) -> None:
        """Note that a tick is published, with what was due; hold the lock."""
        self.dropped.update(dropped)
        if due.begins == self._decisions:
            self._begun.add(pace)

    def consider(self, state: TimelineState) -> None:
        """Begin to renew in the background, if the window is about to end; hold the lock."""
        known, now = self._known(state), self._core.clock.now_ms()
        running = self._running.get(state.pace)
        if running is not None and now >= running.deadline:
            running.pace.hurry()
        if not self._renews or not known or running is not None:
            return
        left = min(known.values()) - now
        if left * TENTH > self.lifetime.offset_ms:
            return
        untils = self._next(state)
        ahead = {a: until for a, until in untils.items() if until is not None}
        with self._door:  # a tick may land while another thread closes
            if self._closed:
                return
            begun = replace(state, ahead=ahead)
            self._core.adopt(begun)
            world = self._core.world
            self._core.pin(world)
            pace = Unhurried()
            future = self._pool.submit(self._derived, begun, untils, pace)
            self._running[state.pace] = _Running(untils, world, pace, now + left // 2, future)

    def wait(self) -> None:
        """Wait until no renewal is under way; what it made waits for the next tick."""
        for running in list(self._running.values()):
            running.pace.hurry()
            running.future.exception()

    def close(self) -> None:
        """End the renewal under way, and begin no other."""
        with self._door:
            self._closed = True
        self._stop.set(Interrupted("the database is closed"))
        for running in list(self._running.values()):
            running.pace.hurry()
        self._pool.shutdown(cancel_futures=True)

    @staticmethod
    def _known(state: TimelineState) -> dict[ArrangementId, int]:
        """Return the untils of the arrangements that a state still needs."""
        there = state.shape.graph.arrangements
        return {a: until for a, until in state.arrangements.untils.items() if a in there}

    @property
    def _renews(self) -> bool:
        return bool(self.lifetime.offset_ms) and self._core.settings.values.expiration_renewal

    def _next(self, state: TimelineState) -> dict[ArrangementId, int | None]:
        """Return the untils of a window that begins now."""
        self.lifetime = Lifetime(self._core.clock.now_ms(), self.lifetime.offset_ms)
        return self.untils(state, state.shape)

    def _end(self, pace: Pace) -> None:
        self._core.unpin(self._running.pop(pace).world)

    def _derived(
        self,
        state: TimelineState,
        untils: Mapping[ArrangementId, int | None],
        beside: Unhurried | None = None,
    ) -> Renewal:
        """Compute pending arrangements as of the last complete time, and write them."""
        if not untils:
            return Renewal()
        hit("renewal.derive.before")
        counted: Counter[ArrangementId] = Counter()
        kept = {a: until for a, until in untils.items() if until is not None}
        shape = replace(state.shape, limits=Limits(kept, counted))
        as_of = state.upper.back()
        updates = self._core.engine.hydrate(
            shape, frozenset(untils), state.traces, as_of,
            beside=beside, stop=None if beside is None else self._stop,
        )  # fmt: skip
        known = state.arrangements.runs
        descriptions = {
            a: Description(at(0), known[a][-1].description.upper, at(as_of)) for a in sorted(untils)
        }
        stem = state.stem("renew", state.upper)
        made = write_runs(state.segments, stem, updates, layouts_of(shape.graph), descriptions)
        for name in untils:
            self.dropped[name] = counted[name]
        hit("renewal.derive.after")
        swaps = tuple(
            Swap(a, known[a], tuple(replace(ref, description=descriptions[a]) for ref in refs))
            for a, refs in made.items()
        )
        return Renewal(swaps, untils)


def _reads(item: MaterializedView | Index, items: Mapping[ObjectId, Item]) -> Reads:
    """Return the objects that a dataflow actually reads, and their names."""
    if item.plan is None:
        assert isinstance(item, Index)
        return [(item.arranged, items[item.arranged].name)]
    return sorted({(node.item, node.name) for node in walk(item.plan) if isinstance(node, Get)})


def _is_refreshed(read: ObjectId, items: Mapping[ObjectId, Item]) -> bool:
    """Return whether an object has a refresh schedule, or is made of one that has."""
    seen: set[ObjectId] = set()
    waiting = [read]
    while waiting:
        item = items.get(waiting.pop())
        if not isinstance(item, MaterializedView) or item.id in seen:
            continue
        if item.schedule is not None:
            return True
        seen.add(item.id)
        waiting += [below for below, _ in _reads(item, items)]
    return False


def _is_past(time: Timestamp, untils: Mapping[ArrangementId, int | None]) -> bool:
    """Return whether a tick that closes ``time``, and a step after it, are too much."""
    return any(until is not None and time.step().step() > until for until in untils.values())


def _fits(state: TimelineState, renewal: Renewal) -> bool:
    """Return whether the runs that were there when it began still are."""
    runs = state.arrangements.runs
    return all(set(swap.merged) <= set(runs.get(swap.arrangement, ())) for swap in renewal.swaps)
