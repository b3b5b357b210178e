"""The meaning of Avro's numbers and bytes: logical types, and the names of Kafka Connect.

``meaning_of`` a type is its logical type; where it has none, the name that Kafka Connect or
Debezium gave it in ``connect.name``, if that is one of those here; else nothing.

Tests: tests/connectors/format/test_avro.py.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import TYPE_CHECKING, Final

from reclock.connectors.format.decoder import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.connectors.format.avro_schema import Node

UNITS: Final[Mapping[str, int]] = {
    "timestamp-millis": 1_000_000,
    "timestamp-micros": 1_000,
    "timestamp-nanos": 1,
    "local-timestamp-millis": 1_000_000,
    "local-timestamp-micros": 1_000,
    "local-timestamp-nanos": 1,
    "org.apache.kafka.connect.data.Timestamp": 1_000_000,
    "io.debezium.time.Timestamp": 1_000_000,
    "io.debezium.time.MicroTimestamp": 1_000,
    "io.debezium.time.NanoTimestamp": 1,
}
"""Times since 1970-01-01, and the nanoseconds of their unit."""

DATES: Final = frozenset({"date", "org.apache.kafka.connect.data.Date", "io.debezium.time.Date"})
"""Days since 1970-01-01."""

DECIMAL: Final = "decimal"
JSON: Final = "io.debezium.data.Json"
"""Text that is JSON."""

_CONNECT: Final = frozenset(name for name in (*UNITS, *DATES, JSON) if "." in name)
_ALL_DIGITS: Final = Context(prec=200)
_MOST_BYTES: Final = 64


def meaning_of(definition: Node) -> str:
    """Return what values of a type stand for.

    >>> meaning_of({"type": "int", "logicalType": "date"}), meaning_of("int")
    ('date', '')
    """
    if not isinstance(definition, dict):
        return ""
    logical = definition.get("logicalType")
    if isinstance(logical, str):
        return logical
    name = definition.get("connect.name")
    return name if isinstance(name, str) and name in _CONNECT else ""


def micros(value: int, unit: int) -> int:
    """Return microseconds of ``value`` units of so many nanoseconds, rounded half up."""
    return (value * unit + 500) // 1000


def decimal_text(value: bytes, definition: Node) -> str:
    r"""Return the number that an Avro decimal writes.

    >>> decimal_text(b"\xff\x85", {"type": "bytes", "logicalType": "decimal", "scale": 2})
    '-1.23'
    """
    if len(value) > _MOST_BYTES:  # in no numeric's range
        message = f"a decimal of {len(value)} bytes is out of range"
        raise Fault(message)
    number = Decimal(int.from_bytes(value, "big", signed=True))
    return format(number.scaleb(-int(definition.get("scale", 0)), _ALL_DIGITS), "f")
