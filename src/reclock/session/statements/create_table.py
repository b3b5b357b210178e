"""CREATE TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.engine.catalog_change import change_catalog
from reclock.rows.result import Result, already_there
from reclock.session.definition import define_table
from reclock.session.dml.target import assigned
from reclock.session.statements.drafting import draft_object

if TYPE_CHECKING:
    from reclock.catalog.item import Table
    from reclock.engine.world import World
    from reclock.session.statements.context import Context
    from reclock.session.transaction.draft import Draft
    from reclock.sql.statement import CreateTable


def create_table(context: Context, statement: CreateTable) -> Result:
    """Make an empty table."""

    def define(world: World | Draft) -> Table | None:
        if statement.if_not_exists and world.catalog.find(statement.name.parts) is not None:
            return None
        return define_table(statement, context.text, world.catalog)

    def make(world: World | Draft) -> Table | None:
        table = define(world)
        if table is None:
            return None
        for at in range(len(table.columns)):
            assigned(table, at, None, world.catalog)  # its default must be of its type
        return context.owned(table, world)

    if context.transaction is not None:
        made = draft_object(context, statement, make)
    else:
        with context.writing(lambda world: world.paces(filter(None, [define(world)]))) as world:
            table = make(world)
            made = table is not None
            if table is not None:
                change_catalog(context.core, [table])
    return Result("CREATE TABLE", notices=() if made else already_there(statement.name))
