"""Chooses the decoder of a statement: FORMAT, the columns, and the options of formats.

======================  =========  ================================================
option                  formats    values
======================  =========  ================================================
``unknown_fields``      JSON       ``ignore`` (the default) or ``fail``
``delimiter``           CSV        one character, not a quote or a line end; ``,``
``registry.…``          AVRO       how to be let into the registry: see ``registry``
======================  =========  ================================================

Columns that a format cannot fill are refused here, when the source is created, and not by
every record.

Tests: tests/connectors/format/test_choose.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.connectors.format.avro_decoder import AvroDecoder, RegistryDecoder, field_names
from reclock.connectors.format.csv_decoder import CsvDecoder
from reclock.connectors.format.decoder import Fault
from reclock.connectors.format.json_decoder import JsonDecoder
from reclock.connectors.format.plain import BytesDecoder, TextDecoder
from reclock.connectors.format.registry import Registry
from reclock.errors import InvalidDefinition, InvalidValue, NotSupported
from reclock.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.connectors.format.decoder import Decoder, Field
    from reclock.sql.statement.source import Format
    from reclock.sql.types import Type


def decoder_of(format: Format, fields: Sequence[Field], options: Mapping[str, str]) -> Decoder:  # noqa: A002 - the statement's word
    """Return the decoder of payloads of ``format`` into ``fields``.

    >>> import pyarrow as pa
    >>> from reclock.connectors.format.decoder import Field
    >>> from reclock.sql.statement.source import Format
    >>> fields = [Field("id", t.BIGINT, pa.int64(), nullable=False)]
    >>> decoder = decoder_of(Format("json"), fields, {})
    >>> done = decoder.decode(pa.array([b'{"id": 7}', b'{"id": "x"}', None], pa.binary()))
    >>> done.columns[0].to_pylist(), done.faults.to_pylist()
    ([7, None, None], [None, 'field "id": x is not of type bigint', None])
    """
    for field in fields:
        if _has_unknown(field.type):
            message = f'column "{field.name}" has type {field.type}'
            raise InvalidDefinition(message, hint="give it a type")
    match format.kind.lower():
        case "json":
            return JsonDecoder(tuple(fields), _unknown_fields(options) == "fail")
        case "csv":
            return _csv(tuple(fields), options)
        case "avro":
            return _avro(format, tuple(fields), options)
        case "text":
            return TextDecoder(_only(fields, t.TEXT, "TEXT"))
        case "bytes":
            return BytesDecoder(_only(fields, t.BYTEA, "BYTES"))
    message = f"FORMAT {format.kind.upper()} is not supported"
    raise NotSupported(message, hint="write JSON, AVRO, CSV, TEXT or BYTES")


def _avro(
    format: Format,  # noqa: A002 - the statement's word
    fields: tuple[Field, ...],
    options: Mapping[str, str],
) -> Decoder:
    if format.registry is not None:
        return RegistryDecoder(fields, Registry.of(format.registry, options))
    if format.schema is None:
        message = "FORMAT AVRO needs a schema"
        hint = "write USING SCHEMA '…' or USING CONFLUENT SCHEMA REGISTRY '…'"
        raise InvalidDefinition(message, hint=hint)
    decoder = AvroDecoder(fields, format.schema)
    try:
        decoder.reader()
        names = field_names(format.schema)
    except Fault as fault:
        message = "the Avro schema does not suit the columns"
        raise InvalidDefinition(message, detail=str(fault)) from fault
    missing = [] if names is None else [f.name for f in fields if f.name not in names]
    if missing:
        message = f'the Avro schema has no field "{missing[0]}"'
        raise InvalidDefinition(message, hint="name the columns as the schema names its fields")
    return decoder


def _has_unknown(kind: Type) -> bool:
    match kind:
        case t.Array():
            return _has_unknown(kind.element)
        case t.Record():
            return any(_has_unknown(inside) for _, inside in kind.fields)
    return kind == t.UNKNOWN


def _unknown_fields(options: Mapping[str, str]) -> str:
    given = options.get("unknown_fields", "ignore").lower()
    if given not in {"ignore", "fail"}:
        message = f'invalid value for option "unknown_fields": "{given}"'
        raise InvalidValue(message, hint="write ignore or fail")
    return given


def _csv(fields: tuple[Field, ...], options: Mapping[str, str]) -> CsvDecoder:
    delimiter = options.get("delimiter", ",")
    if len(delimiter.encode()) != 1 or delimiter in '"\r\n\0':
        message = f'invalid value for option "delimiter": "{delimiter}"'
        raise InvalidValue(message, hint="write one character of ASCII, not a quote or a line end")
    for field in fields:
        if _has_record(field.type):
            message = f'column "{field.name}" of type {field.type} cannot be read from CSV'
            raise NotSupported(message, hint="write FORMAT JSON or AVRO, or make it a json column")
    return CsvDecoder(fields, delimiter)


def _has_record(kind: Type) -> bool:
    return isinstance(kind, t.Record) or (isinstance(kind, t.Array) and _has_record(kind.element))


def _only(fields: Sequence[Field], wanted: Type, name: str) -> Field:
    """Return the one field that there may be."""
    if len(fields) != 1 or fields[0].type != wanted:
        given = ", ".join(f"{field.name} {field.type}" for field in fields)
        message = f"FORMAT {name} fills one column of type {wanted}"
        raise InvalidDefinition(message, detail=f"the columns are ({given})")
    return fields[0]
