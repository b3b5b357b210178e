"""FORMAT AVRO: payloads of one schema, or of those that a registry knows.

Payloads of an inline schema are Avro's binary encoding and nothing else. Those of a registry
begin with the id of their schema; every writer's schema is matched with the columns by the
names of its fields, so that a topic may hold messages of many versions. A field that a
writer does not have is NULL. A schema that is no record fills a single column.

Cost: a record at a time, by fastavro and ``avro_values``; a schema is looked at once.

Tests: tests/connectors/format/test_avro.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import fastavro

from reclock.connectors.format.avro_schema import kind_of, writer_of
from reclock.connectors.format.avro_values import converter, record_reader
from reclock.connectors.format.batch import decode_batch
from reclock.connectors.format.decoder import Fault, null_in, shown
from reclock.connectors.format.registry import HEADER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from reclock.connectors.format.avro_schema import Writer
    from reclock.connectors.format.decoder import Decoded, Field
    from reclock.connectors.format.registry import Registry

    Read = Callable[[bytes], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class AvroDecoder:
    """A payload is a value of ``schema``, the JSON text of a schema."""

    fields: tuple[Field, ...]
    schema: str

    def decode(self, data: pa.Array) -> Decoded:
        """Return the columns and faults of Avro values."""
        return decode_batch(data, self.fields, [], self.reader())

    def reader(self) -> Read:
        """Return how a payload is read; ``Fault`` if the schema does not suit the columns."""
        return _reader_of_schema(self.schema, self.fields)


@dataclass(frozen=True, slots=True)
class RegistryDecoder:
    """A payload names its schema in ``registry`` and is a value of that."""

    fields: tuple[Field, ...]
    registry: Registry

    def decode(self, data: pa.Array) -> Decoded:
        """Return the columns and faults; ``SourceUnavailable`` if the registry is."""
        readers: dict[int, Read | str] = {}

        def read(payload: bytes) -> Sequence[Any]:
            number = schema_id(payload)
            if number not in readers:
                readers[number] = self._reader(number)
            reader = readers[number]
            if isinstance(reader, str):
                raise Fault(reader)
            return reader(payload[HEADER:])

        return decode_batch(data, self.fields, [], read)

    def _reader(self, number: int) -> Read | str:
        """Return how payloads of a schema are read, or why they cannot be."""
        try:
            return _reader_of_id(self.registry, number, self.fields)
        except Fault as fault:
            return str(fault)


def schema_id(payload: bytes) -> int:
    r"""Return the id of the schema that a message names.

    >>> schema_id(b"\0\0\0\1\2...")
    258
    """
    if len(payload) < HEADER or payload[0] != 0:
        message = f"no schema id: it begins with {payload[:HEADER].hex(' ') or 'nothing'}"
        raise Fault(message)
    return int.from_bytes(payload[1:HEADER], "big")


@lru_cache(maxsize=256)
def _reader_of_schema(schema: str, fields: tuple[Field, ...]) -> Read:
    return _reader(writer_of(schema), fields)


@lru_cache(maxsize=1024)
def _reader_of_id(registry: Registry, number: int, fields: tuple[Field, ...]) -> Read:
    return _reader(registry.writer(number), fields)


def _reader(writer: Writer, fields: tuple[Field, ...]) -> Read:
    """Return how payloads of ``writer`` become the values of ``fields``."""
    row_of = _row_reader(writer, fields)
    wire = writer.wire

    def read(payload: bytes) -> Sequence[Any]:
        source = BytesIO(payload)
        try:
            value = fastavro.schemaless_reader(source, wire, None)
        except Exception as error:  # it has no class for what is not Avro
            message = f"not of its Avro schema: {shown(error) or type(error).__name__}"
            raise Fault(message) from error
        left = len(payload) - source.tell()
        if left:
            message = f"not of its Avro schema: {left} bytes are left"
            raise Fault(message)
        row = row_of(value)
        for field, member in zip(fields, row, strict=True):
            if member is None and not field.nullable:
                raise null_in(field.name)
        return row

    return read


def field_names(schema: str) -> set[str] | None:
    """Return the names of the fields of a record's schema; None if it is no record's."""
    root = writer_of(schema).root
    return {field["name"] for field in root["fields"]} if kind_of(root) == "record" else None


def _row_reader(writer: Writer, fields: tuple[Field, ...]) -> Callable[[Any], list[Any]]:
    root = writer.resolve(writer.root)
    if kind_of(root) == "record":
        return record_reader(writer, root, [(f.name, f.type) for f in fields])
    if len(fields) != 1:
        message = f"an Avro schema that is no record cannot fill {len(fields)} columns"
        raise Fault(message)
    convert = converter(writer, root, fields[0].type)
    return lambda value: [None if value is None else convert(value)]
