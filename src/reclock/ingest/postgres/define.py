"""From CREATE SOURCE … FROM POSTGRES to objects: the source, and a relation for each table.

The source itself is a relation of one row: its slot, how far the log is bound, and when the last
bound transaction committed. Each table is a source of its own with this one as its *parent*: it has
no remap and is read at the parent's times. One change of the catalog makes all of them, and one
drops them.

What the server said when the source was made is kept as facts, which never change (P2).

Tests: tests/ingest/postgres/test_postgres.py.
"""

from __future__ import annotations

from secrets import token_hex
from typing import TYPE_CHECKING, Final

from reclock.catalog.item import NOT_LINKED, Source, TableColumn, number_of
from reclock.catalog.secrets import hidden
from reclock.config import parse_duration
from reclock.connectors.format.decoder import Field
from reclock.connectors.postgres.describe import Wanted, describe
from reclock.connectors.postgres.table import Table
from reclock.dataflow.envelope import NONE, UPSERT
from reclock.dataflow.types import arrow_type
from reclock.engine.first_time import FACT
from reclock.errors import StatementError
from reclock.ids import ObjectId
from reclock.ingest.postgres.slots import connection_to
from reclock.remap.codec import LSN
from reclock.sql.schema import Column
from reclock.sql.statement.source import PostgresConnection
from reclock.sql.types import TEXT, TIMESTAMPTZ
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Lsn

if TYPE_CHECKING:
    from reclock.catalog.item import Linked
    from reclock.durable.keyed import Json
    from reclock.sql.statement import CreateSource

PASSWORD: Final = "password"
COLUMNS: Final = (
    TableColumn(Column("slot", TEXT, nullable=False)),
    TableColumn(Column("lsn", TEXT, nullable=False)),
    TableColumn(Column("committed_at", TIMESTAMPTZ, nullable=True)),
)
_OPTIONS: Final = {"timestamp_interval", "retain_history", "max_rows_per_tick"}


def check_postgres(statement: CreateSource) -> None:
    """Refuse what contradicts itself, before anything is asked or made."""
    position = statement.name.position
    given = (
        statement.columns.columns, statement.value_format, statement.key_format, statement.include,
        statement.envelope.kind != NONE, statement.reclock_using, statement.reclock_into_epoch,
    )  # fmt: skip
    if any(given):
        message = "the tables of a database have their columns, and no format or envelope"
        hint = "leave out the columns, FORMAT, INCLUDE, ENVELOPE and RECLOCK"
        raise StatementError(message, code="42601", hint=hint, position=position)
    for name, _ in statement.options:
        if name not in _OPTIONS:
            message = f'option "{name}" is not for a PostgreSQL source'
            hint = f"it has {', '.join(sorted(_OPTIONS))}"
            raise StatementError(message, code="42601", hint=hint, position=position)
    assert isinstance(statement.connection, PostgresConnection)
    names = [table.alias for table in statement.connection.tables or ()]
    for table in statement.connection.tables or ():
        if names.count(table.alias) > 1 or table.alias == statement.name.parts[-1]:
            message = f'relation "{table.alias}" is named twice'
            hint = "write AS with another name after the table"
            raise StatementError(message, code="42712", hint=hint, position=table.position)


def discover_postgres(statement: CreateSource) -> Json:
    """Ask the server, once, what a new source must know for ever."""
    given = statement.connection
    assert isinstance(given, PostgresConnection)
    wanted = None
    if given.tables is not None:
        wanted = [Wanted(t.schema, t.name, t.alias, t.position) for t in given.tables]
    found = describe(connection_to(given), given.publication, wanted)
    return {
        "slot": f"reclock_{token_hex(6)}",
        "system": {"id": found.system.id, "timeline": found.system.timeline},
        "published": found.marks.record(),
        "tables": [{"alias": alias, **table.record()} for alias, table in found.tables],
        FACT: [LSN.encode(Lsn(1))],
    }


def define_postgres(
    statement: CreateSource,
    sql: str,
    item: ObjectId,
    name: str,
    facts: Json,
    *,
    using: frozenset[ObjectId] = frozenset(),
    linked: Linked = NOT_LINKED,
) -> Source:
    """Return the source of a statement, or, if the facts are a table's, that table."""
    given = statement.connection
    assert isinstance(given, PostgresConnection)
    retain = dict(statement.options).get("retain_history")
    history = None if retain is None else parse_duration(retain)
    if "table" in facts:
        table = Table.of(facts["table"])
        return Source(
            item, name, sql, EPOCH_MS, using, history, columns_of(table), table.key,
            UPSERT if table.key else NONE, statement=statement, facts=facts,
            parent=ObjectId(facts["parent"]),
        )  # fmt: skip
    inline = given.password is not None and given.named is None
    secrets = {PASSWORD: given.password or ""} if inline else {}
    depends = using | linked.connections
    return Source(
        item, name, hidden(sql, secrets), EPOCH_MS, depends, history, COLUMNS, (0,), UPSERT,
        statement=statement, facts=facts, secrets=secrets, linked=linked,
    )  # fmt: skip


def define_tables(source: Source) -> list[Source]:
    """Return the tables of a new source, with the ids that follow its own; most have none."""
    made = []
    first = number_of(source.id) + 1
    for number, record in enumerate(source.facts.get("tables", ())):
        facts = {"parent": source.id, "table": {k: v for k, v in record.items() if k != "alias"}}
        item = ObjectId(f"u{first + number}")
        own = frozenset({source.id})
        alias = record["alias"]
        made.append(define_postgres(source.statement, source.sql, item, alias, facts, using=own))
    return made


def is_keyless(table: Source) -> bool:
    """Return whether the log cannot name a row of a table that is updated or deleted."""
    known = Table.of(table.facts["table"])
    return not known.key and known.identity != "f"


def keyless_notice(table: Source) -> str:
    """Return what is said of such a table."""
    known = Table.of(table.facts["table"])
    return (
        f'table "{table.name}" has no key: PostgreSQL refuses to update or delete its rows until '
        f"ALTER TABLE {known.shown} REPLICA IDENTITY FULL"
    )


def columns_of(table: Table) -> tuple[TableColumn, ...]:
    """Return the columns of a table as columns of a relation."""
    keys = set(table.key)
    return tuple(
        TableColumn(Column(c.name, c.type, nullable=c.nullable and at not in keys))
        for at, c in enumerate(table.columns)
    )


def fields_of(table: Table) -> tuple[Field, ...]:
    """Return the columns of a table as what is decoded."""
    return tuple(Field(c.name, c.type, arrow_type(c.type), c.nullable) for c in table.columns)
