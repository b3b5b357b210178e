"""CREATE SOURCE and CREATE SINK, with the clause order of the contract.

``CREATE SOURCE name (columns) FROM … [KEY FORMAT f VALUE FORMAT f | FORMAT f] [INCLUDE …]
[ENVELOPE …] [RECLOCK USING … | RECLOCK INTO EPOCH] [WITH (…)]``; a clause out of its order is a
syntax error.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from reclock.sql.parse.columns import parse_columns
from reclock.sql.parse.cursor import Cursor
from reclock.sql.parse.dialect import tokenize
from reclock.sql.parse.options import BOOLEAN, DURATION, NUMBER, STRING, parse_options
from reclock.sql.statement.column import ColumnList
from reclock.sql.statement.sink import CreateSink
from reclock.sql.statement.source import (
    Connection,
    CreateSource,
    FileConnection,
    Format,
    Include,
    KafkaConnection,
    LoadGenerator,
    PostgresConnection,
    PostgresTable,
    SourceEnvelope,
)

_SOURCE = {
    "timestamp_interval": DURATION,
    "timeline": STRING,
    "epoch_ms_timeline": BOOLEAN,
    "retain_history": DURATION,
    "tail": BOOLEAN,
    "start_offset": STRING,
    "start_timestamp": STRING,
    "isolation_level": STRING,
    "group_id_prefix": STRING,
    "max_rows_per_tick": NUMBER,
    "on_error": STRING,
    "consistency_topic": STRING,
    "transaction_order": STRING,
    "data_collection": STRING,
    "unknown_fields": STRING,
    "header": BOOLEAN,
    "delimiter": STRING,
    "compression": STRING,
}
_CLIENT_PREFIXES = ("kafka.", "registry.")
"""Options of client libraries, which know their names."""

_SINK = {
    "reuse_topic": BOOLEAN,
    "recover": BOOLEAN,
    "consistency_topic": STRING,
    "compression": STRING,
    "transaction_timeout": DURATION,
    "transaction_rows": NUMBER,
    "transaction_bytes": NUMBER,
    "partitions": NUMBER,
    "partition_count": NUMBER,
    "replication_factor": NUMBER,
    "snapshot": BOOLEAN,
    "on_orphan": STRING,
    "transactional_id_prefix": STRING,
}
_GENERATOR = {
    "seed": NUMBER,
    "events_per_tick": NUMBER,
    "max_cardinality": NUMBER,
    "accounts": NUMBER,
    "relation": STRING,
}
_FORMATS = ("JSON", "TEXT", "BYTES", "CSV", "AVRO", "PARQUET")


def parse_source(cursor: Cursor) -> CreateSource:
    """Read what follows CREATE SOURCE."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name()
    columns = parse_columns(cursor, plain=True) if cursor.sees("(") else ColumnList()
    cursor.expect("FROM")
    connection = _connection(cursor)
    key_format = value_format = None
    if cursor.accept("KEY", "FORMAT"):
        key_format = _format(cursor)
        cursor.expect("VALUE", "FORMAT")
        value_format = _format(cursor)
    elif cursor.accept("FORMAT"):
        value_format = _format(cursor)
    include = _includes(cursor)
    envelope = _envelope(cursor) if cursor.accept("ENVELOPE") else SourceEnvelope("none")
    reclock_using = cursor.name() if cursor.accept("RECLOCK", "USING") else None
    into_epoch = reclock_using is None and cursor.accept("RECLOCK", "INTO", "EPOCH")
    options = parse_options(cursor, _SOURCE, prefixes=_CLIENT_PREFIXES)
    cursor.end()
    return CreateSource(
        name,
        columns,
        connection,
        key_format,
        value_format,
        include,
        envelope,
        reclock_using,
        options.pairs(),
        if_not_exists,
        into_epoch,
    )


def _connection(cursor: Cursor) -> Connection:
    if cursor.accept("KAFKA"):
        return _kafka(cursor)
    if cursor.accept("POSTGRES"):
        return _postgres(cursor)
    if cursor.accept("FILE"):
        return FileConnection(cursor.string())
    if cursor.accept("DIRECTORY"):
        return FileConnection(cursor.string(), directory=True)
    if cursor.accept("LOAD", "GENERATOR"):
        kind = cursor.choose("COUNTER", "AUCTION", "BANK").lower()
        if cursor.sees("("):
            return LoadGenerator(kind, parse_options(cursor, _GENERATOR, keyword=False).pairs())
        return LoadGenerator(kind)
    msg = "KAFKA, POSTGRES, FILE, DIRECTORY or LOAD GENERATOR after FROM"
    raise cursor.error(msg)


def _postgres(cursor: Cursor) -> PostgresConnection:
    cursor.expect("CONNECTION")
    connection, password, named = "", None, None
    if cursor.sees_kind(TokenType.STRING):
        connection = cursor.string()
        if cursor.accept("PASSWORD"):
            cursor.accept("SECRET")
            password = cursor.string()
    else:
        named = cursor.name()
    cursor.expect("PUBLICATION")
    publication = cursor.string()
    cursor.expect("FOR")
    if cursor.accept("ALL", "TABLES"):
        return PostgresConnection(connection, publication, None, password, named)
    cursor.expect("TABLES", "(")
    tables = [_table(cursor)]
    while cursor.accept(","):
        tables.append(_table(cursor))
    cursor.expect(")")
    return PostgresConnection(connection, publication, tuple(tables), password, named)


def _table(cursor: Cursor) -> PostgresTable:
    name = cursor.name()
    *schema, last = name.parts
    alias = cursor.identifier() if cursor.accept("AS") else last
    if len(schema) > 1:
        msg = "a table as schema.name"
        raise cursor.error(msg)
    return PostgresTable(schema[0] if schema else None, last, alias, name.position)


def _kafka(cursor: Cursor) -> KafkaConnection:
    named = cursor.name() if cursor.accept("CONNECTION") else None
    broker = ""
    if named is None:
        cursor.expect("BROKER")
        broker = cursor.string()
    cursor.expect("TOPIC")
    return KafkaConnection(broker, cursor.string(), named)


def _format(cursor: Cursor) -> Format:
    kind = cursor.choose(*_FORMATS).lower()
    if kind != "avro":
        return Format(kind)
    cursor.expect("USING")
    if cursor.accept("SCHEMA"):
        return Format(kind, schema=cursor.string())
    cursor.expect("CONFLUENT", "SCHEMA", "REGISTRY")
    if cursor.accept("CONNECTION"):
        return Format(kind, registry="", named=cursor.name())
    return Format(kind, registry=cursor.string())


def _includes(cursor: Cursor) -> tuple[Include, ...]:
    if not cursor.accept("INCLUDE"):
        return ()
    made = []
    while True:
        what = cursor.choose("KEY", "PARTITION", "OFFSET", "TIMESTAMP", "HEADERS").lower()
        made.append(Include(what, cursor.identifier() if cursor.accept("AS") else what))
        if not cursor.accept(","):
            return tuple(made)


def _envelope(cursor: Cursor) -> SourceEnvelope:
    kind = cursor.choose("NONE", "UPSERT", "DEBEZIUM", "MATERIALIZE").lower()
    if kind == "debezium" and cursor.accept("("):
        cursor.expect("TRANSACTION", "METADATA", "TOPIC")
        topic = cursor.string()
        cursor.expect(")")
        return SourceEnvelope(kind, topic)
    return SourceEnvelope(kind)


def parse_sink(cursor: Cursor) -> CreateSink:
    """Read what follows CREATE SINK."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name()
    cursor.expect("FROM")
    relation = cursor.name()
    cursor.expect("INTO")
    connection: KafkaConnection | FileConnection
    if cursor.accept("KAFKA"):
        connection = _kafka(cursor)
    elif cursor.accept("DIRECTORY"):
        connection = FileConnection(cursor.string(), directory=True)
    else:
        cursor.expect("FILE")
        connection = FileConnection(cursor.string())
    key: tuple[str, ...] = ()
    not_enforced = False
    if cursor.accept("KEY"):
        key = cursor.names_in_parens()
        not_enforced = cursor.accept("NOT", "ENFORCED")
    cursor.expect("FORMAT")
    sink_format = _format(cursor)
    cursor.expect("ENVELOPE")
    envelope = cursor.choose("UPSERT", "DEBEZIUM", "MATERIALIZE").lower()
    orphan = "nonce" if cursor.accept("ON", "ORPHAN", "USE", "NONCE") else None
    pairs = parse_options(cursor, _SINK, prefixes=_CLIENT_PREFIXES).pairs()
    cursor.end()
    if orphan is not None:
        pairs = (*pairs, ("on_orphan", orphan))
    return CreateSink(
        name, relation, connection, sink_format, envelope, key, not_enforced, pairs, if_not_exists
    )


def with_relation(text: str, name: str) -> str:
    """Return the text of a CREATE SINK with another relation in its FROM.

    >>> with_relation("CREATE SINK s FROM public.a INTO KAFKA …", "B c")
    'CREATE SINK s FROM "B c" INTO KAFKA …'
    """
    cursor = Cursor(tokenize(text), text)
    cursor.expect("CREATE", "SINK")
    cursor.accept("IF", "NOT", "EXISTS")
    cursor.name()
    cursor.expect("FROM")
    start = cursor.position - 1
    cursor.name()
    plain = name.isidentifier() and name == name.lower()
    written = name if plain else '"' + name.replace('"', '""') + '"'
    return text[:start] + written + text[cursor.passed :]
