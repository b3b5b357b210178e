"""DROP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.coordinator.change import change_catalog
from reclock.coordinator.item import Index, Item, MaterializedView, Sink, Source, Table, View
from reclock.coordinator.result import Result

if TYPE_CHECKING:
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.statement import Drop

KINDS: Final[dict[str, type[Item]]] = {
    kind.kind: kind for kind in (Table, Source, View, MaterializedView, Index, Sink)
}


def drop(context: Context, statement: Drop) -> Result:
    """Remove objects, and with CASCADE all that is defined by them, at once."""
    with context.writing() as world:
        catalog = world.catalog
        kind = kind_of(statement.kind)
        absent = [n for n in statement.names if statement.if_exists and not catalog.find(n.parts)]
        given = [catalog.get(name, kind).id for name in statement.names if name not in absent]
        if given:
            gone = catalog.to_drop(given, cascade=statement.cascade)
            change_catalog(context.core, removed=gone)
    notices = tuple(f'{statement.kind} "{name}" does not exist, skipping' for name in absent)
    return Result(f"DROP {statement.kind.upper()}", notices=notices)


def kind_of(name: str) -> type[Item]:
    """Return the class of objects of a kind."""
    return KINDS[name]
