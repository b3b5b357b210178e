"""CREATE TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.change import change_catalog
from reclock.coordinator.define import define_table
from reclock.coordinator.dml.target import assigned
from reclock.coordinator.result import Result, already_there
from reclock.coordinator.sequence.drafting import draft_object

if TYPE_CHECKING:
    from reclock.coordinator.draft import Draft
    from reclock.coordinator.item import Table
    from reclock.coordinator.sequence.context import Context
    from reclock.coordinator.world import World
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
