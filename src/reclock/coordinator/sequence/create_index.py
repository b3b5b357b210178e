"""CREATE INDEX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.beside import beside
from reclock.coordinator.change import change_catalog
from reclock.coordinator.define import define_index
from reclock.coordinator.result import Result, already_there
from reclock.coordinator.sequence.drafting import draft_object

if TYPE_CHECKING:
    from reclock.coordinator.draft import Draft
    from reclock.coordinator.item import Item
    from reclock.coordinator.prepare import Prepared
    from reclock.coordinator.sequence.context import Context
    from reclock.coordinator.world import World
    from reclock.sql.statement import CreateIndex


def create_index(context: Context, statement: CreateIndex) -> Result:
    """Arrange a relation by other columns."""
    name = statement.name

    def make(world: World | Draft) -> Item | None:
        if statement.if_not_exists and name and world.catalog.find(name.parts) is not None:
            return None
        return context.owned(define_index(statement, context.text, world.catalog), world)

    def add(_: World, item: Item, prepared: Prepared | None) -> bool:
        change_catalog(context.core, [item], prepared=prepared)
        return True

    if context.transaction is not None:
        made: bool | None = draft_object(context, statement, make)
    else:
        made = beside(context, make, add)
    return Result("CREATE INDEX", notices=() if made or name is None else already_there(name))
