"""CREATE INDEX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.change import change_catalog
from reclock.coordinator.define import define_index
from reclock.coordinator.result import Result, already_there

if TYPE_CHECKING:
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.statement import CreateIndex


def create_index(context: Context, statement: CreateIndex) -> Result:
    """Arrange a relation by other columns."""
    with context.writing() as world:
        name = statement.name
        exists = name is not None and world.catalog.find(name.parts) is not None
        if not (exists and statement.if_not_exists):
            index = define_index(statement, context.text, world.catalog)
            change_catalog(context.core, [context.owned(index, world)])
    return Result("CREATE INDEX", notices=already_there(name) if exists else ())
