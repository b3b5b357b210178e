"""Avro values as JSON, for columns of type json.

Records and maps are objects, unions are their values, decimals are numbers with all their
digits, bytes are base64, dates and times are text as ``literal`` reads it; NaN and the
infinities, which JSON has not, are faults.

Tests: tests/connectors/format/test_avro.py.
"""

from __future__ import annotations

import math
from base64 import b64encode
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from reclock.connectors.format import avro_meaning as meaning
from reclock.connectors.format.avro_schema import kind_of
from reclock.connectors.format.canonical import Number, parse
from reclock.connectors.format.decoder import Fault, in_field

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.connectors.format.avro_schema import Node, Writer

    Plain = Callable[[Any], Any]

_PYTHON: Final[dict[str, type]] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "bytes": bytes,
    "fixed": bytes,
    "string": str,
    "enum": str,
    "array": list,
    "map": dict,
    "record": dict,
}
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - text without a zone


def jsonable(writer: Writer, node: Node) -> Plain:
    """Return how a value becomes what ``canonical`` writes."""
    definition = writer.resolve(node)
    if isinstance(definition, list):
        return _union(writer, definition)
    kind = kind_of(definition)
    make = _MAKERS.get(kind)
    if make is not None:
        return make(writer, definition)
    return parse if meaning.meaning_of(definition) == meaning.JSON else _same


def _same(value: Any) -> Any:
    return value


def _map(writer: Writer, definition: Node) -> Plain:
    each = jsonable(writer, definition["values"])
    return lambda value: {name: each(member) for name, member in value.items()}


def _array(writer: Writer, definition: Node) -> Plain:
    each = jsonable(writer, definition["items"])
    return lambda value: [each(element) for element in value]


def _record(writer: Writer, definition: Node) -> Plain:
    members = [(f["name"], jsonable(writer, f["type"])) for f in definition["fields"]]

    def record(value: Any) -> dict[str, Any]:
        made = {}
        for name, plain in members:
            try:
                made[name] = plain(value[name])
            except Fault as fault:
                raise in_field(name, fault) from fault
        return made

    return record


def _union(writer: Writer, branches: list[Node]) -> Plain:
    """Return how the value of a union is written: by the first branch that it can be of."""
    made: list[tuple[type | None, set[str] | None, Plain]] = []
    for branch in branches:
        definition = writer.resolve(branch)
        kind = kind_of(definition)
        names = {f["name"] for f in definition["fields"]} if kind == "record" else None
        made.append((_PYTHON.get(kind), names, jsonable(writer, definition)))

    def union(value: Any) -> Any:
        for python, names, plain in made:
            fields = set(value) if isinstance(value, dict) else None
            if type(value) is python and names in (None, fields):
                return plain(value)
        return value

    return union


def _integer(_: Writer, definition: Node) -> Plain:
    known = meaning.meaning_of(definition)
    if known in meaning.DATES:
        return lambda value: _moment(value * 86_400_000_000).partition("T")[0]
    if known in meaning.UNITS:
        unit = meaning.UNITS[known]
        return lambda value: _moment(meaning.micros(value, unit))
    return Number


def _moment(micros: int) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=micros)).isoformat()
    except OverflowError as error:
        message = f"{micros} microseconds since 1970 are out of range"
        raise Fault(message) from error


def _float(*_: object) -> Plain:
    return _finite


def _finite(value: float) -> Number:
    if not math.isfinite(value):
        message = f"{value} is not JSON"
        raise Fault(message)
    return Number(value)


def _bytes(_: Writer, definition: Node) -> Plain:
    if meaning.meaning_of(definition) == meaning.DECIMAL:
        return lambda value: Number(meaning.decimal_text(value, definition))
    return lambda value: b64encode(value).decode()


_MAKERS: Final[dict[str, Callable[[Writer, Node], Plain]]] = {
    "record": _record,
    "map": _map,
    "array": _array,
    "int": _integer,
    "long": _integer,
    "float": _float,
    "double": _float,
    "bytes": _bytes,
    "fixed": _bytes,
}
