"""CREATE INDEX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.engine.catalog_change import change_catalog
from reclock.rows.result import Result, already_there
from reclock.session.background_ddl import beside
from reclock.session.definition import define_index
from reclock.session.statements.drafting import draft_object

if TYPE_CHECKING:
    from reclock.catalog.item import Item
    from reclock.engine.preparation import Prepared
    from reclock.engine.world import World
    from reclock.session.statements.context import Context
    from reclock.session.transaction.draft import Draft
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
