"""CREATE SOURCE."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.coordinator.change import change_catalog
from reclock.coordinator.result import Result, already_there
from reclock.coordinator.source.connect import discover
from reclock.coordinator.source.consistency import counter_of
from reclock.coordinator.source.define import check, define_source
from reclock.coordinator.source.given import check_relation
from reclock.sql.statement.source import FileConnection
from reclock.time.timeline import External

if TYPE_CHECKING:
    from reclock.coordinator.catalog import Catalog
    from reclock.coordinator.sequence.context import Context
    from reclock.ids import ObjectId
    from reclock.sql.statement import CreateSource


def using_of(statement: CreateSource, catalog: Catalog) -> frozenset[ObjectId]:
    """Return the relation that supplies the bindings of a source, if one does."""
    if statement.reclock_using is None:
        return frozenset()
    named = isinstance(statement.connection, FileConnection)
    return frozenset({check_relation(catalog, statement.reclock_using, named=named).id})


def create_source(context: Context, statement: CreateSource) -> Result:
    """Make a source; the outside is asked before anybody else has to wait."""
    core = context.core
    statement, root = context.session.admitted_files(statement)
    with core.reading() as world:
        exists = world.catalog.find(statement.name.parts) is not None
        if not (exists and statement.if_not_exists):
            world.catalog.check_new(statement.name)
            check(statement)
            using_of(statement, world.catalog)
    if not (exists and statement.if_not_exists):
        facts = discover(statement, core.intakes.clusters, root)
        with context.writing() as world:
            name = world.catalog.check_new(statement.name)
            item = world.catalog.next_id
            if External(name) in world.timelines:
                facts = {**facts, "external": f"{name} {item}"}
            using = using_of(statement, world.catalog)
            source = define_source(statement, context.text, item, name, facts, using=using)
            if source.is_transactional:
                facts = {**facts, "counter": counter_of(world, source)}
                source = replace(source, facts=facts)
            change_catalog(core, [context.owned(source, world)])
    return Result("CREATE SOURCE", notices=already_there(statement.name) if exists else ())
