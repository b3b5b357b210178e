"""A publication and its tables, as the server describes them when a source is created.

``describe`` refuses, with the code of what is wrong, before anything is made anywhere: a log that
is not logical, a role that may not replicate, a publication or table that is not there, or that
leaves out updates, deletes or truncations, tables that the role may not read whole, and tables
whose rows cannot be followed.

A table's key here are the columns of its replica identity: the primary key (DEFAULT, and FULL where
there is one), or those of the index (INDEX). Without one the whole row tells rows apart: FULL, or
rows that are only ever added.

Tests: tests/ingest/postgres/test_postgres.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reclock.connectors.postgres.connection import identifier, parsed, text
from reclock.connectors.postgres.published import left_out, marks_of
from reclock.connectors.postgres.slot import system_of
from reclock.connectors.postgres.table import Table, TableColumn
from reclock.errors import NotSupported, SourceUnavailable, StatementError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.connectors.postgres.connection import Connection
    from reclock.connectors.postgres.published import Marks
    from reclock.connectors.postgres.slot import System

_LEAST: Final = 130_000
"""PostgreSQL 13: the oldest that is kept up, or nearly."""

_TABLES: Final = """
SELECT c.oid::int8, n.nspname, c.relname, c.relreplident, c.relkind, c.relpersistence,
       to_jsonb(t) ->> 'rowfilter',
       ARRAY(SELECT jsonb_array_elements_text(to_jsonb(t) -> 'attnames')) AS attnames
FROM pg_publication_tables t
JOIN pg_namespace n ON n.nspname = t.schemaname
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
WHERE t.pubname = {publication}
ORDER BY n.nspname, c.relname
"""
_COLUMNS: Final = """
WITH RECURSIVE base AS (
  SELECT oid, oid AS type, typtype, typbasetype, typtypmod FROM pg_type
  UNION ALL
  SELECT b.oid, p.oid, p.typtype, p.typbasetype,
         CASE WHEN b.typtypmod >= 0 THEN b.typtypmod ELSE p.typtypmod END
  FROM base b JOIN pg_type p ON p.oid = b.typbasetype WHERE b.typtype = 'd'
)
SELECT a.attname, a.atttypid::int8,
       CASE WHEN a.atttypmod >= 0 THEN a.atttypmod ELSE coalesce(b.typtypmod, -1) END,
       b.type::int8, NOT a.attnotnull, a.attnum, a.attgenerated
FROM pg_attribute a JOIN base b ON b.oid = a.atttypid AND b.typtype <> 'd'
WHERE a.attrelid = {table} AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_KEY: Final = """
SELECT i.indkey::text FROM pg_index i
WHERE i.indrelid = {table} AND i.indisvalid AND i.indimmediate
  AND CASE WHEN {identity} = 'i' THEN i.indisreplident ELSE i.indisprimary END
"""
_RIGHTS: Final = """
SELECT current_user, row_security_active(c.oid),
  has_schema_privilege(c.relnamespace, 'USAGE')
  AND (SELECT bool_and(has_column_privilege(c.oid, n, 'SELECT')) FROM unnest({columns}::int2[]) n)
FROM pg_class c WHERE c.oid = {table}
"""
_STANDBYS: Final = ("standby", "prefer-standby", "read-only")
"""Values of ``target_session_attrs`` that may lead to a standby, and are meant to."""

_STANDBY: Final = "a standby server is not supported as a source"


@dataclass(frozen=True)
class Wanted:
    """A table that a source is to have, and what it is called there."""

    schema: str | None
    name: str
    alias: str
    position: int | None = None


@dataclass(frozen=True)
class Described:
    """A server, and the tables of a publication by the names that they get."""

    system: System
    marks: Marks
    tables: tuple[tuple[str, Table], ...]


def describe(
    connection: Connection, publication: str, wanted: Sequence[Wanted] | None
) -> Described:
    """Return what there is; ``wanted`` None is all tables of the publication."""
    wish = parsed(connection.text).get("target_session_attrs")
    if wish in _STANDBYS:
        hint = "leave target_session_attrs out: of several hosts the primary is meant"
        raise NotSupported(_STANDBY, detail=f"target_session_attrs is {wish}", hint=hint)
    session = connection.sql()
    try:
        with connection.told():
            _check_server(connection, session)
            marks = _marks(session, publication, wanted)
            tables = _chosen(_published(session, publication), publication, wanted)
            made = tuple((alias, _table(session, row)) for alias, row in tables)
    finally:
        session.close()
    replication = connection.replication()
    try:
        with connection.told():
            system = system_of(replication)
    finally:
        replication.close()
    return Described(system, marks, made)


def _marks(session: Any, publication: str, wanted: Sequence[Wanted] | None) -> Marks:
    """Return the marks of the tables; what they do not know of is found by them later."""
    chosen = _chosen(_published(session, publication), publication, wanted)
    marks = marks_of(session, publication, [row[0] for _, row in chosen])
    if marks is None:
        message = f'publication "{publication}" is being changed'
        hint = "try again when the transaction that changes it is complete"
        raise SourceUnavailable(message, code="55006", hint=hint)
    return marks


def described_again(connection: Connection, table: Table, publication: str) -> Table | None:
    """Return a table as it is now; None if it is gone or not published."""
    session = connection.sql()
    try:
        with connection.told():
            for row in _published(session, publication):
                if row[0] == table.oid:
                    return _table(session, row)
    finally:
        session.close()
    return None


def _rows(session: Any, query: str) -> list[Any]:
    with session.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def _check_server(connection: Connection, session: Any) -> None:
    if session.info.server_version < _LEAST:
        message = "this version of PostgreSQL is not supported as a source"
        detail = f"it is {session.info.server_version // 10_000}"
        raise NotSupported(message, detail=detail, hint="13 and later are")
    ((level, is_standby, may, user),) = _rows(
        session,
        "SELECT current_setting('wal_level'), pg_is_in_recovery(), "
        "(SELECT rolsuper OR rolreplication FROM pg_roles WHERE rolname = current_user), "
        "current_user",
    )
    if level != "logical":
        message = f"wal_level of the server must be logical, and is {level}"
        hint = "ALTER SYSTEM SET wal_level = logical, then restart the server"
        raise SourceUnavailable(message, code="55000", detail=connection.shown, hint=hint)
    if is_standby:
        raise NotSupported(_STANDBY, detail=connection.shown, hint="connect to the primary")
    if not may:
        message = f'role "{user}" may not replicate'
        hint = f'ALTER ROLE "{user}" REPLICATION'
        raise SourceUnavailable(message, code="42501", detail=connection.shown, hint=hint)


def _published(session: Any, publication: str) -> list[Any]:
    left = left_out(session, publication)
    if left is None:
        message = f'publication "{publication}" does not exist'
        hint = f'CREATE PUBLICATION "{publication}" FOR TABLE …, in that database'
        raise SourceUnavailable(message, code="42704", hint=hint)
    if left:
        message = f'publication "{publication}" leaves out {" and ".join(left)}'
        hint = "ALTER PUBLICATION … SET (publish = 'insert, update, delete, truncate')"
        raise SourceUnavailable(message, code="55000", hint=hint)
    return _rows(session, _TABLES.format(publication=text(publication)))


def _chosen(
    found: list[Any], publication: str, wanted: Sequence[Wanted] | None
) -> list[tuple[str, Any]]:
    """Return the rows of the tables that are wanted, each with its name here."""
    if wanted is None:
        if not found:
            message = f'publication "{publication}" has no tables'
            hint = "ALTER PUBLICATION … ADD TABLE …"
            raise SourceUnavailable(message, code="42P01", hint=hint)
        names = [row[2] for row in found]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            message = f'the publication has two tables with the name "{twice[0]}"'
            hint = f"write FOR TABLES (schema.{twice[0]} AS …, …)"
            raise StatementError(message, code="42712", hint=hint)
        return [(row[2], row) for row in found]
    made = []
    for one in wanted:
        schema = one.schema or "public"
        row = next((row for row in found if row[1:3] == (schema, one.name)), None)
        if row is None:
            message = f'publication "{publication}" has no table {schema}.{one.name}'
            there = ", ".join(f"{row[1]}.{row[2]}" for row in found[:10]) or "none"
            raise StatementError(
                message, code="42P01", detail=f"it has {there}",
                hint="ALTER PUBLICATION … ADD TABLE …", position=one.position,
            )  # fmt: skip
        made.append((one.alias, row))
    return made


def _table(session: Any, row: Any) -> Table:
    oid, schema, name, identity, kind, persistence, filtered, published = row
    if kind != "r":
        message = f"table {schema}.{name} is partitioned and published by its root"
        hint = "ALTER PUBLICATION … SET (publish_via_partition_root = false)"
        raise NotSupported(message, hint=hint)
    if persistence != "p":
        message = f"table {schema}.{name} is unlogged: the log does not have its rows"
        raise StatementError(message, code="55000", hint=f"ALTER TABLE {schema}.{name} SET LOGGED")
    columns, numbers = [], []
    for column, kind_oid, modifier, base, nullable, number, generated in _rows(
        session, _COLUMNS.format(table=oid)
    ):
        if (published and column not in published) or (not published and generated):
            continue
        columns.append(TableColumn(column, kind_oid, modifier, base, nullable, number))
        numbers.append(number)
    if not columns:
        message = f"table {schema}.{name} has no columns that are published"
        raise StatementError(message, code="55000", hint="leave it out")
    _check_rights(session, oid, f"{schema}.{name}", numbers)
    key = _key(session, oid, identity, numbers)
    return Table(oid, schema, name, tuple(columns), key, identity, filtered)


def _check_rights(session: Any, oid: int, shown: str, numbers: Sequence[int]) -> None:
    """Refuse for now a table of which the role may not read every row."""
    columns = text("{" + ",".join(map(str, numbers)) + "}")
    ((user, is_filtered, may),) = _rows(session, _RIGHTS.format(table=oid, columns=columns))
    if not may:
        message = f'role "{user}" may not read table {shown}'
        hint = f"GRANT USAGE on its schema and SELECT on the table to {identifier(user)}"
        raise SourceUnavailable(message, code="42501", hint=hint)
    if is_filtered:
        message = f'row security hides rows of table {shown} from role "{user}"'
        detail = "the log has all rows, so the copy must have them, too"
        hint = f"ALTER ROLE {identifier(user)} BYPASSRLS, or use the role that owns the table"
        raise SourceUnavailable(message, code="42501", detail=detail, hint=hint)


def _key(session: Any, oid: int, identity: str, numbers: Sequence[int]) -> tuple[int, ...]:
    """Return the columns that tell rows apart; none where the whole row does."""
    if identity == "n":
        return ()
    found = _rows(session, _KEY.format(table=oid, identity=text(identity)))
    if not found:
        return ()
    given = [int(number) for number in found[0][0].split()]
    if not set(given) <= set(numbers):
        return ()
    return tuple(sorted(numbers.index(number) for number in given))
