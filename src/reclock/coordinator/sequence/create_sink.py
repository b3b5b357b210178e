"""CREATE SINK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.change import change_catalog
from reclock.coordinator.result import Result
from reclock.coordinator.sink.connect import decide, prepare, register
from reclock.coordinator.sink.define import define_sink, key_of, relation_of
from reclock.coordinator.tick import tick
from reclock.errors import SinkRegressed

if TYPE_CHECKING:
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.statement import CreateSink


def create_sink(context: Context, statement: CreateSink) -> Result:
    """Make a sink that begins at the last complete time."""
    core = context.core
    with core.reading() as world:
        exists = world.catalog.find(statement.name.parts) is not None
        if not (exists and statement.if_not_exists):
            world.catalog.check_new(statement.name)
            key_of(statement, relation_of(statement, world.catalog))
    if not (exists and statement.if_not_exists):
        with context.writing() as world:
            world.catalog.check_new(statement.name)
            relation = relation_of(statement, world.catalog)
            assert relation.timeline is not None
            as_of = tick(core, relation.timeline).upper.back()
            item = core.world.catalog.next_id
            facts = decide(statement, item, as_of)
            try:
                prepare(statement, facts, core.exporters.outlets)
            except SinkRegressed:
                if dict(statement.options).get("on_orphan") != "nonce":
                    raise
                facts = decide(statement, item, as_of, own=True)
                prepare(statement, facts, core.exporters.outlets)
            facts = register(statement, facts, relation)
            change_catalog(core, [define_sink(statement, context.text, item, relation, facts)])
    return Result("CREATE SINK")
