"""ALTER SINK … SET FROM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.change import change_catalog
from reclock.coordinator.history import holder_of, needed_of
from reclock.coordinator.item import Sink
from reclock.coordinator.result import Result
from reclock.coordinator.sink.alter import altered, check_alike
from reclock.coordinator.sink.define import relation_of
from reclock.coordinator.tick import tick

if TYPE_CHECKING:
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.statement import AlterSink


def alter_sink(context: Context, statement: AlterSink) -> Result:
    """Let a sink be made of another relation from the first time on that is not complete."""
    core = context.core
    with context.writing() as world:
        sink = world.catalog.get(statement.name, Sink)
        relation = relation_of(statement.relation, world.catalog)
        if relation.id != sink.relation:
            check_alike(sink, relation, world.catalog)
            state = tick(core, world.pace(relation))
            needed = needed_of(core.world, state, relation.id)
            with core.hold(holder_of(sink.id), needed, state.upper.back()):
                made = altered(sink, relation, state.upper, core.world.catalog)
                change_catalog(core, [made])
    return Result("ALTER SINK")
