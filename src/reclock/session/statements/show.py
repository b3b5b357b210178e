"""SHOW: lists of objects, columns, the statement that made an object, settings.

What is shown of objects is what the system relations have: ``SHOW TABLES`` lists the tables
of ``reclock.objects``, for people who type.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from reclock.catalog.client_settings import CLIENT_SETTINGS
from reclock.catalog.item import Index, Item, RelationItem, Table
from reclock.catalog.settings import SETTINGS
from reclock.errors import UndefinedName
from reclock.rows.result import Result
from reclock.session.statements.drop import KINDS
from reclock.sql.schema import Column, Schema
from reclock.sql.syntax.expression import Name
from reclock.sql.types import BOOLEAN, TEXT
from reclock.time.select import Isolation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.settings import SessionSettings
    from reclock.session.statements.context import Context
    from reclock.sql.statement import Show
    from reclock.sql.types import Type

_LISTS: Final = {
    "tables": "table",
    "views": "view",
    "materialized views": "materialized view",
    "sources": "source",
    "sinks": "sink",
    "connections": "connection",
    "secrets": "secret",
}
"""The lists of objects of one kind."""


def show(context: Context, statement: Show) -> Result:
    """Return what was asked for; objects and settings are sorted by name."""
    with context.core.reading() as latest:
        world = latest if context.transaction is None else context.transaction.described(latest)
        if statement.what == "setting":
            name = str(statement.of)
            return _result({name: TEXT}, [(_setting(context.settings, name),)])
        if statement.what == "isolation level":
            level = context.settings.get("transaction_isolation")
            return _result({"transaction_isolation": TEXT}, [(_standard(level),)])
        if statement.what == "all":
            rows = [(n, context.settings.get(n), s.description) for n, s in SETTINGS.items()]
            return _result({"name": TEXT, "setting": TEXT, "description": TEXT}, rows)
        return _objects(world.catalog, statement)


def _standard(level: str) -> str:
    """Return a level that the SQL standard has, and that gives this one when it is set.

    Drivers ask for it, know no other names, and set it again when a connection is given back.
    """
    return "repeatable read" if level == Isolation.STRICT_SERIALIZABLE.value else level


def _setting(settings: SessionSettings, name: str) -> str:
    """Return the value of a setting; a mistyped list is an error."""
    near = get_close_matches(name, [*_LISTS, "columns", "indexes", "objects"], n=1)
    if name not in SETTINGS and name not in CLIENT_SETTINGS and near:
        message = f'unrecognized configuration parameter "{name}"'
        raise UndefinedName(message, code="42704", hint=f"perhaps you meant SHOW {near[0].upper()}")
    return settings.get(name)


def _objects(catalog: Catalog, statement: Show) -> Result:
    match statement.what, statement.of:
        case "columns", Name() as name:
            of = catalog.get(name, RelationItem)
            kinds = [c.declared for c in of.columns] if isinstance(of, Table) else []
            kinds = kinds or [c.type for c in of.schema]
            pairs = zip(of.schema, kinds, strict=True)
            shown = [(c.name, c.nullable, str(kind)) for c, kind in pairs]
            return _result({"name": TEXT, "nullable": BOOLEAN, "type": TEXT}, shown)
        case "create", Name() as name:
            made = _of_kind(catalog, name, statement.kind or "")
            return _result({"name": TEXT, "create_sql": TEXT}, [(made.name, made.sql)])
        case "indexes", _:
            return _indexes(catalog, statement)
        case "objects", _:
            objects = sorted((i.name, i.kind) for i in catalog.items.values())
            return _result({"name": TEXT, "kind": TEXT}, objects)
    kind = _LISTS[statement.what]
    names = sorted(item.name for item in catalog.items.values() if item.kind == kind)
    return _result({"name": TEXT}, [(name,) for name in names])


def _of_kind(catalog: Catalog, name: Name, kind: str) -> Item:
    """Return the object of that name, which must be of a kind."""
    return catalog.get(name, KINDS[kind])


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
