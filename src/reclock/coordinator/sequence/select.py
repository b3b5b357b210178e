"""SELECT."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from reclock.coordinator.answer import Answer
from reclock.coordinator.result import Result
from reclock.dataflow.values import rows_of
from reclock.sql.plan.build import plan_query
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite_query
from reclock.sql.schema import Schema

if TYPE_CHECKING:
    from reclock.coordinator.catalog import Catalog
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.plan.relation import QueryPlan
    from reclock.sql.statement import SelectStatement


def select(context: Context, statement: SelectStatement) -> Result:
    """Answer a query at one timestamp."""
    found = answer(context, statement)
    rows = rows_of(found.table, [c.type for c in found.schema])
    return Result(f"SELECT {len(rows)}", found.schema.names, rows, found.timestamp, found.schema)


def answer(context: Context, statement: SelectStatement) -> Answer:
    """Answer a query at one timestamp, for somebody who takes the rows in batches."""
    plan_of = partial(plan_select, statement, context.parameters)
    with context.session.readable(plan_of, statement.as_of) as at:
        table = at.peek(context.core)
    context.session.interrupt.check()
    schema = Schema(at.plan.root.schema.columns[: at.plan.visible])
    return Answer(schema, table, at.timestamp)


def plan_select(
    statement: SelectStatement, parameters: tuple[object, ...], catalog: Catalog
) -> QueryPlan:
    """Plan a query for being answered once."""
    plan = plan_query(statement.query, catalog, parameters=parameters)
    return rewrite_query(plan, RewriteContext(outer_joins=True))
