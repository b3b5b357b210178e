"""EXPLAIN PLAN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.define import plan_view
from reclock.coordinator.item import MaterializedView, RelationItem, View
from reclock.coordinator.result import Result
from reclock.errors import NotSupported, StatementError
from reclock.sql.explain import explain, explain_node
from reclock.sql.plan.build import plan_query
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite, rewrite_query
from reclock.sql.schema import Column, Schema
from reclock.sql.statement import (
    CreateMaterializedView,
    CreateView,
    SelectStatement,
    Subscribe,
)
from reclock.sql.syntax.expression import Name
from reclock.sql.types import TEXT

if TYPE_CHECKING:
    from reclock.coordinator.catalog import Catalog
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.statement import ExplainPlan

_SCHEMA = Schema((Column("plan", TEXT, nullable=False),))


def explain_plan(context: Context, statement: ExplainPlan) -> Result:
    """Show the plan as it would be maintained: one row, a line per node."""
    catalog = context.core.world.catalog
    text = _explained(statement.of, catalog, context.parameters)
    return Result("EXPLAIN", _SCHEMA.names, [(text,)], schema=_SCHEMA)


def _explained(
    of: SelectStatement | Subscribe | CreateView | CreateMaterializedView | Name,
    catalog: Catalog,
    parameters: tuple[object, ...],
) -> str:
    match of:
        case SelectStatement():
            plan = plan_query(of.query, catalog, parameters=parameters)
            return explain(rewrite_query(plan, RewriteContext()))
        case CreateView() | CreateMaterializedView():
            return explain_node(rewrite(plan_view(of, catalog)[0], RewriteContext()))
        case Name():
            item = catalog.get(of, RelationItem)
            if isinstance(item, View | MaterializedView):
                return explain_node(rewrite(item.plan, RewriteContext()))
            message = f'"{item.name}" is not a view'
            raise StatementError(message, code="42809", position=of.position)
        case Subscribe():
            message = "EXPLAIN PLAN FOR SUBSCRIBE is not supported"
            raise NotSupported(message, hint="explain its query")
