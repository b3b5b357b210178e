"""EXPLAIN TIMESTAMP: the time at which a query would be answered, why, and what it waits for.

It waits for nothing itself, and changes nothing: in a transaction that has not read yet it
does not choose the transaction's time.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from reclock.engine.read import choose, read_time, settled
from reclock.rows.result import Result
from reclock.session.plans import plan_once
from reclock.sql.schema import Column, Schema
from reclock.sql.statement import SelectStatement
from reclock.sql.syntax import query as q
from reclock.sql.syntax.expression import Star
from reclock.sql.types import TEXT

if TYPE_CHECKING:
    from reclock.session.statements.context import Context
    from reclock.sql.plan.relation import QueryPlan
    from reclock.sql.statement import ExplainTimestamp, Subscribe
    from reclock.time.select import Choice

TIMESTAMP_SCHEMA = Schema((Column("timestamp", TEXT, nullable=False),))


def explain_timestamp(context: Context, statement: ExplainTimestamp) -> Result:
    """Show the choice of a timestamp: one row, a line per fact."""
    of = statement.of
    query = of if isinstance(of, SelectStatement) else _query_of(of)
    snapshot = None if context.transaction is None else context.transaction.snapshot
    with context.core.reading() as latest:
        world = latest if snapshot is None else snapshot.world
        plan_of = partial(plan_once, query.query, context.parameters)
        plan = plan_of(world.catalog)
        timeline = plan.root.timeline.timeline
        read_ts = read_time(world, timeline)

        def chosen(plan: QueryPlan) -> Choice:
            if snapshot is None or timeline is None:
                return choose(world, plan, context.settings, read_ts, query.as_of)
            return snapshot.choose(plan, context.settings, query.as_of)

        choice = settled(plan, plan_of, world.catalog, chosen)[1]
    facts = [("timeline", "none" if timeline is None else str(timeline))]
    return Result(
        "EXPLAIN", TIMESTAMP_SCHEMA.names, [(choice.explain(facts),)], schema=TIMESTAMP_SCHEMA
    )


def _query_of(subscribe: Subscribe) -> SelectStatement:
    """Return the query whose answer a SUBSCRIBE begins with."""
    query = subscribe.query
    if query is None:
        assert subscribe.relation is not None
        query = q.Query(q.Select((q.SelectItem(Star()),), q.TableName(subscribe.relation)))
    return SelectStatement(query, subscribe.as_of)
