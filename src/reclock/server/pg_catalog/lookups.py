"""Look-ups of catalog functions: names and numbers of objects, definitions, privileges.

Tests: tests/server/pg_catalog/test_rows.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reclock.catalog.item import Table
from reclock.catalog.roles import DATABASE
from reclock.catalog.serial.item import Sequence
from reclock.server.pg_catalog import classes, oids, server
from reclock.server.pg_catalog.functions import functions
from reclock.server.pg_catalog.objects import NAMESPACES, PRIVILEGES, VISIBLE
from reclock.server.pg_catalog.types import KINDS
from reclock.sql.names import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from reclock.server.pg_catalog.objects import Objects

Values = tuple[Any, ...]

_SYNONYMS: Final = {
    "int": 23,
    "float": 701,
    "decimal": 1700,
    "timestamp": 1114,
    "timestamp with time zone": 1184,
}


def _class_names(objects: Objects) -> Iterator[tuple[int, str, str]]:
    """Yield relations and indexes: number, schema, name."""
    for relation in objects.relations:
        yield relation.oid, relation.schema, relation.name
        for key in relation.keys:
            yield key.oid, relation.schema, key.name


def class_name(objects: Objects) -> Iterator[Values]:
    """Yield the name of each relation as it is written, with its schema if that is needed."""
    for oid, schema, name in _class_names(objects):
        yield oid, quoted(name) if schema in VISIBLE else f"{schema}.{quoted(name)}"


def class_oid(objects: Objects) -> Iterator[Values]:
    """Yield everything that each relation may be called; of two, the one that is seen first."""
    found: dict[str, int] = {}
    for oid, schema, name in _class_names(objects):
        written = {quoted(name), '"' + name.replace('"', '""') + '"'}
        for text in written:
            found[f"{schema}.{text}"] = found[f'"{schema}".{text}'] = oid
            found[f'"{schema}" . {text}'] = oid  # as ADBC writes it
            if schema in VISIBLE and (schema == VISIBLE[0] or text not in found):
                found[text] = oid
    for text, oid in found.items():
        yield text, oid


def class_visible(objects: Objects) -> Iterator[Values]:
    """Yield relations that are called by their names alone."""
    for oid, schema, _ in _class_names(objects):
        if schema in VISIBLE:
            yield (oid,)


def constraint_text(objects: Objects) -> Iterator[Values]:
    """Yield constraints as they are declared."""
    for relation in objects.of_users:
        for key in relation.constraints:
            names = ", ".join(map(quoted, relation.key_names(key)))
            enforced = "" if key.valid else " NOT ENFORCED"
            nulls = "" if key.nulls_distinct else " NULLS NOT DISTINCT"
            kind = "PRIMARY KEY" if key.primary else f"UNIQUE{nulls}"
            yield key.constraint, f"{kind} ({names}){enforced}"
        for number, check in enumerate(relation.checks):
            yield oids.of_check(relation.oid, number), f"CHECK (({check.text}))"


def serial_sequence(objects: Objects) -> Iterator[Values]:
    """Yield the sequences that belong to columns."""
    for sequence in objects.catalog.of_kind(Sequence):
        if (of := sequence.owned_by) is not None:
            table = objects.catalog[of.table]
            assert isinstance(table, Table)
            name = table.schema[of.column - 1].name
            yield oids.of_object(of.table), name, f"public.{quoted(sequence.name)}"


def index_text(objects: Objects) -> Iterator[Values]:
    """Yield statements that make indexes (0), and their columns, from 1."""
    for relation in objects.of_users:
        for key in relation.keys:
            yield key.oid, 0, relation.index_text(key)
            for number, name in enumerate(relation.key_names(key), 1):
                yield key.oid, number, quoted(name)


def view_text(objects: Objects) -> Iterator[Values]:
    """Yield the queries of views."""
    for relation in objects.of_users:
        if relation.definition is not None:
            yield relation.oid, f" {relation.definition};"


def privilege(objects: Objects) -> Iterator[Values]:
    """Yield who has which privilege on what; on the database it is 0."""
    for relation in objects.relations:
        if relation.id is None:
            if not relation.private:
                yield relation.oid, "public", "SELECT"
            continue
        yield from ((relation.oid, relation.owner, name) for name in PRIVILEGES)
        for role, given in objects.granted(relation.id):
            yield from ((relation.oid, role, name) for name in given)
    for role, given in objects.granted(DATABASE):
        yield from ((0, role, name) for name in given)


def super_role(objects: Objects) -> Iterator[Values]:
    """Yield who may do everything."""
    yield from ((role.name,) for role in objects.role_rows if role.superuser)


def setting(objects: Objects) -> Iterator[Values]:
    """Yield the values of settings."""
    yield from (found[:2] for found in server.settings(objects))


def type_oid(objects: Objects) -> Iterator[Values]:
    """Yield everything that each type may be called."""
    del objects
    found = dict(_SYNONYMS)
    for kind in KINDS.values():
        for name in (kind.title, kind.name):
            found[name] = found[f"pg_catalog.{name}"] = kind.oid
    yield from found.items()


def proc_oid(objects: Objects) -> Iterator[Values]:
    """Yield the names of functions; of several of one name, the first."""
    del objects
    found: dict[str, int] = {}
    for function in functions():
        found.setdefault(function.name, function.oid)
        found.setdefault(f"pg_catalog.{function.name}", function.oid)
    yield from found.items()


def _pairs(
    rows: Callable[[Objects], Iterable[Values]],
) -> tuple[Callable[[Objects], Iterable[Values]], Callable[[Objects], Iterable[Values]]]:
    """Return rows, and the same the other way round."""
    return rows, lambda objects: ((b, a) for a, b in rows(objects))


_role_name, _role_oid = _pairs(lambda objects: ((r.oid, r.name) for r in objects.role_rows))
_schema_oid, _schema_name = _pairs(lambda _: NAMESPACES.items())

LOOKUP_ROWS: Final[Mapping[str, Callable[[Objects], Iterable[Values]]]] = {
    "class_name": class_name,
    "class_oid": class_oid,
    "class_visible": class_visible,
    "comment": classes.comments,
    "constraint_text": constraint_text,
    "function_arguments": lambda _: ((f.oid, f.arguments_text) for f in functions()),
    "function_result": lambda _: ((f.oid, KINDS[f.result].title) for f in functions()),
    "index_text": index_text,
    "namespace_name": _schema_name,
    "namespace_oid": _schema_oid,
    "privilege": privilege,
    "proc_name": lambda _: ((f.oid, f.name) for f in functions()),
    "proc_oid": proc_oid,
    "role_name": _role_name,
    "role_oid": _role_oid,
    "serial_sequence": serial_sequence,
    "setting": setting,
    "super_role": super_role,
    "type_name": lambda _: ((kind.oid, kind.title) for kind in KINDS.values()),
    "type_oid": type_oid,
    "view_text": view_text,
}
"""The rows of each look-up table of ``reclock.sql.pg.functions``."""
