"""Values as bytes: PostgreSQL's binary formats.

Numbers are in network byte order; times are microseconds, and dates days, since 2000-01-01; a
numeric is digits of base 10,000; arrays and records say the OIDs of what is in them.

``write`` takes a value as Arrow gives it, ``read`` gives one as Python has it. Bytes that are no
value of the type are an error (22P03, of text 22021), never anything else.

Tests: tests/server/codec/test_values.py.
"""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from reclock.errors import InvalidValue, ProtocolViolation
from reclock.interval import Interval
from reclock.rows.copy_text import utf8
from reclock.server.codec.field import INT32, UINT32, VALUE, Fields
from reclock.server.codec.oid import oid_of
from reclock.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reclock.sql.types import Type

_DAY_ZERO: Final = date(2000, 1, 1)
_ZERO: Final = datetime(2000, 1, 1)  # noqa: DTZ001 - of timestamps without a zone
_MICROSECOND: Final = timedelta(microseconds=1)
_NEGATIVE: Final = 0x4000
_NAN: Final = 0xC000
_WEIGHT: Final = 250
"""Four digits each: more than any number here has."""
_STRUCTS: Final[dict[Type, str]] = {
    t.BOOLEAN: "!?",
    t.SMALLINT: "!h",
    t.INTEGER: "!i",
    t.BIGINT: "!q",
    t.REAL: "!f",
    t.DOUBLE: "!d",
    t.OID: "!I",
}


def write(value: Any, kind: Type) -> bytes:
    """Return a value, not NULL, as bytes.

    >>> write(1, t.INTEGER).hex(), write(Decimal("-1.5"), t.Numeric(3, 1)).hex()
    ('00000001', '000200004000000100011388')
    """
    match kind:
        case t.Array():
            return _write_array(value, kind)
        case t.Record(fields):
            parts = [_write_field(value[name], inside) for name, inside in fields]
            return INT32.write(len(parts)) + b"".join(parts)
        case t.Numeric():
            return _write_numeric(value)
    layout = _STRUCTS.get(kind)
    return _WRITERS[kind](value) if layout is None else struct.pack(layout, value)


def read(data: bytes, kind: Type) -> Any:
    """Return the value that bytes mean."""
    try:
        fields = Fields(data)
        value = _read(fields, kind)
        fields.end()
    except (ProtocolViolation, OverflowError, ValueError) as cause:
        message = f"incorrect binary data format for type {kind}"
        raise InvalidValue(message, detail=str(cause), code="22P03") from cause
    return value


def _read(fields: Fields, kind: Type) -> Any:
    match kind:
        case t.Array(element):
            return _read_array(fields, element)
        case t.Numeric():
            return _read_numeric(fields)
    layout = _STRUCTS.get(kind)
    if layout is not None:
        return struct.unpack(layout, fields.take(struct.calcsize(layout)))[0]
    return _READERS[kind](fields)


# Numerics.


def _write_numeric(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return struct.pack("!hhHH", 0, 0, _NAN, 0)
    scale = max(-exponent, 0)
    whole = "".join(map(str, digits)) + "0" * max(exponent, 0)
    whole = whole.rjust(scale + 1, "0")
    before, after = whole[: len(whole) - scale], whole[len(whole) - scale :]
    before = before.rjust(-(-len(before) // 4) * 4, "0")
    after = after.ljust(-(-len(after) // 4) * 4, "0")
    groups = [int((before + after)[i : i + 4]) for i in range(0, len(before + after), 4)]
    weight = len(before) // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    flag = _NEGATIVE if sign and groups else 0
    head = struct.pack("!hhHH", len(groups), weight if groups else 0, flag, scale)
    return head + struct.pack(f"!{len(groups)}h", *groups)


def _read_numeric(fields: Fields) -> Decimal:
    count, weight, sign, scale = struct.unpack("!HhHH", fields.take(8))
    if sign == _NAN:
        return Decimal("NaN")
    if sign not in {0, _NEGATIVE}:
        message = "only finite numbers and NaN are numerics here"
        raise ValueError(message)
    groups = struct.unpack(f"!{count}H", fields.take(2 * count))
    if weight > _WEIGHT:
        message = "the number is out of range: it has too many digits"
        raise InvalidValue(message, code="22003", hint="numeric has 38 digits")
    if any(group > 9_999 for group in groups):
        message = "a digit of a numeric is more than 9999"
        raise ValueError(message)
    digits = tuple(map(int, "".join(f"{group:04}" for group in groups))) or (0,)
    value = Decimal((int(sign == _NEGATIVE), digits, 4 * (weight - count + 1) if groups else 0))
    _, shown, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if -exponent > scale:  # zeros after the last digit that counts
        drop = -exponent - scale
        value = Decimal((int(sign == _NEGATIVE), shown[: len(shown) - drop] or (0,), -scale))
    elif -exponent < scale:
        value = Decimal((int(sign == _NEGATIVE), shown + (0,) * (scale + exponent), -scale))
    return value


# Times.


def _write_timestamp(value: datetime) -> bytes:
    plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return struct.pack("!q", (plain - _ZERO) // _MICROSECOND)


def _read_timestamp(fields: Fields) -> datetime:
    (us,) = struct.unpack("!q", fields.take(8))
    return _ZERO + timedelta(microseconds=us)


def _write_interval(value: Mapping[str, int]) -> bytes:
    return struct.pack("!qii", value["micros"], value["days"], value["months"])


def _read_interval(fields: Fields) -> Interval:
    micros, days, months = struct.unpack("!qii", fields.take(16))
    return Interval(months, days, micros)


# Arrays and records.


def _write_array(value: Any, kind: t.Array) -> bytes:
    sizes, element, level = [], kind.element, [value]
    while True:
        lengths = {len(v) for v in level if v is not None}
        if len(lengths) != 1 or None in level:
            message = "multidimensional arrays must have sub-arrays with matching dimensions"
            raise InvalidValue(message, code="2202E", hint="ask for it as text")
        sizes.append(lengths.pop())
        level = [inner for outer in level for inner in outer]
        if not isinstance(element, t.Array) or not level:
            break
        element = element.element
    while isinstance(element, t.Array):
        element = element.element
    if not level:
        return struct.pack("!iiI", 0, 0, oid_of(element))
    head = struct.pack("!iiI", len(sizes), int(None in level), oid_of(element))
    shape = b"".join(struct.pack("!ii", size, 1) for size in sizes)
    parts = (None if v is None else write(v, element) for v in level)
    return head + shape + b"".join(map(VALUE.write, parts))


def _read_array(fields: Fields, element: Type) -> tuple[Any, ...]:
    dimensions, _, _ = struct.unpack("!iiI", fields.take(12))
    if dimensions == 0:
        return ()
    if dimensions != 1:
        message = "parameters are arrays of one dimension"
        raise ValueError(message)
    size, _ = struct.unpack("!ii", fields.take(8))
    if not 0 <= size <= fields.left:
        message = "more elements than bytes"
        raise ValueError(message)
    found = []
    for _ in range(size):
        part = VALUE.read(fields)
        found.append(None if part is None else read(part, element))
    return tuple(found)


def _write_field(value: Any, kind: Type) -> bytes:
    return UINT32.write(oid_of(kind)) + VALUE.write(None if value is None else write(value, kind))


def _read_rest(fields: Fields) -> bytes:
    return fields.take(fields.left)


def _read_text(fields: Fields) -> str:
    return utf8(_read_rest(fields))


def _write_vector(value: str, element: Type) -> bytes:
    """Return numbers with blanks between them as an array of them."""
    return _write_array(tuple(map(int, value.split())), t.Array(element))


_WRITERS: Final[dict[Type, Callable[[Any], bytes]]] = {
    t.TEXT: str.encode,
    t.JSON: str.encode,
    t.UNKNOWN: str.encode,
    t.CHAR: str.encode,
    t.INT2VECTOR: lambda value: _write_vector(value, t.SMALLINT),
    t.OIDVECTOR: lambda value: _write_vector(value, t.OID),
    t.BYTEA: bytes,
    t.DATE: lambda value: struct.pack("!i", (value - _DAY_ZERO).days),
    t.TIMESTAMP: _write_timestamp,
    t.TIMESTAMPTZ: _write_timestamp,
    t.INTERVAL: _write_interval,
}
_READERS: Final[dict[Type, Callable[[Fields], Any]]] = {
    t.TEXT: _read_text,
    t.JSON: _read_text,
    t.UNKNOWN: _read_text,
    t.CHAR: _read_text,
    t.BYTEA: _read_rest,
    t.DATE: lambda fields: _DAY_ZERO + timedelta(days=INT32.read(fields)),
    t.TIMESTAMP: _read_timestamp,
    t.TIMESTAMPTZ: lambda fields: _read_timestamp(fields).replace(tzinfo=UTC),
    t.INTERVAL: _read_interval,
}
