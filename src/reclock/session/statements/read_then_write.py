"""Writes of the result of a query, while ticks go on (P7).

INSERT … SELECT, ON CONFLICT, UPDATE, DELETE and MERGE write at w what their query (``dml``) gives
at w − 1: between the two its inputs must not change. The lock ensures that, but a query can take
minutes, and ticks need the lock. So

1. a query that is answered from a few rows is answered under the lock;
2. any other one before, at the last complete time t. Then, under the lock, if nothing that
   it reads has changed since t, it is still the answer, and is written;
3. if something has, and the query was quick, it is answered again, under the lock;
4. if it took long, it is kept like a view, filled in the background (``preparation``), and its rows
   of the last moment are written under the lock, where it then is.

Where all that is read are tables, and a tick of theirs is under way, or would take long, none of
this waits for it: they are read with what is pending for them (``engine.logged_tables``), which is
all that happens before w. Only 4, which follows ticks, does.

Values that depend on the moment itself, such as ``mz_now()`` and system relations, are those of t.

Cost under the lock: the rows that are written, and what changed in the last moment. Tests:
tests/session/test_read_then_write.py; histories: test_linearizability.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias

from reclock.dataflow.graph import collection_of, errors_of
from reclock.engine.leaves import leaves
from reclock.engine.logged_tables import in_log, with_log
from reclock.engine.quick import FEW_ROWS, is_quick
from reclock.engine.read import latest, read_latest, readable
from reclock.engine.write import write_all
from reclock.failpoints import hit
from reclock.session.background_ddl import beside
from reclock.session.dml.target import whole
from reclock.session.statements.drafting import draft_query
from reclock.sql.plan.relation import Get, QueryPlan
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite
from reclock.subscribe.subscribers import Query, Transient
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Item
    from reclock.engine.preparation import Prepared
    from reclock.engine.world import World
    from reclock.session.dml.written import Outcome, Written
    from reclock.session.statements.context import Context
    from reclock.session.system import System
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp

    PlanOf: TypeAlias = Callable[[Catalog], Written]

ATTEMPTS: Final = 3
"""How often a query is answered whose plan changes meanwhile, before it is under the lock."""

BRIEF: Final = 0.25
"""A query of so many seconds may be answered under the lock."""


@dataclass(frozen=True)
class _Found:
    """An answer, and what was asked; ``shown`` is the query with all that is the moment's."""

    asked: Written
    shown: QueryPlan
    columns: list[pa.Array]
    timestamp: Timestamp
    seconds: float


def read_then_write(context: Context, plan_of: PlanOf) -> tuple[Outcome, Timestamp | None]:
    """Write what a query gives, at one time; return what happened, and the time.

    In a transaction the time is that of its end.
    """
    core = context.core
    if context.transaction is not None:
        return draft_query(context, plan_of), None

    def paces(world: World) -> set[Pace]:
        plan = plan_of(world.catalog).plan
        return set() if in_log(core, world, plan) else world.paces(leaves(world, plan))

    _loaded(context, plan_of)
    for _ in range(ATTEMPTS):
        found = _answer(context, plan_of)
        with context.writing(paces) as world:
            asked = plan_of(world.catalog)
            if found is not None and asked == found.asked and _is_still(core, found):
                return _done(core, asked.outcome(found.columns))
            if found is None or found.seconds < BRIEF:
                return _under_lock(context, asked.plan, asked)
        done = _kept(context, plan_of, found)
        if done is not None:
            return done
    with context.writing(paces) as world:
        asked = plan_of(world.catalog)
        return _under_lock(context, asked.plan, asked)


def _loaded(context: Context, plan_of: PlanOf) -> None:
    """Wait for sources that the query reads and that cannot be read yet, without the lock."""
    core = context.core
    with core.reading() as world:
        waits = world.loading(leaves(world, plan_of(world.catalog).plan))
    if waits:
        interrupt = context.session.interrupt
        with readable(
            core,
            lambda catalog: plan_of(catalog).plan,
            context.settings,
            role=context.session.role,
            interrupt=interrupt,
        ):
            pass


def _under_lock(context: Context, plan: QueryPlan, written: Written) -> tuple[Outcome, Timestamp]:
    """Write by the answer of a plan, which is that of what is written, or stands for it."""
    columns = whole(
        read_latest(context.core, plan, context.session.role, context.session.interrupt)
    )
    return _done(context.core, written.outcome(columns))


def _done(core: System, outcome: Outcome) -> tuple[Outcome, Timestamp]:
    return outcome, write_all(core, [outcome.change])


def _answer(context: Context, plan_of: PlanOf) -> _Found | None:
    """Answer a query without the lock; None if it is as well answered under it."""
    core = context.core
    with core.reading() as world:
        asked = plan_of(world.catalog)
        timeline = asked.plan.root.timeline.timeline
        seen = with_log(core, world, asked.plan)
        if core.loop is None or is_quick(seen, asked.plan, FEW_ROWS):
            return None
    closing = None if timeline is None else core.flights.closing(timeline)
    interrupt = context.session.interrupt
    with readable(
        core,
        lambda catalog: plan_of(catalog).plan,
        context.settings,
        role=context.session.role,
        interrupt=interrupt,
    ) as possible:
        begun = monotonic()
        world = with_log(core, possible.world, possible.plan)
        uppers = [world.of(item).upper for item in leaves(world, possible.plan)]
        last = min(uppers).back() if uppers else possible.timestamp
        then = replace(possible, world=world, timestamp=last.join(possible.timestamp))
        until = then.timestamp
        if closing is not None and world is not possible.world:
            until = until.join(closing)  # what is written since it began is later
        shown = then.shown(core)
        columns = whole(then.peek(core, interrupt))
        asked = plan_of(world.catalog)
        seconds = monotonic() - begun
    hit("write.read.after")
    return _Found(asked, shown, columns, until, seconds)


def _is_still(core: System, found: _Found) -> bool:
    """Return whether an answer is that of now; hold the lock.

    A run that reaches beyond the time of the answer, and is not empty, has rows from after it.
    """
    plan, pending = found.asked.plan, core.world
    if in_log(core, pending, plan):
        for item in leaves(pending, plan):
            written = pending.of(item).wal.of_table(item.id)
            if any(entry.time > found.timestamp and entry.run.rows for entry in written):
                return False
    elif latest(core, plan) is None:
        return True
    after = at(found.timestamp.step())
    for item in leaves(core.world, plan):
        runs = core.world.of(item).arrangements.runs
        for name in (collection_of(item.id), errors_of(item.id)):
            for ref in runs.get(name, ()):
                if ref.rows and not ref.description.upper.precedes(after):
                    return False
    return True


def _kept(context: Context, plan_of: PlanOf, found: _Found) -> tuple[Outcome, Timestamp] | None:
    """Keep a query like a view until its rows are written; None if it is another one by then."""
    core = context.core
    number = core.subscribers.number()

    def make(world: World) -> Item | None:
        if plan_of(world.catalog) != found.asked:
            return None
        query = Query.of(rewrite(found.shown.root, RewriteContext()), world.catalog)
        return core.subscribers.view(query, number, world)

    def finish(world: World, view: Item, prepared: Prepared | None) -> tuple[Outcome, Timestamp]:
        assert isinstance(view, Transient)
        query = Query.of(view.plan, world.catalog)
        lease = core.subscribers.lease(query, view, prepared)
        try:
            relation = view.relation()
            rows = Get(relation.id, relation.name, relation.schema, relation.timeline, frozenset())
            return _under_lock(context, QueryPlan(rows, rows.width), found.asked)
        finally:
            core.subscribers.give_back(lease)

    try:
        return beside(context, make, finish, transient=True)
    finally:
        core.subscribers.let_go()
