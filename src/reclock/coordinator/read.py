"""Reads: which time, waiting for it, and the answer, without stopping writers.

A read chooses its timestamp by ``time.select`` from the oracle and from the frontiers of
what it reads. If something is not complete at that time, the read runs the ticks it needs,
or, when a loop ticks in the background, waits for it, as long as ``statement_timeout``
allows. The oracle is asked once, at the beginning: writes that come later cannot make the
read wait longer. Then it answers from one world: every object at the same time (P1, P7).

A view whose error collection is not empty at that time has no answer: the read raises the
error instead, with its SQLSTATE. It is readable again when the row that failed is gone.

Tests: tests/coordinator/test_read.py.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reclock.arrangement.layout import diff_of
from reclock.coordinator.item import RelationItem
from reclock.coordinator.system import RELATIONS
from reclock.coordinator.system.answer import with_rows
from reclock.coordinator.system.relation import Moment
from reclock.coordinator.tick import tick
from reclock.dataflow.graph import errors_of
from reclock.errors import ExpressionFailed, StatementTimeout
from reclock.sql.plan.relation import Get, walk
from reclock.time.select import Choice, select
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.coordinator.catalog import Catalog
    from reclock.coordinator.core import Core
    from reclock.coordinator.settings import SessionSettings
    from reclock.coordinator.world import World
    from reclock.sql.plan.relation import QueryPlan
    from reclock.time.timeline import Timeline


@dataclass(frozen=True)
class Readable:
    """A plan and a world in which it can be answered at a time."""

    plan: QueryPlan
    world: World
    timestamp: Timestamp

    @property
    def timeline(self) -> Timeline | None:
        """The timeline of what is read; None for constants."""
        return self.plan.root.timeline.timeline

    def peek(self, core: Core) -> pa.Table:
        """Return the answer."""
        if self.timeline is None:
            return core.engine.peek(self._shown(core), None, {}, self.timestamp)
        state = self.world[self.timeline]
        return core.engine.peek(self._shown(core), state.shape, state.traces, self.timestamp)

    def dataframe(self, core: Core) -> Any:
        """Return the answer as a Spark DataFrame."""
        if self.timeline is None:
            return core.engine.dataframe(self._shown(core), None, {}, self.timestamp)
        state = self.world[self.timeline]
        return core.engine.dataframe(self._shown(core), state.shape, state.traces, self.timestamp)

    def _shown(self, core: Core) -> QueryPlan:
        """Return the plan with the rows of system relations, as they are in this world."""
        return with_rows(
            self.plan, lambda: Moment.of(core, self.world, self.timeline, self.timestamp)
        )


def read(
    core: Core, plan_of: Callable[[Catalog], QueryPlan], settings: SessionSettings
) -> tuple[QueryPlan, pa.Table, Timestamp]:
    """Answer a query; return its plan, the answer and the time it was answered at."""
    with readable(core, plan_of, settings) as at:
        return at.plan, at.peek(core), at.timestamp


@contextmanager
def readable(
    core: Core, plan_of: Callable[[Catalog], QueryPlan], settings: SessionSettings
) -> Iterator[Readable]:
    """Give a world in which the query can be answered; its segments stay in the block."""
    timeout = settings.statement_timeout
    deadline = None if timeout is None else monotonic() + timeout
    read_ts: Timestamp | None = None
    while True:
        with core.reading() as world:
            plan = plan_of(world.catalog)
            timeline = plan.root.timeline.timeline
            if read_ts is None:
                read_ts = _read_ts(world, timeline)
            choice = choose(world, plan, settings, read_ts)
            if choice.ready or timeline is None:
                check_errors(world, plan, choice.timestamp)
                yield Readable(plan, world, choice.timestamp)
                return
        _advance(core, timeline, choice, deadline)


def read_latest(core: Core, plan: QueryPlan) -> pa.Table:
    """Answer a query as part of a write: at a time before which nothing more can happen.

    The caller holds the lock, so what is read is what the write is applied to.
    """
    timeline = plan.root.timeline.timeline
    if timeline is None:
        now = _read_ts(core.world, None) or Timestamp(0)
        return Readable(plan, core.world, now).peek(core)
    as_of = tick(core, timeline).upper.back()
    check_errors(core.world, plan, as_of)
    return Readable(plan, core.world, as_of).peek(core)


def choose(
    world: World, plan: QueryPlan, settings: SessionSettings, read_ts: Timestamp | None
) -> Choice:
    """Choose the timestamp of a read."""
    timeline = plan.root.timeline.timeline
    bounds = []
    if timeline is not None:
        bounds = [world[timeline].bounds(item) for item in leaves(world, plan)]
    return select(bounds, isolation=settings.isolation, read_ts=read_ts)


def leaves(world: World, plan: QueryPlan) -> list[RelationItem]:
    """Return the objects whose rows a plan reads, each once; system relations are none."""
    found = dict.fromkeys(node.item for node in walk(plan.root) if isinstance(node, Get))
    items = [world.catalog[item] for item in found if item not in RELATIONS]
    return [item for item in items if isinstance(item, RelationItem)]


def check_errors(world: World, plan: QueryPlan, as_of: Timestamp) -> None:
    """Raise the error that a view holds at ``as_of``, if one that is read does."""
    for item in leaves(world, plan):
        assert item.timeline is not None
        state = world[item.timeline]
        arrangement = state.shape.graph.arrangements.get(errors_of(item.id))
        if arrangement is None:
            continue
        for batch in state.traces[arrangement.id].snapshot(as_of):
            there = batch.filter(pa.array(diff_of(batch) > 0))
            if there.num_rows:
                codes, messages = (c.to_pylist() for c in arrangement.keying.columns(there))
                code, message = min(zip(codes, messages, strict=True))
                detail = f"in {item} at {as_of}; the error goes when its row does"
                raise ExpressionFailed(message, code=code, detail=detail)


def _read_ts(world: World, timeline: Timeline | None) -> Timestamp | None:
    state = world.timelines.get(EPOCH_MS if timeline is None else timeline)
    return None if state is None else state.oracle.read_ts


def _advance(core: Core, timeline: Timeline, choice: Choice, deadline: float | None) -> None:
    """Let time pass until a choice may be ready."""
    if core.loop is None:
        tick(core, timeline)
        return

    def arrived() -> bool:
        core.loop_failure()
        return core.world[timeline].upper > choice.timestamp

    with core.moved:
        left = None if deadline is None else max(0.0, deadline - monotonic())
        if not core.moved.wait_for(arrived, left):
            lags = ", ".join(map(str, choice.waiting_for))
            message = f"no answer at {choice.timestamp} within statement_timeout"
            detail = f"waited for {lags}"
            raise StatementTimeout(message, detail=detail, hint="raise statement_timeout")
