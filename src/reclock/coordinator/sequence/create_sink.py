"""CREATE SINK."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.coordinator.change import change_catalog
from reclock.coordinator.history import holder_of, needed_of
from reclock.coordinator.item import RelationItem
from reclock.coordinator.result import Result, already_there
from reclock.coordinator.sink import recover
from reclock.coordinator.sink.connect import (
    connection_of,
    decide,
    limits_of,
    outlet_of,
    prepare,
    refuse_orphans,
    register,
)
from reclock.coordinator.sink.define import define_sink, key_of, relation_of
from reclock.coordinator.tick import tick
from reclock.errors import SinkRegressed
from reclock.sinks.failure import SendFailed

if TYPE_CHECKING:
    from reclock.coordinator.core import Core
    from reclock.coordinator.item import Sink
    from reclock.coordinator.sequence.context import Context
    from reclock.durable.keyed import Json
    from reclock.sql.statement import CreateSink


def create_sink(context: Context, statement: CreateSink) -> Result:
    """Make a sink that begins at the last complete time, or where another one ended."""
    core = context.core
    statement, root = context.session.admitted_files(statement)
    with core.reading() as world:
        exists = world.catalog.find(statement.name.parts) is not None
        if not (exists and statement.if_not_exists):
            world.catalog.check_new(statement.name)
            relation = relation_of(statement.relation, world.catalog)
            key_of(statement, relation)
            limits_of(statement)
            if recover.is_asked(statement):
                recover.check(statement, relation, world.catalog)
    if not (exists and statement.if_not_exists):
        with context.writing() as world:
            world.catalog.check_new(statement.name)
            relation = relation_of(statement.relation, world.catalog)
            state = tick(core, world.pace(relation))
            item, as_of = core.world.catalog.next_id, state.upper.back()
            # What is new to the graph is made a moment later, and the sink needs all since then.
            needed = needed_of(core.world, state, relation.id)
            with core.hold(holder_of(item), needed, as_of):
                facts = decide(statement, item, as_of, root=root)
                made = define_sink(statement, context.text, item, [relation], facts)
                facts = register(statement, _prepared(core, made), relation)
                change_catalog(core, [replace(context.owned(made, world), facts=facts)])
    return Result("CREATE SINK", notices=already_there(statement.name) if exists else ())


def _prepared(core: Core, sink: Sink) -> Json:
    """Return the facts of a new sink whose topics are there, and nobody's, or its own to take."""
    outlets, statement = core.exporters.outlets, sink.statement
    prepare(statement, sink.facts, outlets)
    if recover.is_asked(statement):
        legacy = _inherited(core, sink)
        if legacy is not None:
            return sink.facts | legacy.facts()
    try:
        refuse_orphans(sink, outlets)
    except SinkRegressed:
        if dict(statement.options).get("on_orphan") != "nonce":
            raise
        facts = decide(statement, sink.id, sink.as_of, own=True, root=sink.facts.get("root"))
        prepare(statement, facts, outlets)
        return facts
    return sink.facts


def _inherited(core: Core, sink: Sink) -> recover.Legacy | None:
    """Take over what another database wrote; None if there is nothing."""
    outlets, catalog = core.exporters.outlets, core.world.catalog
    relation = catalog[sink.relation]
    assert isinstance(relation, RelationItem)
    admin = outlets.admin(connection_of(sink.statement))
    keyed = recover.topic_of(sink, relation).keyed
    recover.check_whole(admin, sink.facts["topic"], sums=not keyed)
    outlet = outlet_of(sink, outlets)
    look = recover.Look(catalog, core.intakes.clusters)
    try:
        return recover.claim(sink, outlet.open(), outlet.target.sink, look)
    except SendFailed as failed:
        raise failed.error from failed
