"""ALTER SINK … SET FROM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.item import Sink
from reclock.engine.catalog_change import change_catalog
from reclock.engine.history import holder_of, needed_of
from reclock.engine.tick import settle
from reclock.export.alter import altered, check_alike
from reclock.export.define import relation_of
from reclock.rows.result import Result
from reclock.session.background_ddl import beside

if TYPE_CHECKING:
    from reclock.catalog.item import Item, RelationItem
    from reclock.engine.preparation import Prepared
    from reclock.engine.world import World
    from reclock.session.statements.context import Context
    from reclock.sql.statement import AlterSink


def alter_sink(context: Context, statement: AlterSink) -> Result:
    """Let a sink be made of another relation from the first time on that is not complete."""
    core = context.core

    def asked(world: World) -> tuple[Sink, RelationItem] | None:
        sink = world.catalog.get(statement.name, Sink)
        relation = relation_of(statement.relation, world.catalog)
        if relation.id == sink.relation:
            return None
        check_alike(sink, relation, world.catalog)
        return sink, relation

    def make(world: World) -> Item | None:
        if (found := asked(world)) is None:
            return None
        sink, relation = found
        return altered(sink, relation, world.of(relation).upper, world.catalog)

    def publish(world: World, _: Item, prepared: Prepared | None) -> None:
        found = asked(world)
        assert found is not None
        sink, relation = found
        state = settle(core, world.pace(relation))
        needed = needed_of(core.world, state, relation.id)
        with core.hold(holder_of(sink.id), needed, state.upper.back()):
            made = altered(sink, relation, state.upper, core.world.catalog)
            change_catalog(core, [made], prepared=prepared)

    beside(context, make, publish)
    return Result("ALTER SINK")
