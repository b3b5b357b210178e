"""CREATE SECRET, ALTER SECRET and CREATE CONNECTION.

ALTER SECRET resolves the sources and sinks again that use the secret, in the same append: sources
connect again at once, sinks when they next connect.

Tests: tests/session/test_connections.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.connections import SecretItem, define_connection, secret_text
from reclock.catalog.item import Sink, Source
from reclock.engine.catalog_change import change_catalog
from reclock.rows.result import Result, already_there
from reclock.session.definition import read_item

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.catalog.item import Item
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.session.statements.context import Context
    from reclock.sql.statement import AlterSecret, CreateConnection, CreateSecret
    from reclock.time.pace import Pace


def create_secret(context: Context, statement: CreateSecret) -> Result:
    """Keep a text that is not shown."""

    def make(item: ObjectId, world: World) -> Item:
        name = world.catalog.check_new(statement.name)
        return SecretItem(item, name, secret_text(name), None, value=statement.value)

    return _create(context, statement, make, "CREATE SECRET")


def create_connection(context: Context, statement: CreateConnection) -> Result:
    """Keep how something outside is reached."""

    def make(item: ObjectId, world: World) -> Item:
        world.catalog.check_new(statement.name)
        return define_connection(item, statement, world.catalog)

    return _create(context, statement, make, "CREATE CONNECTION")


def _create(
    context: Context,
    statement: CreateSecret | CreateConnection,
    make: Callable[[ObjectId, World], Item],
    tag: str,
) -> Result:
    with context.writing() as world:
        if statement.if_not_exists and world.catalog.find(statement.name.parts) is not None:
            return Result(tag, notices=already_there(statement.name))
        item = make(world.catalog.next_id, world)
        change_catalog(context.core, [context.owned(item, world)])
    return Result(tag)


def alter_secret(context: Context, statement: AlterSecret) -> Result:
    """Give a secret another value, and what uses it."""

    def changed(world: World) -> list[Item]:
        secret = world.catalog.get(statement.name, SecretItem)
        after = SecretItem(
            secret.id, secret.name, secret.sql, None, value=statement.value,
            owner=secret.owner, comments=secret.comments,
        )  # fmt: skip
        made: list[Item] = [after]
        catalog = world.catalog.changed([after], ())
        using = catalog.dependents([secret.id])
        for item in [i for name, i in catalog.items.items() if name in using]:
            if isinstance(item, Source | Sink):
                again = read_item(item.id, item.record(), catalog)
                assert isinstance(again, Source | Sink)
                context.session.admitted_files(again.statement)  # type: ignore[type-var] # of both
                catalog = catalog.changed([again], ())
                made.append(again)
        return made

    def paces(world: World) -> list[Pace]:
        known = world.catalog.paces
        return [known[item.id] for item in changed(world) if item.id in known]

    with context.writing(paces) as world:
        change_catalog(context.core, changed(world))
    return Result("ALTER SECRET")
