"""CREATE TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.change import change_catalog
from reclock.coordinator.define_table import define_table
from reclock.coordinator.dml.target import assigned
from reclock.coordinator.result import Result, already_there
from reclock.coordinator.sequence.drafting import draft_edit

if TYPE_CHECKING:
    from reclock.coordinator.draft import Draft
    from reclock.coordinator.item import Item
    from reclock.coordinator.sequence.context import Context
    from reclock.coordinator.world import World
    from reclock.sql.statement import CreateTable


def create_table(context: Context, statement: CreateTable) -> Result:
    """Make an empty table."""

    def make(world: World | Draft) -> list[Item]:
        if statement.if_not_exists and world.catalog.find(statement.name.parts) is not None:
            return []
        table, sequences = define_table(statement, context.text, world.catalog)
        for at in range(len(table.columns)):
            assigned(table, at, None, world.catalog)  # its default must be of its type
        return [context.owned(item, world) for item in (*sequences, table)]

    def edit(draft: Draft) -> tuple[list[Item], tuple[()], None] | None:
        items = make(draft)
        return (items, (), None) if items else None

    if context.transaction is not None:
        made = draft_edit(context, statement, edit)
    else:
        with context.writing(lambda world: world.paces(make(world))) as world:
            items = make(world)
            made = bool(items)
            if items:
                change_catalog(context.core, items)
    return Result("CREATE TABLE", notices=() if made else already_there(statement.name))
