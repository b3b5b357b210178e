"""ALTER … SET (RETAIN HISTORY …)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.engine.catalog_change import change_catalog
from reclock.engine.joining import waits
from reclock.errors import StatementError
from reclock.rows.result import Result
from reclock.session.statements.drop import kind_of

if TYPE_CHECKING:
    from reclock.catalog.item import Item
    from reclock.engine.world import World
    from reclock.session.statements.context import Context
    from reclock.sql.statement import AlterRetainHistory


def alter_retain_history(context: Context, statement: AlterRetainHistory) -> Result:
    """Keep more or less history of an object from now on."""

    def find(world: World) -> Item:
        return world.catalog.get(statement.name, kind_of(statement.kind))

    with context.writing(lambda world: waits(context.core, world, [find(world)])) as world:
        item = find(world)
        if not item.keeps_state:
            message = f'"{item.name}" stores nothing, so it has no history to retain'
            hint = "alter the objects it reads, or create a materialized view"
            raise StatementError(message, code="42809", hint=hint, position=statement.name.position)
        kept = replace(item, retain_history_ms=statement.retain_history_ms)
        change_catalog(context.core, [kept])
    return Result(f"ALTER {statement.kind.upper()}")
