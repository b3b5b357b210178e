"""DROP."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reclock.catalog.connections import ConnectionItem, SecretItem
from reclock.catalog.item import Index, Item, MaterializedView, Sink, Source, Table, View
from reclock.catalog.serial.item import Sequence
from reclock.engine.catalog_change import change_catalog
from reclock.engine.joining import waits
from reclock.errors import DependentObjects, Error, InvalidTransactionState, StatementError
from reclock.ingest.postgres.slots import Noted, connection_of
from reclock.rows.result import Result
from reclock.session.define_table import redefined
from reclock.session.statements.drafting import draft_edit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.session.statements.context import Context
    from reclock.session.transaction.draft import Draft
    from reclock.sql.statement import Drop
    from reclock.sql.syntax.expression import Name
    from reclock.time.pace import Pace

KINDS: Final[dict[str, type[Item]]] = {
    kind.kind: kind
    for kind in (
        Table,
        Source,
        View,
        MaterializedView,
        Index,
        Sink,
        Sequence,
        ConnectionItem,
        SecretItem,
    )
}


def drop(context: Context, statement: Drop) -> Result:
    """Remove objects, and with CASCADE all that is defined by them, at once."""

    def gone(world: World | Draft) -> frozenset[ObjectId]:
        there = [name for name in statement.names if name not in absent(world)]
        given = [world.catalog.get(name, kind_of(statement.kind)).id for name in there]
        _refuse_constraints(world, given)
        return world.catalog.to_drop(given, cascade=statement.cascade) if given else frozenset()

    def absent(world: World | Draft) -> list[Name]:
        names = statement.names if statement.if_exists else ()
        return [name for name in names if not world.catalog.find(name.parts)]

    def paces(world: World) -> set[Pace]:
        removed = gone(world)
        return waits(context.core, world, _without_defaults(world, removed), removed)

    def edit(draft: Draft) -> tuple[list[Item], frozenset[ObjectId], None] | None:
        removed = gone(draft)
        for item in removed:
            if isinstance(draft.catalog[item], Source | Sink | ConnectionItem | SecretItem):
                message = f"{draft.catalog[item]} cannot be dropped inside a transaction"
                raise InvalidTransactionState(message, hint="COMMIT first, and drop it by itself")
        return (_without_defaults(draft, removed), removed, None) if removed else None

    if context.transaction is not None:
        skipped = absent(context.transaction.draft())
        draft_edit(context, statement, edit)
        return Result(f"DROP {statement.kind.upper()}", notices=_skipping(statement, skipped))
    with context.writing(paces) as world:
        removed = gone(world)
        _check_whole(world, removed)
        if removed:
            change_catalog(context.core, _without_defaults(world, removed), removed)
        not_there = absent(world)
    notices = _skipping(statement, not_there)
    left = _drop_slots(context, [world.catalog[item] for item in removed])
    return Result(f"DROP {statement.kind.upper()}", notices=(*notices, *left))


def _without_defaults(world: World | Draft, removed: frozenset[ObjectId]) -> list[Item]:
    """Return the tables that lose a default: DROP SEQUENCE … CASCADE drops no column."""
    found: dict[ObjectId, Table] = {}
    for table, at, _ in world.catalog.drawing(removed):
        if table.id not in removed:
            columns = list(found.get(table.id, table).columns)
            columns[at] = replace(
                columns[at], default=None, default_text=None, sequence=None, identity=None
            )
            found[table.id] = replace(table, columns=tuple(columns))
    return [redefined(table, world.catalog) for table in found.values()]


def _skipping(statement: Drop, names: Iterable[Name]) -> tuple[str, ...]:
    return tuple(f'{statement.kind} "{name}" does not exist, skipping' for name in names)


def _check_whole(world: World, removed: frozenset[ObjectId]) -> None:
    """Refuse to drop a table of a source without the source."""
    for item in removed:
        found = world.catalog[item]
        if isinstance(found, Source) and found.parent is not None and found.parent not in removed:
            source = world.catalog[found.parent].name
            message = f'cannot drop "{found.name}": it is a table of source "{source}"'
            hint = f'DROP SOURCE "{source}", which drops its tables with it'
            raise StatementError(message, code="2BP01", hint=hint)


def _drop_slots(context: Context, gone: Iterable[Item]) -> list[str]:
    """Drop the replication slots of sources that are gone; say which cannot be."""
    slots, said = context.core.intakes.slots, []
    for item in gone:
        if isinstance(item, Source) and "slot" in item.facts:
            noted = Noted(item.facts["slot"], connection_of(item), item.name)
            try:
                slots.drop(noted)
            except Error as error:
                said.append(
                    f'replication slot "{noted.name}" is left behind: {error.message}; reclock '
                    "tries again when it starts, and reclock doctor names it"
                )
    return said


def _refuse_constraints(world: World | Draft, given: Iterable[ObjectId]) -> None:
    """Refuse to drop the index of a UNIQUE constraint without the constraint."""
    for item in given:
        index = world.catalog[item]
        if isinstance(index, Index) and index.constraint:
            constraint = f"constraint {index.name} on table {world.catalog[index.on].name}"
            message = f"cannot drop index {index.name} because {constraint} requires it"
            raise DependentObjects(message, hint=f"You can drop {constraint} instead.")


def kind_of(name: str) -> type[Item]:
    """Return the class of objects of a kind."""
    return KINDS[name]
