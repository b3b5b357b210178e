"""FORMAT AVRO for sinks: rows as records, by schemas that a registry knows.

A payload begins with a zero and the id of its schema (``connectors.format.registry``). The
schemas are registered once, when the sink is created, in the subjects that Confluent's clients
look in: ``<topic>-key`` and ``<topic>-value``. ::

    key       record ``key`` of the key columns
    row       record ``row`` of all columns
    change    record ``envelope``: before and after, each null or a ``row``
    CDCv2     record ``statement``: an array of updates of ``row``, or progress (``cdcv2``)

The ids are kept with the sink (``Ids``), because the bytes of a key have its schema's id in them: a
restart sees that the registry has the schemas by these ids, and goes on with them or not at all.
A schema that it has lost is registered again. A registry that finds a new schema not compatible
with the one before says so, and the sink is not made.

Tests: tests/sinks/encode/test_avro_format.py.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa

from reclock.errors import InvalidDefinition
from reclock.sinks.encode.avro_binary import binary, together
from reclock.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from reclock.connectors.format.registry import Registry
    from reclock.sinks.encode.encoder import Which
    from reclock.sql.schema import Column
    from reclock.sql.types import Type

    Node = Any
    """A type of a schema, as JSON."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIMPLE: Final[dict[Type, Node]] = {
    t.BOOLEAN: "boolean",
    t.SMALLINT: "int",
    t.INTEGER: "int",
    t.BIGINT: "long",
    t.REAL: "float",
    t.DOUBLE: "double",
    t.TEXT: "string",
    t.BYTEA: "bytes",
    t.DATE: {"type": "int", "logicalType": "date"},
    t.TIMESTAMP: {"type": "long", "logicalType": "local-timestamp-micros"},
    t.TIMESTAMPTZ: {"type": "long", "logicalType": "timestamp-micros"},
    t.INTERVAL: "string",
    t.JSON: {"type": "string", "connect.name": "io.debezium.data.Json"},
}


class Ids(NamedTuple):
    """What a registry calls the schemas of a topic; 0 for keys that there are none of."""

    key: int
    value: int


@dataclass(frozen=True, slots=True)
class AvroFormat:
    """Records of ``columns``, keys of those at ``key``, by the ids of their schemas."""

    columns: tuple[Column, ...]
    key: tuple[int, ...]
    ids: Ids

    @classmethod
    def known(cls, registry: Registry, topic: str, schemas: Schemas, ids: Ids) -> Self:
        """Return the format of a topic whose schemas the registry must call ``ids``."""
        for number, (subject, schema) in zip(reversed(ids), schemas.subjects(topic), strict=False):
            found = registry.find(subject, schema)
            found = registry.register(subject, schema) if found is None else found
            if found != number:
                message = f"the schema registry at {registry.url} is not the one it was"
                detail = f'it calls the schema of "{subject}" {found}; it was {number} so far'
                hint = (
                    "give the sink the registry it had, or drop it and create it with a new topic"
                )
                raise InvalidDefinition(message, detail=detail, hint=hint)
        return cls(schemas.columns, schemas.key, ids)

    def keys(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the key of each row, of its key columns."""
        return _records(_header(self.ids.key), [self.columns[at] for at in self.key], columns)

    def rows(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return each row as a value."""
        return _records(_header(self.ids.value), self.columns, columns)

    @property
    def header(self) -> bytes:
        """What every value begins with."""
        return _header(self.ids.value)

    def bare(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return each row as a part of a value."""
        return _records(b"", self.columns, columns)

    def changes(
        self, before: Sequence[pa.Array], after: Sequence[pa.Array], which: Which
    ) -> pa.Array:
        """Return each pair of rows, of which one may be missing, as a value."""
        old, new = self._branch(before, which.before), self._branch(after, which.after)
        return together([_header(self.ids.value), old, new], len(which.before))

    def _branch(self, columns: Sequence[pa.Array], there: NDArray[np.bool_]) -> pa.Array:
        """Return rows as branches of a union; null for those that are not there."""
        count = len(there)
        missing = together([b"\0"], count)
        rows = np.flatnonzero(there)
        if not len(rows):
            return missing
        if len(rows) == count:
            return _records(b"\2", self.columns, columns)
        some = pa.array(rows)
        written = _records(b"\2", self.columns, [column.take(some) for column in columns])
        places = np.where(there, np.cumsum(there) - 1 + count, np.arange(count))
        return pa.concat_arrays([missing, written]).take(pa.array(places))


@dataclass(frozen=True, slots=True)
class Schemas:
    """The schemas of a topic, whose values are those of an ``envelope``."""

    columns: tuple[Column, ...]
    key: tuple[int, ...]
    envelope: str

    def subjects(self, topic: str) -> list[tuple[str, str]]:
        """Return where each schema belongs, and its text: that of values, of keys if any."""
        columns = self.columns
        match self.envelope:
            case "debezium":
                value = change_schema(columns)
            case "materialize":
                value = statement_schema(columns)
            case _:
                value = record_schema("row", columns)
        found = [(f"{topic}-value", json.dumps(value))]
        if self.key:
            keys = record_schema("key", [columns[at] for at in self.key])
            found.append((f"{topic}-key", json.dumps(keys)))
        return found

    def registered(self, registry: Registry, topic: str) -> Ids:
        """Register them, unless the registry has them, and return what it calls them."""
        value, *key = (registry.register(*given) for given in self.subjects(topic))
        return Ids(key[0] if key else 0, value)


def record_schema(name: str, columns: Sequence[Column]) -> Node:
    """Return the schema of records with these columns."""
    fields: list[Node] = []
    for column in columns:
        if column.name in (field["name"] for field in fields):
            message = f'two columns have the name "{column.name}"'
            raise InvalidDefinition(message, hint="give one of them another name with AS")
        fields.append(_field(column.name, column.type, f"{name}_", nullable=column.nullable))
    return {"type": "record", "name": name, "fields": fields}


def change_schema(columns: Sequence[Column]) -> Node:
    """Return the schema of a row before and a row after."""
    row = record_schema("row", columns)
    before = {"name": "before", "type": ["null", row], "default": None}
    after = {"name": "after", "type": ["null", "row"], "default": None}
    return {"type": "record", "name": "envelope", "fields": [before, after]}


def statement_schema(columns: Sequence[Column]) -> Node:
    """Return the schema of a statement of CDCv2."""
    numbers = {"type": "array", "items": "long"}
    update = _record("update", data=record_schema("row", columns), time="long", diff="long")
    count = _record("count", time="long", count="long")
    counts = {"type": "array", "items": count}
    progress = _record("progress", lower=numbers, upper=numbers, counts=counts)
    branches = {"array": {"type": "array", "items": update}, "progress": progress}
    return _record("statement", **{name: ["null", made] for name, made in branches.items()})


def _record(name: str, **fields: Node) -> Node:
    made = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "fields": made}


def _field(name: str, kind: Type, prefix: str, *, nullable: bool) -> Node:
    if not _NAME.fullmatch(name):
        message = f'column "{name}" cannot have this name in Avro'
        hint = "give it a name of letters, digits and underscores with AS"
        raise InvalidDefinition(message, hint=hint)
    made = _schema(kind, f"{prefix}{name}")
    return (
        {"name": name, "type": ["null", made], "default": None}
        if nullable
        else {
            "name": name,
            "type": made,
        }
    )


def _schema(kind: Type, name: str) -> Node:
    """Return the schema of a type; ``name`` is for the records in it."""
    match kind:
        case t.Numeric():
            digits = {"precision": kind.precision, "scale": kind.scale}
            return {"type": "bytes", "logicalType": "decimal", **digits}
        case t.Array():
            return {"type": "array", "items": ["null", _schema(kind.element, f"{name}_element")]}
        case t.Record():
            fields = [_field(n, inside, f"{name}_", nullable=True) for n, inside in kind.fields]
            return {"type": "record", "name": name, "fields": fields}
    if kind not in _SIMPLE:
        message = f"a column of type {kind} cannot be written as Avro"
        raise InvalidDefinition(message, hint="give it a type with a cast")
    return _SIMPLE[kind]


def _records(head: bytes, described: Sequence[Column], columns: Sequence[pa.Array]) -> pa.Array:
    parts = [
        binary(a, c.type, nullable=c.nullable) for a, c in zip(columns, described, strict=True)
    ]
    return together([head, *parts], len(columns[0]) if columns else 0)


def _header(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big")
