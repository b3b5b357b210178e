"""ALTER SYSTEM SET, RESET and RESET ALL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.failpoints import hit
from reclock.rows.result import Result

if TYPE_CHECKING:
    from reclock.session.statements.context import Context
    from reclock.sql.statement import AlterSystem


def alter_system(context: Context, statement: AlterSystem) -> Result:
    """Set a setting for all sessions and for the loop, at once and for good.

    It is a change of the catalog; one that changes nothing writes nothing.
    """
    core = context.core
    with context.writing() as world:
        settings = world.settings.changed(statement.name, statement.value)
        records = settings.records(world.settings)
        if records:
            append, stored = core.catalog_store.change(world.stored, records)
            after = world.with_catalog(stored, world.catalog.changed((), ()))
            hit("ddl.publish.before")
            core.publish(after.with_settings(settings), [append])
            hit("ddl.publish.after")
    if core.loop is not None:
        core.loop.interval_changed()
    return Result("ALTER SYSTEM")
