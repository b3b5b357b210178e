"""CREATE TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.engine.catalog_change import change_catalog
from reclock.engine.joining import waits
from reclock.rows.result import Result, already_there
from reclock.session.define_table import define_table
from reclock.session.dml.target import assigned
from reclock.session.statements.drafting import draft_edit

if TYPE_CHECKING:
    from reclock.catalog.item import Item
    from reclock.engine.world import World
    from reclock.session.statements.context import Context
    from reclock.session.transaction.draft import Draft
    from reclock.sql.statement import CreateTable


def create_table(context: Context, statement: CreateTable) -> Result:
    """Make an empty table."""

    def make(world: World | Draft) -> list[Item]:
        if statement.if_not_exists and world.catalog.find(statement.name.parts) is not None:
            return []
        table, sequences, indexes = define_table(statement, context.text, world.catalog)
        for at in range(len(table.columns)):
            assigned(table, at, None, world.catalog)  # its default must be of its type
        return [context.owned(item, world) for item in (*sequences, table, *indexes)]

    def edit(draft: Draft) -> tuple[list[Item], tuple[()], None] | None:
        items = make(draft)
        return (items, (), None) if items else None

    if context.transaction is not None:
        made = draft_edit(context, statement, edit)
    else:
        with context.writing(lambda world: waits(context.core, world, make(world))) as world:
            items = make(world)
            made = bool(items)
            if items:
                change_catalog(context.core, items)
    return Result("CREATE TABLE", notices=() if made else already_there(statement.name))
