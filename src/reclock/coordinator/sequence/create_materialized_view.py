"""CREATE MATERIALIZED VIEW."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.change import change_catalog
from reclock.coordinator.define import define_materialized_view
from reclock.coordinator.result import Result, already_there

if TYPE_CHECKING:
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.statement import CreateMaterializedView


def create_materialized_view(context: Context, statement: CreateMaterializedView) -> Result:
    """Compute a query over all there is, and keep it right from then on."""
    with context.writing() as world:
        exists = world.catalog.find(statement.name.parts) is not None
        if not (exists and statement.if_not_exists):
            item = define_materialized_view(statement, context.text, world.catalog)
            change_catalog(context.core, [context.owned(item, world)])
    return Result(
        "CREATE MATERIALIZED VIEW", notices=already_there(statement.name) if exists else ()
    )
