"""SELECT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.read import read
from reclock.coordinator.result import Result
from reclock.dataflow.values import rows_of
from reclock.errors import NotSupported
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

    def plan_of(catalog: Catalog) -> QueryPlan:
        return plan_select(statement, catalog, context.parameters)

    plan, answer, timestamp = read(context.core, plan_of, context.settings)
    schema = Schema(plan.root.schema.columns[: plan.visible])
    rows = rows_of(answer, [c.type for c in schema])
    return Result(f"SELECT {len(rows)}", schema.names, rows, timestamp, schema)


def plan_select(
    statement: SelectStatement, catalog: Catalog, parameters: tuple[object, ...]
) -> QueryPlan:
    """Plan a query for being answered once."""
    if statement.as_of is not None:
        message = "AS OF is not supported"
        raise NotSupported(message, hint="leave it out to read at the latest time")
    plan = plan_query(statement.query, catalog, parameters=parameters)
    return rewrite_query(plan, RewriteContext(outer_joins=True))
