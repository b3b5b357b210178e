"""ALTER … SET (RETAIN HISTORY …)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.coordinator.change import change_catalog
from reclock.coordinator.result import Result
from reclock.coordinator.sequence.drop import kind_of
from reclock.errors import StatementError

if TYPE_CHECKING:
    from reclock.coordinator.item import Item
    from reclock.coordinator.sequence.context import Context
    from reclock.coordinator.world import World
    from reclock.sql.statement import AlterRetainHistory


def alter_retain_history(context: Context, statement: AlterRetainHistory) -> Result:
    """Keep more or less history of an object from now on."""

    def find(world: World) -> Item:
        return world.catalog.get(statement.name, kind_of(statement.kind))

    with context.writing(lambda world: world.paces([find(world)])) as world:
        item = find(world)
        if not item.keeps_state:
            message = f'"{item.name}" stores nothing, so it has no history to retain'
            hint = "alter the objects it reads, or create a materialized view"
            raise StatementError(message, code="42809", hint=hint, position=statement.name.position)
        kept = replace(item, retain_history_ms=statement.retain_history_ms)
        change_catalog(context.core, [kept])
    return Result(f"ALTER {statement.kind.upper()}")
