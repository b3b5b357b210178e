"""CREATE SOURCE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.change import change_catalog
from reclock.coordinator.result import Result
from reclock.coordinator.source.connect import discover
from reclock.coordinator.source.define import check, define_source
from reclock.time.timeline import External

if TYPE_CHECKING:
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.statement import CreateSource


def create_source(context: Context, statement: CreateSource) -> Result:
    """Make a source; the outside is asked before anybody else has to wait."""
    core = context.core
    with core.reading() as world:
        exists = world.catalog.find(statement.name.parts) is not None
        if not (exists and statement.if_not_exists):
            world.catalog.check_new(statement.name)
            check(statement)
    if not (exists and statement.if_not_exists):
        facts = discover(statement, core.intakes.clusters)
        with context.writing() as world:
            name = world.catalog.check_new(statement.name)
            item = world.catalog.next_id
            if External(name) in world.timelines:
                facts = {**facts, "external": f"{name} {item}"}
            source = define_source(statement, context.text, item, name, facts)
            change_catalog(core, [source])
    return Result("CREATE SOURCE")
