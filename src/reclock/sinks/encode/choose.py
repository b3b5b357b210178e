"""Chooses the encoder of a statement: FORMAT, ENVELOPE and KEY.

=================  ========================  ===========================================
envelope           key                       formats
=================  ========================  ===========================================
``UPSERT``         needed                    JSON, AVRO
``DEBEZIUM``       if there is one           JSON, AVRO
``MATERIALIZE``    none                      JSON, AVRO
=================  ========================  ===========================================

Anything else is refused by ``key_of``, without asking the registry. AVRO needs a registry:
``registered`` registers the schemas of a new sink, once; ``encoder_of`` sees that they are there.
Both may fail as a registry does (``connectors.format.registry``).

A key with a json column is refused: json's null and NULL are one text, so two keys could be one
message's.

Tests: tests/sinks/encode/test_choose_encoder.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reclock.connectors.format.registry import Registry
from reclock.errors import InvalidDefinition, NotSupported, UndefinedName
from reclock.sinks.encode.avro_format import AvroFormat, Schemas
from reclock.sinks.encode.cdcv2 import AvroWording, Cdcv2Encoder, JsonWording
from reclock.sinks.encode.debezium import DebeziumEncoder
from reclock.sinks.encode.json_format import JsonFormat
from reclock.sinks.encode.shadow import ShadowEncoder
from reclock.sinks.encode.upsert import UpsertEncoder
from reclock.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.sinks.encode.avro_format import Ids
    from reclock.sinks.encode.encoder import Encoder
    from reclock.sinks.encode.shadow import Contents
    from reclock.sql.schema import Schema
    from reclock.sql.statement.source import Format


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a statement says about the messages of a sink, and what was decided about it.

    ``contents`` is needed for a key that is NOT ENFORCED: what its rows were. Without it the key
    is taken to be unique. ``begins`` is the first time of the sink. ``schemas`` are what a
    registry called the schemas of the topic; without them they are registered.
    """

    topic: str
    format: Format
    envelope: str
    key: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    contents: Contents | None = None
    begins: int = 0
    schemas: Ids | None = None


def key_of(wanted: Wanted, schema: Schema) -> tuple[int, ...]:
    """Return the positions of the key's columns; refuse what no encoder does."""
    key = tuple(_column(schema, name) for name in wanted.key)
    match wanted.envelope, key:
        case "upsert", ():
            message = "ENVELOPE UPSERT needs a KEY"
            raise InvalidDefinition(message, hint="write KEY (column, …), or ENVELOPE DEBEZIUM")
        case "materialize", (_, *_):
            message = "ENVELOPE MATERIALIZE has no KEY"
            raise InvalidDefinition(message, hint="leave out KEY, or write ENVELOPE UPSERT")
        case (("upsert" | "debezium" | "materialize"), _):
            pass
        case _:
            message = f"ENVELOPE {wanted.envelope.upper()} is not supported for sinks"
            raise NotSupported(message, hint="write UPSERT, DEBEZIUM or MATERIALIZE")
    for at in key:
        if _has_json(schema.columns[at].type):
            message = f'column "{schema.names[at]}" cannot be in KEY: it has json'
            raise InvalidDefinition(message, hint="make text of it with a cast")
    match wanted.format.kind:
        case "json":
            JsonFormat(schema.columns, key)
        case "avro":
            _registry(wanted)
            _schemas(wanted, schema, key).subjects(wanted.topic)
        case kind:
            message = f"FORMAT {kind.upper()} is not supported for sinks"
            raise NotSupported(message, hint="write JSON or AVRO")
    return key


def registered(wanted: Wanted, schema: Schema) -> Ids | None:
    """Register the schemas of a new sink, if it has any, and return what they are called."""
    if wanted.format.kind != "avro":
        return None
    schemas = _schemas(wanted, schema, key_of(wanted, schema))
    return schemas.registered(_registry(wanted), wanted.topic)


def encoder_of(wanted: Wanted, schema: Schema) -> Encoder:
    """Return the encoder of the changes of a relation of this schema."""
    key = key_of(wanted, schema)
    written = _format(wanted, schema, key)
    if wanted.envelope == "materialize":
        return Cdcv2Encoder(
            AvroWording(written) if isinstance(written, AvroFormat) else JsonWording(written),
            wanted.begins,
        )
    if wanted.envelope == "debezium":
        return DebeziumEncoder(written, key)
    if wanted.contents is not None:
        return ShadowEncoder(written, key, wanted.contents)
    return UpsertEncoder(written, key)


def _column(schema: Schema, name: str) -> int:
    if name not in schema.names:
        message = f'column "{name}" of KEY does not exist'
        raise UndefinedName(message, hint=f"there are {', '.join(schema.names)}")
    return schema.names.index(name)


def _has_json(kind: t.Type) -> bool:
    match kind:
        case t.Array():
            return _has_json(kind.element)
        case t.Record():
            return any(_has_json(inside) for _, inside in kind.fields)
    return kind == t.JSON


def _format(wanted: Wanted, schema: Schema, key: tuple[int, ...]) -> JsonFormat | AvroFormat:
    if wanted.format.kind == "json":
        return JsonFormat(schema.columns, key)
    schemas, registry = _schemas(wanted, schema, key), _registry(wanted)
    if wanted.schemas is None:
        return AvroFormat(schema.columns, key, schemas.registered(registry, wanted.topic))
    return AvroFormat.known(registry, wanted.topic, schemas, wanted.schemas)


def _schemas(wanted: Wanted, schema: Schema, key: tuple[int, ...]) -> Schemas:
    return Schemas(schema.columns, key, wanted.envelope)


def _registry(wanted: Wanted) -> Registry:
    if wanted.format.registry is None:
        message = "FORMAT AVRO of a sink needs a schema registry"
        hint = "write FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://…'"
        raise InvalidDefinition(message, hint=hint)
    return Registry.of(wanted.format.registry, wanted.options)
