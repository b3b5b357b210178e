"""Avro values → values of SQL types: by the writer's type, and exactly.

``converter`` is made once for a writer's type and a column's type, and refuses pairs that
make no sense with a ``Fault``. NULL is not its business: it is a branch of a union. ::

    boolean            boolean
    integers           int, long, whatever their logical type; in range
    numeric            int, long, decimal
    floats             float, double, int, long
    text               string, enum, uuid
    bytea              bytes, fixed
    date               int: days, as the logical type date
    timestamp[tz]      long: timestamp-millis, -micros, -nanos and the local ones;
                       milliseconds if it has no logical type
    arrays             array
    records            record, by the names of fields; what is not there is NULL
    json               everything (``avro_json``)

Numbers, dates, times and intervals may also be strings, read as ``literal`` does. Types that
Kafka Connect and Debezium name in ``connect.name`` are understood where Avro has no logical
type for them, because a number of microseconds looks like one of milliseconds.

Tests: tests/connectors/format/test_avro.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from reclock.connectors.format import literal
from reclock.connectors.format.avro_json import jsonable
from reclock.connectors.format.avro_meaning import (
    DATES,
    DECIMAL,
    UNITS,
    decimal_text,
    meaning_of,
    micros,
)
from reclock.connectors.format.avro_schema import kind_of
from reclock.connectors.format.canonical import canonical
from reclock.connectors.format.decoder import Fault, in_field
from reclock.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from reclock.connectors.format.avro_schema import Node, Writer
    from reclock.sql.types import Type

    Convert = Callable[[Any], Any]

_INTEGERS: Final = frozenset({"int", "long"})
_FLOATS: Final = frozenset({"float", "double"})
_BYTES: Final = frozenset({"bytes", "fixed"})
_TEXTS: Final = frozenset({"string", "enum"})
_MILLIS: Final = 1_000_000


def converter(writer: Writer, node: Node, kind: Type) -> Convert:
    """Return how a value of the writer's type ``node``, not null, becomes one of ``kind``."""
    definition = writer.resolve(node)
    if kind == t.JSON:
        plain = jsonable(writer, definition)
        return lambda value: canonical(plain(value))
    if isinstance(definition, list):
        return _union(writer, definition, kind)
    written = kind_of(definition)
    made: Convert | None = None
    if written == "null":
        return _same
    if isinstance(kind, t.Record) and written == "record":
        made = _record(writer, definition, kind)
    elif isinstance(kind, t.Array) and written == "array":
        made = _array(converter(writer, definition["items"], kind.element))
    elif isinstance(kind, t.Simple | t.Numeric):
        made = _scalar(written, definition, kind)
    if made is None:
        meaning = meaning_of(definition)
        message = f"Avro {written}{f' ({meaning})' * bool(meaning)} cannot be read as {kind}"
        raise Fault(message)
    return made


def record_reader(
    writer: Writer, definition: Node, members: Iterable[tuple[str, Type]]
) -> Callable[[Mapping[str, Any]], list[Any]]:
    """Return how a record becomes the list of its ``members``; what it has not is None."""
    written = {field["name"]: field["type"] for field in definition["fields"]}
    plan = [(name, _member(writer, written, name, kind)) for name, kind in members]

    def read(value: Mapping[str, Any]) -> list[Any]:
        row: list[Any] = []
        for name, convert in plan:
            member = None if convert is None else value[name]
            if convert is not None and member is not None:
                try:
                    member = convert(member)
                except Fault as fault:
                    raise in_field(name, fault) from fault
            row.append(member)
        return row

    return read


def _member(writer: Writer, written: Mapping[str, Node], name: str, kind: Type) -> Convert | None:
    """Return how a field is converted; None if the writer has no such field."""
    if name not in written:
        return None
    try:
        return converter(writer, written[name], kind)
    except Fault as fault:
        raise in_field(name, fault) from fault


def _record(writer: Writer, definition: Node, kind: t.Record) -> Convert:
    read = record_reader(writer, definition, kind.fields)
    names = [name for name, _ in kind.fields]
    return lambda value: dict(zip(names, read(value), strict=True))


def _array(convert: Convert) -> Convert:
    return lambda values: [None if value is None else convert(value) for value in values]


def _same(value: Any) -> Any:
    return value


def _union(writer: Writer, branches: list[Node], kind: Type) -> Convert:
    """Return the converter of the one branch other than null; int and long are one."""
    definitions = [writer.resolve(branch) for branch in branches]
    others = [d for d in definitions if kind_of(d) != "null"]
    if not others:
        return _same
    sorts = {(kind_of(d) in _INTEGERS, meaning_of(d)) for d in others}
    if len(others) > 1 and (len(sorts) > 1 or kind_of(others[0]) not in _INTEGERS):
        names = ", ".join(kind_of(d) for d in definitions)
        message = f"an Avro union of {names} cannot be read as {kind}, only as json"
        raise Fault(message)
    return converter(writer, others[0], kind)


def _scalar(written: str, definition: Node, kind: t.Simple | t.Numeric) -> Convert | None:
    meaning = meaning_of(definition)
    if written in _TEXTS:
        return None if kind in {t.BOOLEAN, t.BYTEA} else literal.reader_of(kind)
    if written in _BYTES:
        return _bytes(definition, meaning, kind)
    if written in _INTEGERS:
        return _integer(meaning, kind)
    if written in _FLOATS and kind in t.FLOATS:
        return lambda value: _float(value, kind)
    return bool if written == "boolean" and kind == t.BOOLEAN else None


def _integer(meaning: str, kind: Type) -> Convert | None:
    if kind in literal.RANGES:
        return lambda value: literal.in_range(value, kind)
    if isinstance(kind, t.Numeric):
        return lambda value: literal.numeric(str(value), kind)
    if kind in t.FLOATS:
        return lambda value: _float(float(value), kind)
    if kind == t.DATE and (not meaning or meaning in DATES):
        return _day
    if kind in {t.TIMESTAMP, t.TIMESTAMPTZ} and (not meaning or meaning in UNITS):
        unit = UNITS.get(meaning, _MILLIS)
        return lambda value: literal.in_time(micros(value, unit), value, kind)
    return None


def _bytes(definition: Node, meaning: str, kind: Type) -> Convert | None:
    if kind == t.BYTEA:
        return _same
    if isinstance(kind, t.Numeric) and meaning == DECIMAL:
        return lambda value: literal.numeric(decimal_text(value, definition), kind)
    return None


def _day(value: int) -> int:
    if not literal.FIRST_DAY <= value <= literal.LAST_DAY:
        raise literal.out_of_range(value, t.DATE)
    return value


def _float(value: float, kind: Type) -> float:
    return literal.fitting(value, value, kind) if math.isfinite(value) else value
