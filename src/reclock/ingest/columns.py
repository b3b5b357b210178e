"""The columns of a source: those declared, those included, and where each comes from.

::

    declared columns      from the value; those of an upsert source's key, from the key
    included columns      KEY, PARTITION, OFFSET, TIMESTAMP, HEADERS of the record
    error                 with on_error = 'inline': why the record does not decode

With ``on_error = 'inline'`` the columns of the value may be NULL whatever they are declared,
since a row stands for a record that has none.

Tests: tests/ingest/test_sources.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from reclock.catalog.item import TableColumn
from reclock.connectors import cdcv2
from reclock.connectors.cdcv2 import Cdcv2Decode
from reclock.connectors.debezium import (
    DebeziumDecode,
    fields_of,
    key_fields_of,
    transaction_fields,
)
from reclock.connectors.format.choose import decoder_of
from reclock.connectors.format.decoder import Field
from reclock.connectors.key import BareKey
from reclock.connectors.records import Decode, Part
from reclock.connectors.transactions import TransactionsDecode, metadata_decoder
from reclock.dataflow.envelope import DEBEZIUM, MATERIALIZE, UPSERT
from reclock.dataflow.types import arrow_type
from reclock.errors import StatementError
from reclock.sql.schema import Column
from reclock.sql.statement.source import Format, KafkaConnection
from reclock.sql.types import BIGINT, BYTEA, INTEGER, JSON, TEXT, TIMESTAMPTZ, Array, Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.connectors.format.decoder import Decoder
    from reclock.sql.statement import CreateSource
    from reclock.sql.types import Type

ERROR: Final = "error"
NULLABLE: Final = ("text", "bytes")
"""Formats of which a record without a value is a NULL."""

_INCLUDED: Final[dict[str, Type]] = {
    "key": BYTEA,
    "partition": INTEGER,
    "offset": BIGINT,
    "timestamp": TIMESTAMPTZ,
    "headers": Array(Record((("key", TEXT), ("value", BYTEA)))),
}
_KEY_TYPES: Final[dict[str, Type]] = {"text": TEXT, "json": JSON}
_DEFAULT: Final = {"text": ("text", TEXT), "bytes": ("data", BYTEA)}
"""The column of a format that has one, if none is declared."""


def source_columns(statement: CreateSource) -> tuple[tuple[TableColumn, ...], tuple[int, ...]]:
    """Return the columns of a source whose records are decoded, and those of its key."""
    options = dict(statement.options)
    inline = options.get("on_error", "report") == "inline"
    declared = _declared(statement, inline=inline)
    included = [
        TableColumn(Column(i.name, _included_type(i.what, statement), nullable=True))
        for i in statement.include
    ]
    error = [TableColumn(Column(ERROR, TEXT, nullable=True))] if inline else []
    columns = (*declared, *included, *error)
    names = [c.column.name for c in columns]
    for at, name in enumerate(names):
        if name in names[:at]:
            message = f'column "{name}" specified more than once'
            hint = "write INCLUDE … AS another_name, or declare another"
            raise StatementError(message, code="42701", hint=hint, position=statement.name.position)
    return columns, tuple(names.index(name) for name in statement.columns.primary_key)


def _declared(statement: CreateSource, *, inline: bool) -> list[TableColumn]:
    kind = statement.value_format.kind if statement.value_format else ""
    given = statement.columns.columns
    if not given and kind in _DEFAULT:
        return [TableColumn(Column(*_DEFAULT[kind], nullable=True))]
    if not given:
        message = f'source "{statement.name}" has no columns'
        hint = f'write CREATE SOURCE "{statement.name}" (column type, …) FROM …'
        raise StatementError(message, code="42601", hint=hint, position=statement.name.position)
    key = statement.columns.primary_key
    return [
        TableColumn(
            Column(c.name, c.type, c.nullable or (inline and c.name not in key)), None, c.length
        )
        for c in given
    ]


def _included_type(what: str, statement: CreateSource) -> Type:
    if what == "key" and statement.key_format is not None:
        return _KEY_TYPES.get(statement.key_format.kind, BYTEA)
    return _INCLUDED[what]


def decode_of(
    statement: CreateSource, columns: Sequence[TableColumn], part: str = "partition"
) -> Decode | DebeziumDecode | Cdcv2Decode | TransactionsDecode:
    """Return how the records of a source are decoded."""
    assert statement.value_format is not None
    if statement.consistency_topic is not None:
        return _transactions(statement, columns)
    if statement.envelope.kind == DEBEZIUM:
        return _debezium(statement, columns)
    if statement.envelope.kind == MATERIALIZE:
        return _materialize(statement, columns, part)
    options = dict(statement.options)
    width = len(columns) - len(statement.include) - (options.get("on_error") == "inline")
    upserts = statement.envelope.kind == UPSERT
    names = [c.column.name for c in columns]
    key = tuple(names.index(n) for n in statement.columns.primary_key) if upserts else ()
    value = tuple(at for at in range(width) if at not in key)
    keys = [Part(_key_decoder(statement, columns, key, options), key)] if upserts else []
    raw: list[tuple[int, str]] = []
    for at, include in enumerate(statement.include, width):
        text = include.what == "key" and columns[at].column.type != BYTEA
        if text:
            assert statement.key_format is not None
            made = decoder_of(Format("text"), [_field(columns[at], TEXT)], {})
            keys.append(Part(made, (at,)))
        else:
            raw.append((at, include.what))
    fields = [_declared_field(statement, columns[at]) for at in value]
    return Decode(
        types=tuple(arrow_type(c.column.type) for c in columns),
        value=Part(decoder_of(statement.value_format, fields, options), value),
        keys=tuple(keys),
        included=tuple(raw),
        upserts=upserts,
        inline=options.get("on_error") == "inline",
        nullable=statement.value_format.kind in NULLABLE,
        whose=f'source "{statement.name}", {part}',
    )


def _debezium(statement: CreateSource, columns: Sequence[TableColumn]) -> DebeziumDecode:
    assert statement.value_format is not None
    options = dict(statement.options)
    declared = len(columns) - len(statement.include)
    fields = [field_of(c) for c in columns[:declared]]
    names = [f.name for f in fields]
    key_at = tuple(names.index(name) for name in statement.columns.primary_key)
    ignoring = {k: v for k, v in options.items() if k != "unknown_fields"}
    key = None
    if key_at:
        key_fields = key_fields_of([fields[at] for at in key_at])
        key = decoder_of(statement.key_format or statement.value_format, key_fields, ignoring)
    transactional = statement.consistency_topic is not None
    wanted = fields_of(fields, transactional=transactional)
    transaction = None
    if transactional:
        transaction = decoder_of(statement.value_format, transaction_fields(), ignoring)
    return DebeziumDecode(
        types=tuple(arrow_type(c.column.type) for c in columns),
        value=decoder_of(statement.value_format, wanted, ignoring),
        required=tuple((f.name, not f.nullable) for f in fields),
        key=key,
        key_at=key_at,
        included=tuple((declared + at, i.what) for at, i in enumerate(statement.include)),
        whose=f'source "{statement.name}", partition',
        transaction=transaction,
    )


def _transactions(statement: CreateSource, columns: Sequence[TableColumn]) -> TransactionsDecode:
    assert statement.value_format is not None
    assert statement.consistency_topic is not None
    assert isinstance(statement.connection, KafkaConnection)
    options = dict(statement.options)
    ignoring = {k: v for k, v in options.items() if k != "unknown_fields"}
    return TransactionsDecode(
        rows=_debezium(statement, columns),
        metadata=metadata_decoder(statement.value_format, ignoring),
        topic=statement.connection.topic,
        consistency_topic=statement.consistency_topic,
        collection=options.get("data_collection"),
        whose=f'source "{statement.name}", partition',
    )


def _materialize(statement: CreateSource, columns: Sequence[TableColumn], part: str) -> Cdcv2Decode:
    assert statement.value_format is not None
    fields = [field_of(c) for c in columns]
    return Cdcv2Decode(
        types=tuple(arrow_type(c.column.type) for c in columns),
        value=cdcv2.decoder(statement.value_format, fields, dict(statement.options)),
        required=tuple((f.name, not f.nullable) for f in fields),
        whose=f'source "{statement.name}", {part}',
    )


def _declared_field(statement: CreateSource, column: TableColumn) -> Field:
    """Return a field as it was declared: a row in error may be NULL where a value may not."""
    nullable = {c.name: c.nullable for c in statement.columns.columns}
    made = field_of(column)
    return made._replace(nullable=nullable.get(column.column.name, True))


def _key_decoder(
    statement: CreateSource,
    columns: Sequence[TableColumn],
    key: tuple[int, ...],
    options: Mapping[str, str],
) -> Decoder:
    given = statement.key_format or statement.value_format
    assert given is not None
    fields = [field_of(columns[at]) for at in key]
    made = decoder_of(given, fields, options)
    if given.kind != "json" or len(fields) > 1:
        return made
    name = json.dumps(fields[0].name)[1:-1]
    return BareKey(made, name, fields[0].type == TEXT)


def _field(column: TableColumn, kind: Type) -> Field:
    return Field(column.column.name, kind, arrow_type(kind), column.column.nullable)


def field_of(column: TableColumn) -> Field:
    """Return a column as formats know it."""
    return _field(column, column.column.type)


def extra_columns(statement: CreateSource) -> tuple[str, ...]:
    """Return what must be read of records besides their value."""
    wanted = [i.what for i in statement.include if i.what in ("key", "timestamp", "headers")]
    keyed = statement.envelope.kind == UPSERT or (
        statement.envelope.kind == DEBEZIUM and statement.columns.primary_key
    )
    skips = dict(statement.options).get("on_error") == "skip"  # letters have the key
    if (keyed or skips) and "key" not in wanted:
        wanted.insert(0, "key")
    if statement.consistency_topic is not None:
        wanted.append("headers")
    return tuple(dict.fromkeys(wanted))
