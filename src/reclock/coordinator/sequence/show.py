"""SHOW: lists of objects, columns, the statement that made an object, settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.coordinator.item import Index, RelationItem
from reclock.coordinator.result import Result
from reclock.coordinator.sequence.drop import KINDS, kind_of
from reclock.coordinator.settings import SETTINGS
from reclock.sql.schema import Column, Schema
from reclock.sql.syntax.expression import Name
from reclock.sql.types import BOOLEAN, TEXT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.coordinator.catalog import Catalog
    from reclock.coordinator.sequence.context import Context
    from reclock.sql.statement import Show
    from reclock.sql.types import Type

_PLURALS = {"tables": "table", "views": "view", "materialized views": "materialized view"}


def show(context: Context, statement: Show) -> Result:
    """Return what was asked for, as rows sorted by name."""
    if statement.what == "setting":
        name = str(statement.of)
        return _result({name: TEXT}, [(context.settings.get(name),)])
    if statement.what == "all":
        rows = [(n, context.settings.get(n), s.description) for n, s in SETTINGS.items()]
        return _result({"name": TEXT, "setting": TEXT, "description": TEXT}, rows)
    return _objects(context.core.world.catalog, statement)


def _objects(catalog: Catalog, statement: Show) -> Result:
    match statement.what, statement.of:
        case "columns", Name() as name:
            columns = catalog.get(name, RelationItem).schema
            shown = [(c.name, c.nullable, str(c.type)) for c in columns]
            return _result({"name": TEXT, "nullable": BOOLEAN, "type": TEXT}, shown)
        case "create", Name() as name:
            made = catalog.get(name, kind_of(statement.kind or ""))
            return _result({"name": TEXT, "create_sql": TEXT}, [(made.name, made.sql)])
        case "indexes", _:
            return _indexes(catalog, statement)
        case "objects", _:
            objects = sorted((i.name, i.kind) for i in catalog.items.values())
            return _result({"name": TEXT, "kind": TEXT}, objects)
    kind = KINDS.get(_PLURALS.get(statement.what, ""))
    names = [] if kind is None else sorted(item.name for item in catalog.of_kind(kind))
    return _result({"name": TEXT}, [(name,) for name in names])


def _indexes(catalog: Catalog, statement: Show) -> Result:
    on = None if statement.of is None else catalog.get(statement.of, RelationItem).id
    rows = []
    for index in catalog.of_kind(Index):
        relation = catalog[index.on]
        assert isinstance(relation, RelationItem)
        if on in {None, index.on}:
            key = ", ".join(relation.schema[k].name for k in index.key)
            rows.append((index.name, relation.name, key))
    return _result({"name": TEXT, "on": TEXT, "key": TEXT}, sorted(rows))


def _result(columns: dict[str, Type], rows: Sequence[tuple[object, ...]]) -> Result:
    schema = Schema(tuple(Column(name, kind) for name, kind in columns.items()))
    return Result("SHOW", schema.names, list(rows), schema=schema)
