"""Which encoder a statement asks for: FORMAT, ENVELOPE and KEY.

=================  ========================  ===========================================
envelope           key                       formats
=================  ========================  ===========================================
``UPSERT``         needed                    JSON, AVRO
``DEBEZIUM``       if there is one           JSON, AVRO
``MATERIALIZE``    none                      JSON
=================  ========================  ===========================================

Anything else is refused here, when the sink is made. AVRO needs a registry, in which the schemas
are registered here; that may fail as a registry does (``connectors.format.registry``).

Tests: tests/sinks/encode/test_choose_encoder.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reclock.connectors.format.registry import Registry
from reclock.errors import InvalidDefinition, NotSupported, UndefinedName
from reclock.sinks.encode.avro_format import AvroFormat
from reclock.sinks.encode.cdcv2 import Cdcv2Encoder
from reclock.sinks.encode.debezium import DebeziumEncoder
from reclock.sinks.encode.json_format import JsonFormat
from reclock.sinks.encode.shadow import ShadowEncoder
from reclock.sinks.encode.upsert import UpsertEncoder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.sinks.encode.encoder import Encoder
    from reclock.sinks.encode.shadow import Contents
    from reclock.sql.schema import Schema
    from reclock.sql.statement.source import Format


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a statement says about the messages of a sink.

    ``contents`` is needed for a key that is NOT ENFORCED: what its rows were. Without it the key
    is taken to be unique.
    """

    topic: str
    format: Format
    envelope: str
    key: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    contents: Contents | None = None


def encoder_of(wanted: Wanted, schema: Schema) -> Encoder:
    """Return the encoder of the changes of a relation of this schema."""
    envelope = wanted.envelope.lower()
    key = tuple(_column(schema, name) for name in wanted.key)
    if envelope == "materialize":
        if key:
            message = "ENVELOPE MATERIALIZE has no KEY"
            raise InvalidDefinition(message, hint="leave out KEY, or write ENVELOPE UPSERT")
        if wanted.format.kind.lower() != "json":
            message = "ENVELOPE MATERIALIZE is supported with FORMAT JSON alone"
            raise NotSupported(message, hint="write FORMAT JSON")
        return Cdcv2Encoder(JsonFormat(schema.columns))
    if envelope not in ("upsert", "debezium"):
        message = f"ENVELOPE {wanted.envelope.upper()} is not supported for sinks"
        raise NotSupported(message, hint="write UPSERT, DEBEZIUM or MATERIALIZE")
    if envelope == "upsert" and not key:
        message = "ENVELOPE UPSERT needs a KEY"
        raise InvalidDefinition(message, hint="write KEY (column, …), or ENVELOPE DEBEZIUM")
    written = _format(wanted, schema, key, changes=envelope == "debezium")
    if envelope == "debezium":
        return DebeziumEncoder(written, key)
    if wanted.contents is not None:
        return ShadowEncoder(written, key, wanted.contents)
    return UpsertEncoder(written, key)


def _column(schema: Schema, name: str) -> int:
    places = [at for at, column in enumerate(schema.columns) if column.name == name]
    if not places:
        message = f'column "{name}" of KEY does not exist'
        raise UndefinedName(message, hint=f"there are {', '.join(schema.names)}")
    return places[0]


def _format(
    wanted: Wanted, schema: Schema, key: tuple[int, ...], *, changes: bool
) -> JsonFormat | AvroFormat:
    kind = wanted.format.kind.lower()
    if kind == "json":
        return JsonFormat(schema.columns, key)
    if kind != "avro":
        message = f"FORMAT {wanted.format.kind.upper()} is not supported for sinks"
        raise NotSupported(message, hint="write JSON or AVRO")
    if wanted.format.registry is None:
        message = "FORMAT AVRO of a sink needs a schema registry"
        hint = "write FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://…'"
        raise InvalidDefinition(message, hint=hint)
    registry = Registry.of(wanted.format.registry, wanted.options)
    return AvroFormat.registered(registry, wanted.topic, schema.columns, key, changes=changes)
