"""CREATE [OR REPLACE] MATERIALIZED VIEW."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.engine.catalog_change import change_catalog
from reclock.rows.result import Result, already_there
from reclock.session.background_ddl import beside
from reclock.session.definition import define_materialized_view
from reclock.session.statements.drafting import draft_object
from reclock.session.statements.in_utc import in_utc
from reclock.session.statements.replace_materialized_view import replace_materialized_view

if TYPE_CHECKING:
    from reclock.catalog.item import Item
    from reclock.engine.preparation import Prepared
    from reclock.engine.world import World
    from reclock.session.statements.context import Context
    from reclock.session.transaction.draft import Draft
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

    exists = context.catalog.find(statement.name.parts) is not None
    if exists and statement.or_replace and not statement.if_not_exists:
        replace_materialized_view(context, statement)
        made: bool | None = True
    elif context.transaction is not None:
        made = draft_object(context, statement, make)
    else:
        made = beside(context, make, add)
    return Result(
        "CREATE MATERIALIZED VIEW",
        notices=in_utc(context, statement) if made else already_there(statement.name),
    )
