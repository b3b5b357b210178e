"""The objects of the catalog at one moment: relations, columns, keys, roles, privileges.

``Objects`` is what all relations of PostgreSQL's catalog are made of. Sources are foreign tables:
their rows come from elsewhere. A primary key is an index and a constraint, as in PostgreSQL; one
that is not enforced is not valid. System relations are views of the schema ``reclock``; the
relations of the catalog itself are in it too. Sinks have no rows, so they are not here. Sequences
are relations of the kind ``S``, which are not read.

Tests: tests/server/pg_catalog/test_rows.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from reclock.catalog.item import Index, MaterializedView, RelationItem, Source, Table, View
from reclock.catalog.roles import DATABASE, PUBLIC
from reclock.catalog.serial.item import Sequence
from reclock.dataflow.envelope import NONE
from reclock.server.pg_catalog import oids
from reclock.session.functions import OWNER
from reclock.sql.names import quoted
from reclock.sql.parse.columns import is_literal
from reclock.sql.pg.definition import default_text, query_text
from reclock.sql.pg.oid import modifier_of, oid_of
from reclock.sql.pg.relations import PG_RELATIONS
from reclock.sql.types import BIGINT, BOOLEAN, Char, Varchar
from reclock.system import RELATIONS as SYSTEM_RELATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Sequence as Many

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Check, Item, TableColumn
    from reclock.catalog.roles import Roles
    from reclock.catalog.settings import Values
    from reclock.session.backends import Reach
    from reclock.sql.schema import Schema
    from reclock.sql.types import Declared

NAMESPACES: Final = {
    "pg_catalog": oids.PG_CATALOG,
    "public": oids.PUBLIC,
    "reclock": oids.RECLOCK,
    "information_schema": oids.INFORMATION_SCHEMA,
}
VISIBLE: Final = ("pg_catalog", "public")
"""Schemas whose objects are called by their names alone."""

_WELL_KNOWN: Final = {
    "pg_type": 1247,
    "pg_attribute": 1249,
    "pg_proc": 1255,
    "pg_class": 1259,
    "pg_database": 1262,
    "pg_authid": 1260,
    "pg_constraint": 2606,
    "pg_description": 2609,
    "pg_index": 2610,
    "pg_namespace": 2615,
    "pg_extension": 3079,
}
_VARCHAR: Final = 1043
_BPCHAR: Final = 1042
_KINDS: Final[dict[type[Item], str]] = {
    Table: "r",
    Source: "f",
    View: "v",
    MaterializedView: "m",
}
PRIVILEGES: Final = {"INSERT": "a", "SELECT": "r", "UPDATE": "w", "DELETE": "d", "CREATE": "C"}
"""Privileges as PostgreSQL shortens them."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column; ``number`` is from 1."""

    number: int
    name: str
    type: int
    modifier: int
    nullable: bool
    default: str | None = None
    comment: str | None = None
    identity: str | None = None
    sequence: Sequence | None = None
    """What its default, or its identity, draws numbers from."""


@dataclass(frozen=True, slots=True)
class Key:
    """An index: of a primary key, of UNIQUE, or made by CREATE INDEX; ``columns`` are numbers.

    ``constraint`` is the number of the constraint that it belongs to, 0 of none.
    """

    oid: int
    name: str
    columns: tuple[int, ...]
    primary: bool = False
    valid: bool = True
    unique: bool = False
    nulls_distinct: bool = True
    constraint: int = 0


@dataclass(frozen=True)
class Relation:
    """Something with rows."""

    oid: int
    schema: str
    name: str
    kind: str
    attributes: tuple[Attribute, ...]
    keys: tuple[Key, ...] = ()
    checks: tuple[Check, ...] = ()
    definition: str | None = None
    comment: str | None = None
    server: str | None = None
    id: str | None = None
    """That of an object of a user: what privileges are kept by."""
    owner: str = OWNER
    private: bool = False
    """Whether it is of the system, and not for everybody."""

    @property
    def namespace(self) -> int:
        """The number of its schema."""
        return NAMESPACES[self.schema]

    @property
    def constraints(self) -> tuple[Key, ...]:
        """Its primary key and UNIQUE constraints."""
        return tuple(key for key in self.keys if key.constraint)

    def key_names(self, key: Key) -> list[str]:
        """Return the names of an index's columns."""
        return [self.attributes[number - 1].name for number in key.columns]

    def index_text(self, key: Key) -> str:
        """Return a statement that makes an index."""
        columns = ", ".join(map(quoted, self.key_names(key)))
        unique = "UNIQUE " if key.unique else ""
        name, on = quoted(key.name), f"{self.schema}.{quoted(self.name)}"
        nulls = "" if key.nulls_distinct else " NULLS NOT DISTINCT"
        return f"CREATE {unique}INDEX {name} ON {on} USING btree ({columns}){nulls}"


@dataclass(frozen=True, slots=True)
class RoleRow:
    """A role, or who opened the database himself."""

    oid: int
    name: str
    superuser: bool
    login: bool


@dataclass(frozen=True)
class Viewer:
    """For whom the catalog is: some relations show each one his own.

    ``role`` is who sees in ``information_schema`` only what he has a privilege on, None is somebody
    who may do everything; ``settings`` are the session's values, which ``pg_settings`` has.
    """

    role: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    reach: Reach | None = None
    """The other sessions, for a query that is about them."""


@dataclass(frozen=True)
class Objects:
    """Everything, at one version of the catalog."""

    catalog: Catalog
    roles: Roles
    settings: Values
    viewer: Viewer = Viewer()

    @cached_property
    def relations(self) -> tuple[Relation, ...]:
        """All relations: of users, of the system, of the catalog itself."""
        return (*self._of_users(), *_of_system(), *_of_catalog())

    @cached_property
    def of_users(self) -> tuple[Relation, ...]:
        """The relations that users have made."""
        return tuple(r for r in self.relations if r.id is not None)

    @cached_property
    def shown(self) -> tuple[Relation, ...]:
        """The relations that the viewer owns, or has some privilege on."""
        seen = (r for r in self.relations if r.kind != "S")
        return tuple(r for r in seen if self.owns(r) or self._may_use(r))

    def owns(self, relation: Relation) -> bool:
        """Return whether a relation is the viewer's, or he may do everything."""
        role = self.viewer.role
        return role is None or (relation.id is not None and relation.owner == role)

    def _may_use(self, relation: Relation) -> bool:
        if relation.id is None:
            return not relation.private
        names = (self.viewer.role, PUBLIC)
        return any(role in names for role, _ in self.granted(relation.id))

    @cached_property
    def role_rows(self) -> tuple[RoleRow, ...]:
        """All roles."""
        owner = [] if OWNER in self.roles.given else [RoleRow(oids.OWNER, OWNER, True, True)]
        others = [
            RoleRow(oids.of_role(role.name), role.name, role.superuser, role.login)
            for role in self.roles.given.values()
            if role.name != PUBLIC
        ]
        return (*owner, *others)

    @cached_property
    def _role_numbers(self) -> Mapping[str, int]:
        return {role.name: role.oid for role in self.role_rows}

    @property
    def owner(self) -> int:
        """The number of who owns the database."""
        return self._role_numbers[OWNER]

    def is_identity(self, sequence: Sequence) -> bool:
        """Return whether a sequence is that of an identity column."""
        of = sequence.owned_by
        table = None if of is None else self.catalog.items.get(of.table)
        if of is None or not isinstance(table, Table):
            return False
        return table.columns[of.column - 1].identity is not None

    def owner_of(self, relation: Relation) -> int:
        """Return the number of who owns a relation."""
        return self._role_numbers.get(relation.owner, self.owner)

    def granted(self, on: str) -> Iterator[tuple[str, Many[str]]]:
        """Yield who has which privileges on an object, or on the database."""
        for role in self.roles.given.values():
            if given := role.grants.get(on):
                yield role.name, [name for name in PRIVILEGES if name in given]

    def acl(self, on: str) -> list[str] | None:
        """Return the privileges on an object as PostgreSQL writes them; None if there are none."""
        found = [
            f"{'' if name == PUBLIC else name}={''.join(PRIVILEGES[p] for p in given)}/{OWNER}"
            for name, given in self.granted(on)
        ]
        return found or None

    @property
    def database_acl(self) -> list[str] | None:
        """The privileges on the database."""
        return self.acl(DATABASE)

    def _of_users(self) -> Iterator[Relation]:
        indexes: dict[str, list[Index]] = {}
        for index in self.catalog.of_kind(Index):
            indexes.setdefault(index.on, []).append(index)
        for item in self.catalog.of_kind(RelationItem):
            yield _relation(self.catalog, item, indexes.get(item.id, ()))
        for sequence in self.catalog.of_kind(Sequence):
            yield _sequence(sequence)


def _relation(catalog: Catalog, item: RelationItem, indexes: Many[Index]) -> Relation:
    oid = oids.of_object(item.id)
    columns = item.columns if isinstance(item, Table | Source) else ()
    attributes = _declared(columns, catalog) if columns else _attributes(item.schema)
    attributes = tuple(replace(a, comment=item.comments.get(a.name)) for a in attributes)
    keys = []
    if isinstance(item, Table | Source) and item.primary_key:
        enforced = item.enforced if isinstance(item, Table) else item.envelope != NONE
        name = catalog.free_name(f"{item.name}_pkey")
        if isinstance(item, Table) and item.key_name is not None:
            name = item.key_name
        numbers = tuple(place + 1 for place in item.primary_key)
        keys.append(
            Key(oids.of_key(oid), name, numbers, True, enforced, True, True,
                oids.of_constraint(oid))
        )  # fmt: skip
    keys += [_index(index) for index in indexes]
    shown = isinstance(item, View | MaterializedView)
    return Relation(
        oid,
        "public",
        item.name,
        _KINDS[type(item)],
        attributes,
        tuple(keys),
        item.checks if isinstance(item, Table) else (),
        query_text(item.sql) if shown else None,
        comment=item.comments.get(""),
        server=_server(item) if isinstance(item, Source) else None,
        id=item.id,
        owner=item.owner or OWNER,
    )


def _index(item: Index) -> Key:
    oid = oids.of_object(item.id)
    return Key(
        oid, item.name, tuple(place + 1 for place in item.key),
        unique=item.unique, nulls_distinct=item.nulls_distinct,
        constraint=oids.of_constraint(oid) if item.constraint else 0,
    )  # fmt: skip


def _sequence(item: Sequence) -> Relation:
    attributes = (
        _attribute(1, "last_value", BIGINT, nullable=False),
        _attribute(2, "log_cnt", BIGINT, nullable=False),
        _attribute(3, "is_called", BOOLEAN, nullable=False),
    )
    return Relation(
        oids.of_object(item.id), "public", item.name, "S", attributes,
        comment=item.comments.get(""), id=item.id, owner=item.owner or OWNER,
    )  # fmt: skip


def _server(source: Source) -> str:
    return type(source.statement.connection).__name__.removesuffix("Connection").lower()


def _declared(columns: Many[TableColumn], catalog: Catalog) -> tuple[Attribute, ...]:
    return tuple(
        replace(
            _attribute(number, c.column.name, c.declared, c.column.nullable, _default(c, catalog)),
            identity=c.identity,
            sequence=_drawn(c, catalog),
        )
        for number, c in enumerate(columns, 1)
    )


def _drawn(column: TableColumn, catalog: Catalog) -> Sequence | None:
    found = None if column.sequence is None else catalog[column.sequence]
    return found if isinstance(found, Sequence) else None


def _default(column: TableColumn, catalog: Catalog) -> str | None:
    """Return a default as PostgreSQL shows it; an identity is none."""
    if column.identity is not None:
        return None
    if (sequence := _drawn(column, catalog)) is not None:
        name = quoted(sequence.name).replace("'", "''")
        return f"nextval('{name}'::regclass)"
    if column.default is None:
        return None
    if is_literal(column.default):
        return default_text(column.default, column.declared)
    return column.default_text


def _attributes(schema: Schema, comments: Mapping[str, str] | None = None) -> tuple[Attribute, ...]:
    return tuple(
        _attribute(number, c.name, c.type, c.nullable, comment=(comments or {}).get(c.name))
        for number, c in enumerate(schema, 1)
    )


def _attribute(
    number: int,
    name: str,
    kind: Declared,
    nullable: bool,
    default: str | None = None,
    *,
    comment: str | None = None,
) -> Attribute:
    if isinstance(kind, Varchar | Char):
        oid = _VARCHAR if isinstance(kind, Varchar) else _BPCHAR
        return Attribute(number, name, oid, kind.length + 4, nullable, default, comment)
    oid, modifier = oid_of(kind), modifier_of(kind)
    return Attribute(number, name, oid, modifier, nullable, default, comment)


def _of_system() -> Iterator[Relation]:
    for number, relation in enumerate(SYSTEM_RELATIONS.values()):
        comments = {column.name: column.meaning for column in relation.columns}
        yield Relation(
            oids.SYSTEM + number,
            "reclock",
            relation.name.rpartition(".")[2],
            "v",
            _attributes(relation.schema, comments),
            comment=relation.meaning,
            private=relation.private,
        )


def _of_catalog() -> Iterator[Relation]:
    for number, relation in enumerate(PG_RELATIONS.values()):
        attributes = tuple(
            _attribute(place, name, kind.type, nullable=True)
            for place, (name, kind) in enumerate(relation.columns.items(), 1)
        )
        is_table = relation.schema == "pg_catalog"
        oid = _WELL_KNOWN.get(relation.name, oids.RELATIONS + number) if is_table else None
        yield Relation(
            oids.RELATIONS + number if oid is None else oid,
            relation.schema,
            relation.name,
            "r" if is_table else "v",
            attributes,
        )
