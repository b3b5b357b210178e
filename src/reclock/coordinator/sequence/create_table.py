"""CREATE TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.change import change_catalog
from reclock.coordinator.define import define_table
from reclock.coordinator.result import Result, already_there
from reclock.coordinator.sequence.target import assigned

if TYPE_CHECKING:
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.statement import CreateTable


def create_table(context: Context, statement: CreateTable) -> Result:
    """Make an empty table."""
    with context.writing() as world:
        exists = world.catalog.find(statement.name.parts) is not None
        if not (exists and statement.if_not_exists):
            table = define_table(statement, context.text, world.catalog)
            for at in range(len(table.columns)):
                assigned(table, at, None, world.catalog)  # its default must be of its type
            change_catalog(context.core, [context.owned(table, world)])
    return Result("CREATE TABLE", notices=already_there(statement.name) if exists else ())
