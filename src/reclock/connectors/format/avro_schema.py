"""Avro schemas of writers: parsed, resolved, and refused where a payload could do harm.

``writer_of`` makes a ``Writer`` of a schema's JSON text and of the schemas it refers to. A
writer has two sides::

    wire    what fastavro reads payloads with: the schema without logical types, so that
            every value comes as it is on the wire, and none is out of Python's range
    root    the schema with them, for ``avro_values`` to give the values their meaning;
            ``names`` are the types that it refers to by name

Refused: types that contain themselves, because the depth of such a value is the payload's
choice; and arrays of items of no bytes, because a few bytes could say there are billions.

Tests: tests/connectors/format/test_avro.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import fastavro
from fastavro.schema import SchemaParseException

from reclock.connectors.format.decoder import Fault, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Node = Any
    """A type of a schema: a name, a mapping, or a list, which is a union."""

_SIZES: Final = {"null": 0, "float": 4, "double": 8}


@dataclass(frozen=True, slots=True, eq=False)
class Writer:
    """A schema that payloads were written with."""

    wire: Node
    root: Node
    names: Mapping[str, Node]

    def resolve(self, node: Node) -> Node:
        """Return the definition of a type that may be given by its name."""
        return self.names.get(node, node) if isinstance(node, str) else node


def writer_of(text: str, references: Sequence[str] = ()) -> Writer:
    """Return the writer of a schema, whose ``references`` come before those that use them.

    >>> writer_of('{"type": "long", "logicalType": "timestamp-millis"}').wire
    {'type': 'long'}
    >>> writer_of('{"type": "array", "items": "null"}')
    Traceback (most recent call last):
    reclock.connectors.format.decoder.Fault: an Avro array of items without bytes is not supported
    """
    names: dict[str, Node] = {}
    bare: dict[str, Node] = {}
    root: Node = None
    wire: Node = None
    try:
        for part in (*references, text):
            raw = json.loads(part)
            root = fastavro.parse_schema(raw, named_schemas=names)
            wire = fastavro.parse_schema(_stripped(raw), named_schemas=bare)
    except (ValueError, SchemaParseException, KeyError, TypeError, RecursionError) as error:
        message = f"not an Avro schema: {shown(error)}"
        raise Fault(message) from error
    writer = Writer(wire, root, names)
    _least_size(writer, root, ())
    return writer


def _stripped(node: Node) -> Node:
    """Return a schema, as written, without logical types."""
    if isinstance(node, list):
        return [_stripped(branch) for branch in node]
    if not isinstance(node, dict):
        return node
    kept = {name: value for name, value in node.items() if name != "logicalType"}
    for name in ("type", "items", "values"):
        if name in kept:
            kept[name] = _stripped(kept[name])
    if isinstance(kept.get("fields"), list):
        kept["fields"] = [_stripped(field) for field in kept["fields"]]
    return kept


def _least_size(writer: Writer, node: Node, within: tuple[str, ...]) -> int:
    """Return how many bytes a value has at least; refuse what could do harm."""
    definition = writer.resolve(node)
    if isinstance(definition, list):
        return 1 + min((_least_size(writer, branch, within) for branch in definition), default=0)
    kind = kind_of(definition)
    if kind == "record":
        name = definition["name"]
        if name in within:
            message = f'the Avro type "{shown(name)}" contains itself, which is not supported'
            raise Fault(message)
        parts = [_least_size(writer, f["type"], (*within, name)) for f in definition["fields"]]
        return sum(parts)
    if kind == "array" and _least_size(writer, definition["items"], within) == 0:
        message = "an Avro array of items without bytes is not supported"
        raise Fault(message)
    if kind == "map":
        _least_size(writer, definition["values"], within)
    if kind == "fixed":
        return int(definition["size"])
    return _SIZES.get(kind, 1)


def kind_of(definition: Node) -> str:
    """Return what sort of type it is, such as ``long`` or ``record``; a union is ``union``.

    >>> kind_of("long"), kind_of({"type": "string", "logicalType": "uuid"})
    ('long', 'string')
    """
    if isinstance(definition, list):
        return "union"
    return definition if isinstance(definition, str) else kind_of(definition["type"])
