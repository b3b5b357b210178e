"""CREATE SINK."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Final

from reclock.catalog.connections import resolved
from reclock.catalog.item import RelationItem
from reclock.engine import multi_pace as joint
from reclock.engine.arrangements import FIRST
from reclock.engine.catalog_change import change_catalog
from reclock.engine.history import needed_of
from reclock.engine.tick import settle
from reclock.errors import SinkRegressed, UndefinedName
from reclock.export import recover
from reclock.export.connect import (
    connection_of,
    decide,
    limits_of,
    outlet_of,
    prepare,
    refuse_orphans,
    register,
)
from reclock.export.define import define_sink, key_of, relation_of
from reclock.ids import HolderId
from reclock.rows.result import Result, already_there
from reclock.session.background_ddl import beside
from reclock.sinks.failure import SendFailed
from reclock.sql.parse.options import TRUE
from reclock.time.pace import is_joint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.catalog.item import Item, Sink
    from reclock.durable.keyed import Json
    from reclock.engine.preparation import Prepared
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.session.statements.context import Context
    from reclock.session.system import System
    from reclock.sql.statement import CreateSink
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp

_numbers: Final = count(1)


def create_sink(context: Context, statement: CreateSink) -> Result:
    """Make a sink that begins at the last complete time, or where another one ended.

    The outside is asked while others go on: what the sink will need is held meanwhile.
    """
    core = context.core
    written, root = statement, None
    with core.reading() as world:
        exists = world.catalog.find(statement.name.parts) is not None
        if not (exists and statement.if_not_exists):
            world.catalog.check_new(statement.name)
            statement, root = context.session.admitted_files(resolved(written, world.catalog)[0])
            relation = relation_of(statement.relation, world.catalog)
            key_of(statement, relation)
            limits_of(statement)
            if recover.is_asked(statement):
                recover.check(statement, relation, world.catalog)
    if not (exists and statement.if_not_exists):

        def paces(world: World) -> list[Pace]:
            pace = world.pace(relation_of(statement.relation, world.catalog))
            return [] if _begins_before(core, statement, pace) else [pace]

        with context.writing(paces) as world:
            world.catalog.check_new(statement.name)
            relation = relation_of(statement.relation, world.catalog)
            pace = world.pace(relation)
            early = _begins_before(core, statement, pace)
            state = world[pace] if early else settle(core, pace)
            item = core.world.catalog.next_id
            # What is new to the graph is made a moment later, and the sink needs all since then.
            needed = needed_of(core.world, state, relation.id)
            as_of = _first(core.world, state, needed)
            held = core.hold(HolderId(f"create/{next(_numbers)}"), needed, as_of)
        with held:
            facts = decide(statement, item, as_of, root=root)
            linked = resolved(written, core.world.catalog)[1]
            made = define_sink(statement, context.text, item, [relation], facts, linked=linked)
            made = replace(made, facts=register(statement, _prepared(core, made), relation))
            _publish(context, made)
    return Result("CREATE SINK", notices=already_there(statement.name) if exists else ())


def _begins_before(core: System, statement: CreateSink, pace: Pace) -> bool:
    """Return whether a sink begins at a time before that of the tick under way.

    What is written and not complete yet comes after its snapshot, at its own time. One without a
    snapshot has nothing of what was written before the statement: all of that must be complete.
    """
    options = dict(statement.options)
    if recover.is_asked(statement) or options.get("snapshot", "true") not in TRUE:
        return False
    flight = core.flights.of(pace)
    return flight is not None and flight.state.upper > FIRST


def _first(world: World, state: TimelineState, needed: Iterable[ObjectId]) -> Timestamp:
    """Return the last complete time or, if there is none yet, the first that will be."""
    sinces = [state.sinces[item].element() for item in needed if item in state.sinces]
    if is_joint(state.pace) and state.upper <= FIRST:
        sinces.append(joint.first(world, state))
    return max([state.upper.back(), *sinces])


def _publish(context: Context, made: Sink) -> None:
    """Make a sink known; its topics are there, and what it is made of must be, too."""

    def make(world: World) -> Item:
        world.catalog.check_new(made.statement.name)
        if relation_of(made.statement.relation, world.catalog).id != made.relation:
            message = f'relation "{made.statement.relation}" was recreated meanwhile'
            raise UndefinedName(message, code="42P01", hint="create the sink again")
        for needed in made.linked.connections - world.catalog.items.keys():
            message = f"connection {needed} was dropped meanwhile"
            raise UndefinedName(message, code="42P01", hint="create the sink again")
        return context.owned(replace(made, id=world.catalog.next_id), world)

    def add(_: World, item: Item, prepared: Prepared | None) -> None:
        change_catalog(context.core, [item], prepared=prepared)

    beside(context, make, add)


def _prepared(core: System, sink: Sink) -> Json:
    """Return the facts of a new sink whose topics exist, and are free or its own to take."""
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


def _inherited(core: System, sink: Sink) -> recover.Legacy | None:
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
