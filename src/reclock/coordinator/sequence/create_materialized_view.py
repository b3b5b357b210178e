"""CREATE MATERIALIZED VIEW."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.beside import beside
from reclock.coordinator.change import change_catalog
from reclock.coordinator.define import define_materialized_view
from reclock.coordinator.result import Result, already_there
from reclock.coordinator.sequence.drafting import draft_object
from reclock.coordinator.sequence.in_utc import in_utc

if TYPE_CHECKING:
    from reclock.coordinator.draft import Draft
    from reclock.coordinator.item import Item
    from reclock.coordinator.prepare import Prepared
    from reclock.coordinator.sequence.context import Context
    from reclock.coordinator.world import World
    from reclock.sql.statement import CreateMaterializedView


def create_materialized_view(context: Context, statement: CreateMaterializedView) -> Result:
    """Compute a query over all there is, and keep it right from then on."""

    def make(world: World | Draft) -> Item | None:
        if statement.if_not_exists and world.catalog.find(statement.name.parts) is not None:
            return None
        item = define_materialized_view(statement, context.text, world.catalog)
        return context.owned(item, world)

    def add(_: World, item: Item, prepared: Prepared | None) -> bool:
        change_catalog(context.core, [item], prepared=prepared)
        return True

    if context.transaction is not None:
        made: bool | None = draft_object(context, statement, make)
    else:
        made = beside(context, make, add)
    return Result(
        "CREATE MATERIALIZED VIEW",
        notices=in_utc(context, statement) if made else already_there(statement.name),
    )
