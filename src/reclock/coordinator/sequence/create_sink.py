"""CREATE SINK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.change import change_catalog
from reclock.coordinator.history import holder_of, needed_of
from reclock.coordinator.result import Result
from reclock.coordinator.sink.connect import decide, prepare, register
from reclock.coordinator.sink.define import define_sink, key_of, relation_of
from reclock.coordinator.tick import tick
from reclock.errors import SinkRegressed

if TYPE_CHECKING:
    from reclock.coordinator.core import Core
    from reclock.coordinator.sequence.context import Context
    from reclock.durable.keyed import Json
    from reclock.ids import ObjectId
    from reclock.sql.statement import CreateSink
    from reclock.time.timestamp import Timestamp


def create_sink(context: Context, statement: CreateSink) -> Result:
    """Make a sink that begins at the last complete time."""
    core = context.core
    with core.reading() as world:
        exists = world.catalog.find(statement.name.parts) is not None
        if not (exists and statement.if_not_exists):
            world.catalog.check_new(statement.name)
            key_of(statement, relation_of(statement.relation, world.catalog))
    if not (exists and statement.if_not_exists):
        with context.writing() as world:
            world.catalog.check_new(statement.name)
            relation = relation_of(statement.relation, world.catalog)
            assert relation.timeline is not None
            state = tick(core, relation.timeline)
            item, as_of = core.world.catalog.next_id, state.upper.back()
            # What is new to the graph is made a moment later, and the sink needs all since then.
            needed = needed_of(core.world, state, relation.id)
            with core.hold(holder_of(item), needed, as_of):
                facts = _prepared(core, statement, item, as_of)
                facts = register(statement, facts, relation)
                made = define_sink(statement, context.text, item, [relation], facts)
                change_catalog(core, [made])
    return Result("CREATE SINK")


def _prepared(core: Core, statement: CreateSink, item: ObjectId, as_of: Timestamp) -> Json:
    """Return the facts of a new sink, whose topics are made."""
    facts = decide(statement, item, as_of)
    try:
        prepare(statement, facts, core.exporters.outlets)
    except SinkRegressed:
        if dict(statement.options).get("on_orphan") != "nonce":
            raise
        facts = decide(statement, item, as_of, own=True)
        prepare(statement, facts, core.exporters.outlets)
    return facts
