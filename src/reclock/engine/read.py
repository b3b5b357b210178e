"""Reads: choose a time, wait for it, and answer, without stopping writers.

A read chooses its timestamp by ``time.select`` from the oracle, from the frontiers of what it
reads, and from AS OF. The oracle is asked once, at the beginning: writes that come later cannot
make the read wait longer. If an input is not complete at that time, the read

- wakes the background loop, if a tick now gets that far, and waits for it, as long as
  ``statement_timeout`` allows, holding its time meanwhile, so that it stays readable;
- without a loop runs the tick itself, or fails because the clock has not reached that time.

Either way, readers that wait at the same time share a tick: one that began after they had chosen
their times, or that reaches these times all the same. The oracle is a value in memory, which ticks
and writes advance in their own durable appends: a read asks it and appends nothing.

Then it answers from one world: every object at the same time (P1, P7). A time beyond the
oracle's is not answered before the oracle has reached it (``Choice.linearize``).

A view whose error collection is not empty at that time has no answer: the read raises the
error instead, with its SQLSTATE. It is readable again when the row that failed is gone.

Tests: tests/engine/test_read.py; histories of many sessions: tests/session/test_linearizability.py.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reclock.arrangement.layout import diff_of
from reclock.dataflow.error_rows import failure
from reclock.dataflow.graph import errors_of
from reclock.engine.error_place import Asked, Kept, placed, placed_batches
from reclock.engine.first_read import check_loaded, wait_until_loaded
from reclock.engine.interrupt import Interrupt
from reclock.engine.leaves import leaves, shapes
from reclock.engine.logged_tables import in_log, logged, with_log
from reclock.engine.system_answer import with_rows
from reclock.engine.system_moment import Moment
from reclock.engine.tick import settle, tick
from reclock.errors import (
    HoldViolation,
    InvalidValue,
    StatementTimeout,
    Unreadable,
)
from reclock.ids import HolderId
from reclock.sql.as_of import asked
from reclock.sql.plan.temporal import at_time
from reclock.time import select as time_select
from reclock.time.pace import Own, order, parts_of
from reclock.time.select import Choice, select
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.settings import SessionSettings
    from reclock.dataflow.pieces import Pieces
    from reclock.engine.core import Core
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.sql.plan.relation import QueryPlan
    from reclock.sql.statement.select import AsOf
    from reclock.time.pace import Pace
    from reclock.time.timeline import Timeline

_numbers: Final = count(1)


@dataclass(frozen=True)
class Readable:
    """A plan and a world in which it can be answered at a time."""

    plan: QueryPlan
    world: World
    timestamp: Timestamp
    role: str | None
    """Who reads; None is who opened the database."""

    @property
    def timeline(self) -> Timeline | None:
        """The timeline of what is read; None for constants."""
        return self.plan.root.timeline.timeline

    def peek(self, core: Core, interrupt: Interrupt | None = None) -> pa.Table:
        """Return the answer, unless it is interrupted before."""
        shape, traces = shapes(self.world, self.plan)
        plan = self.shown(core)
        with placed(Asked(self.plan, plan, self.timestamp)):
            return core.engine.peek(plan, shape, traces, self.timestamp, stop=interrupt)

    def stream(self, core: Core, interrupt: Interrupt | None = None) -> Pieces:
        """Return the answer in batches."""
        shape, traces = shapes(self.world, self.plan)
        plan = self.shown(core)
        place = Asked(self.plan, plan, self.timestamp)
        with placed(place):
            pieces = core.engine.stream(plan, shape, traces, self.timestamp, stop=interrupt)
        return pieces._replace(batches=placed_batches(pieces.batches, place))

    def dataframe(self, core: Core) -> Any:
        """Return the answer as a Spark DataFrame."""
        shape, traces = shapes(self.world, self.plan)
        return core.engine.dataframe(self.shown(core), shape, traces, self.timestamp)

    def shown(self, core: Core) -> QueryPlan:
        """Return the plan for this time: of ``mz_now()``, and of what system relations show."""
        plan = with_rows(
            self.plan,
            self.world.catalog.system,
            lambda: Moment.of(core, self.world, self.timeline, self.timestamp, self.role),
        )
        return replace(plan, root=at_time(plan.root, int(self.timestamp)))


def read(
    core: Core,
    plan_of: Callable[[Catalog], QueryPlan],
    settings: SessionSettings,
    as_of: AsOf | None = None,
) -> tuple[QueryPlan, pa.Table, Timestamp]:
    """Answer a query; return its plan, the answer and the time it was answered at."""
    with readable(core, plan_of, settings, as_of, role=None) as at:
        return at.plan, at.peek(core), at.timestamp


@contextmanager
def readable(
    core: Core,
    plan_of: Callable[[Catalog], QueryPlan],
    settings: SessionSettings,
    as_of: AsOf | None = None,
    *,
    role: str | None,
    hold_all: bool = False,
    from_log: bool = False,
    interrupt: Interrupt | None = None,
) -> Iterator[Readable]:
    """Give a world in which the query can be answered; its segments stay in the block.

    While it waits it holds what the query reads, or all that its timeline has. With ``from_log``
    tables may be read with what is pending for them (``logged_tables``): the world is of use for
    this query alone.
    """
    asked_to_stop = interrupt or Interrupt()
    timeout = settings.statement_timeout
    deadline = None if timeout is None else monotonic() + timeout
    read_ts: Timestamp | None = None
    with ExitStack() as held:
        while True:
            with core.reading() as world:
                plan = plan_of(world.catalog)
                timeline = plan.root.timeline.timeline
                if read_ts is None:
                    read_ts = read_time(world, timeline)
                chosen = partial(choose, world, settings=settings, read_ts=read_ts, as_of=as_of)
                plan, choice = settled(plan, plan_of, world.catalog, chosen)
                seen = world
                if from_log and not choice.ready:
                    seen = with_log(core, world, plan)
                    if seen is not world:
                        choice = choose(seen, plan, settings, read_ts, as_of)
                if timeline is None or can_answer(seen[timeline], choice):
                    check_errors(seen, plan, choice.timestamp)
                    yield Readable(plan, seen, choice.timestamp, role)
                    return
                items = [item.id for item in leaves(world, plan)]
                paces = {world.pace(item) for item in leaves(world, plan)}
                loading = world.loading(leaves(world, plan))
                if hold_all:
                    items = kept_at(world, timeline, choice.timestamp)
            if loading:
                wait_until_loaded(core, loading, deadline, asked_to_stop)
                continue
            with suppress(HoldViolation, InvalidValue):  # forgotten or dropped just now
                held.enter_context(core.hold(_holder(), items, choice.timestamp))
            _advance(core, timeline, paces, choice, deadline, interrupt=asked_to_stop)


def kept_at(world: World, timeline: Timeline, time: Timestamp) -> list[ObjectId]:
    """Return the objects of a timeline that can be read at a time, once it is complete."""
    return [
        item
        for state in world.timelines.values()
        if state.timeline == timeline
        for item, since in state.sinces.items()
        if since.less_equal(time)
    ]


def can_answer(state: TimelineState, choice: Choice) -> bool:
    """Return whether a timeline is where a choice needs it."""
    return choice.ready and (not choice.linearize or state.oracle.read_ts >= choice.timestamp)


def read_latest(
    core: Core, plan: QueryPlan, role: str | None, interrupt: Interrupt | None = None
) -> pa.Table:
    """Answer a query as part of a write: at a time before which nothing more can happen.

    The caller holds the lock, so what is read is what the write is applied to: tables with what is
    pending for them, while a tick computes; else what is complete after a tick.
    """
    timeline = plan.root.timeline.timeline
    if timeline is not None and in_log(core, core.world, plan):
        seen = logged(core.world, timeline, plan)
        return Readable(plan, seen, seen[timeline].upper.back(), role).peek(core, interrupt)
    as_of = latest(core, plan)
    if as_of is None:
        as_of = read_time(core.world, None) or Timestamp(0)
    return Readable(plan, core.world, as_of, role).peek(core, interrupt)


def latest(core: Core, plan: QueryPlan) -> Timestamp | None:
    """Make the last time complete in all that a plan reads, and return it; hold the lock.

    None if it reads nothing. Raises the error that something has at that time.
    """
    timeline = plan.root.timeline.timeline
    if timeline is None:
        return None
    as_of = settle(core, timeline).upper.back()
    items = leaves(core.world, plan)
    for pace in sorted({core.world.pace(item) for item in items} - {timeline}, key=order):
        settle(core, pace)
    bounds = [core.world.bounds(item) for item in items]
    check_ready(select(bounds, as_of=time_select.AsOf(as_of)))
    check_errors(core.world, plan, as_of)
    return as_of


def settled(
    plan: QueryPlan,
    plan_of: Callable[[Catalog], QueryPlan],
    catalog: Catalog,
    choose_for: Callable[[QueryPlan], Choice],
) -> tuple[QueryPlan, Choice]:
    """Return the plan that is answered, and the time that is chosen for it.

    An index that keeps a view has no rows of times before it was made: there the view is its query.
    """
    try:
        return plan, choose_for(plan)
    except Unreadable:
        if catalog.plain is catalog:
            raise
    plan = plan_of(catalog.plain)
    return plan, choose_for(plan)


def choose(
    world: World,
    plan: QueryPlan,
    settings: SessionSettings,
    read_ts: Timestamp | None,
    as_of: AsOf | None = None,
) -> Choice:
    """Choose the timestamp of a read."""
    timeline = plan.root.timeline.timeline
    bounds = []
    if timeline is not None:
        bounds = [world.bounds(item) for item in leaves(world, plan)]
    wanted = asked(as_of, timeline)
    if isinstance(wanted, time_select.AsOf):
        check_loaded(world, leaves(world, plan), wanted.time)
    return select(bounds, isolation=settings.isolation, read_ts=read_ts, as_of=wanted)


def read_time(world: World, timeline: Timeline | None) -> Timestamp | None:
    """Return the oracle's time of a timeline; constants are read at that of the clock's."""
    state = world.timelines.get(EPOCH_MS if timeline is None else timeline)
    return None if state is None else state.oracle.read_ts


def check_errors(world: World, plan: QueryPlan, as_of: Timestamp) -> None:
    """Raise the error that a view holds at ``as_of``, if one that is read does."""
    for item in leaves(world, plan):
        state = world.of(item)
        arrangement = state.shape.graph.arrangements.get(errors_of(item.id))
        if arrangement is None:
            continue
        for batch in state.traces[arrangement.id].snapshot(as_of):
            there = batch.filter(pa.array(diff_of(batch) > 0))
            if there.num_rows:
                codes, messages = (c.to_pylist() for c in arrangement.keying.columns(there))
                code, message = min(zip(codes, messages, strict=True))
                with placed(Kept(item.id, as_of)):
                    raise failure(code, message, f"in {item} at {as_of}")


def _holder() -> HolderId:
    return HolderId(f"read/{next(_numbers)}")


def check_ready(choice: Choice) -> None:
    """Refuse to answer at a time that is not complete in something that is read."""
    if not choice.ready:
        message = f"timestamp {choice.timestamp} is not complete yet"
        hint = "let the sources that bring their times get there, or read with AS OF"
        raise Unreadable(message, detail=_lags(choice), hint=hint)


def _advance(
    core: Core,
    timeline: Timeline,
    paces: set[Pace],
    choice: Choice,
    deadline: float | None,
    *,
    interrupt: Interrupt,
) -> None:
    """Let time pass until a choice may be ready; ``paces`` are those of what is read."""
    state, now = core.world[timeline], core.clock.now_ms()
    every = {part for pace in paces for part in parts_of(pace)}
    own = [pace for pace in sorted(every, key=order) if isinstance(pace, Own)]
    behind = [pace for pace in own if core.world[pace].frontier.less_equal(choice.timestamp)]

    def reaches(interval: int) -> bool:
        next_tick = state.tick_time(now, interval, own=core.world.own(timeline))
        return next_tick is not None and next_tick >= choice.timestamp

    due = reaches(1)
    if core.loop is not None:
        if due:
            core.loop.wake(timeline, choice.timestamp)
        for pace in behind:
            core.loop.wake(pace, choice.timestamp)
        with interrupt.waking(core.wake):
            _wait(core, timeline, paces, choice, deadline, interrupt=interrupt)
        return
    before = [core.world[pace].upper for pace in behind]
    if before != [tick(core, pace).upper for pace in behind]:
        return
    if behind and (timeline not in every or state.upper > choice.timestamp):
        check_ready(choice)
    if due or state.upper > choice.timestamp:
        _tick_from(core, state)
    elif reaches(core.settings.timestamp_interval_ms):
        _tick_from(core, state, regular=True)
    else:
        message = f"timestamp {choice.timestamp} is not complete yet"
        hint = "let the clock get there, or open the database with background=True to wait"
        raise Unreadable(message, detail=_lags(choice), hint=hint)


def _tick_from(core: Core, state: TimelineState, *, regular: bool = False) -> None:
    """Tick what was in a state, unless another reader has done so by then."""
    tick(core, state.pace, regular=regular, lower=state.upper)


def _wait(
    core: Core,
    timeline: Timeline,
    paces: set[Pace],
    choice: Choice,
    deadline: float | None,
    *,
    interrupt: Interrupt,
) -> None:
    """Wait until the loop has got to a choice."""
    loop = core.loop
    assert loop is not None

    def arrived() -> bool:
        interrupt.check()
        for pace in {timeline, *paces}:
            loop.check(pace)
        world = core.world
        if choice.linearize and world[timeline].oracle.read_ts < choice.timestamp:
            return False
        return not any(world[pace].frontier.less_equal(choice.timestamp) for pace in paces)

    with core.moved:
        left = None if deadline is None else max(0.0, deadline - monotonic())
        if core.moved.wait_for(arrived, left):
            return
    message = f"no answer at {choice.timestamp} within statement_timeout"
    detail = _lags(choice)
    for pace in sorted({timeline, *paces}, key=order):
        if (failure := loop.failures.get(pace)) is not None:
            detail += f"; its ticks fail: {failure.message} ({failure.detail})"
    raise StatementTimeout(message, detail=detail, hint="raise statement_timeout, or read earlier")


def _lags(choice: Choice) -> str:
    lags = ", ".join(map(str, choice.waiting_for))
    return f"waited for {lags} to pass {choice.timestamp}"
