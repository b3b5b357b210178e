"""CREATE SOURCE."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.catalog.connections import resolved
from reclock.engine.catalog_change import change_catalog
from reclock.engine.joining import waits
from reclock.ingest.binding_relation import check_relation
from reclock.ingest.connect import discover
from reclock.ingest.consistency import counter_of
from reclock.ingest.define import check, define_source
from reclock.ingest.postgres.define import define_tables, is_keyless, keyless_notice
from reclock.ingest.postgres.slots import Noted, connection_to
from reclock.rows.result import Result, already_there
from reclock.sql.statement.source import FileConnection, PostgresConnection
from reclock.sql.syntax.expression import Name
from reclock.time.timeline import External

if TYPE_CHECKING:
    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Source
    from reclock.durable.keyed import Json
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.session.statements.context import Context
    from reclock.sql.statement import CreateSource
    from reclock.time.pace import Pace


def using_of(statement: CreateSource, catalog: Catalog) -> frozenset[ObjectId]:
    """Return the relation that supplies the bindings of a source, if one does."""
    if statement.reclock_using is None:
        return frozenset()
    named = isinstance(statement.connection, FileConnection)
    return frozenset({check_relation(catalog, statement.reclock_using, named=named).id})


def _note_slot(context: Context, statement: CreateSource, facts: Json) -> None:
    """Write down the replication slot that a source is going to have, before there is either."""
    given = statement.connection
    if isinstance(given, PostgresConnection):
        noted = Noted(facts["slot"], connection_to(given), str(statement.name))
        context.core.intakes.slots.note(noted)


def create_source(context: Context, statement: CreateSource) -> Result:
    """Make a source; the outside is asked before anybody else has to wait."""
    core = context.core
    written, root = statement, None
    with core.reading() as world:
        exists = world.catalog.find(statement.name.parts) is not None
        if not (exists and statement.if_not_exists):
            world.catalog.check_new(statement.name)
            statement, root = context.session.admitted_files(resolved(written, world.catalog)[0])
            check(statement)
            using_of(statement, world.catalog)
    if not (exists and statement.if_not_exists):
        facts = discover(statement, core.intakes.clusters, root)

        def define(world: World) -> Source:
            name = world.catalog.check_new(statement.name)
            item, known = world.catalog.next_id, facts
            if External(name) in world.timelines:
                known = {**known, "external": f"{name} {item}"}
            using = using_of(statement, world.catalog)
            linked = resolved(written, world.catalog)[1]
            source = define_source(
                statement, context.text, item, name, known, using=using, linked=linked
            )
            if source.is_transactional:
                assert source.timeline is not None
                there = world.timelines.get(source.timeline)
                read_ts = None if there is None else int(there.oracle.read_ts)
                counter = counter_of(world.catalog, read_ts, source)
                source = replace(source, facts={**known, "counter": counter})
            return source

        def paces(world: World) -> set[Pace]:
            source = define(world)
            return waits(core, world, [source, *define_tables(source)])

        _note_slot(context, statement, facts)
        with context.writing(paces) as world:
            source = define(world)
            tables = define_tables(source)
            for table in tables:
                world.catalog.check_new(Name((table.name,), statement.name.position))
            change_catalog(core, [context.owned(item, world) for item in (source, *tables)])
            notices = [keyless_notice(table) for table in tables if is_keyless(table)]
        return Result("CREATE SOURCE", notices=tuple(notices))
    return Result("CREATE SOURCE", notices=already_there(statement.name))
