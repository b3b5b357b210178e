"""JSON records one by one: the definition of what FORMAT JSON accepts.

A record is one JSON object. Its members go to the columns of the same name; the last of
duplicate members counts; a member that is missing, or null, is NULL; other members are
ignored, or with ``unknown_fields = 'fail'`` a fault, also inside records. ::

    boolean            true, false
    integers           a number without a fraction (1, 1.0, 1e2), or text that writes one
    numeric, floats    a number, or text that writes one: "12.50", "NaN"
    text               a string, and nothing else
    bytea              a string: base64 with its padding
    date               "2026-01-31", or an integer: days since 1970-01-01
    timestamp[tz]      text in the forms of ``literal``, or an integer: milliseconds since
                       1970-01-01 00:00 UTC
    intervals          text: "2 days 03:00"
    json               any value, in canonical form; null is NULL
    arrays             an array; its elements may be null
    records            an object, by the same rules

Texts are read by ``literal``, numbers by their digits, so nothing is ever rounded by a
float on its way to a numeric or an integer.

Tests: tests/connectors/format/test_json.py.
"""

from __future__ import annotations

import binascii
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from reclock.connectors.format import literal
from reclock.connectors.format.canonical import Number, canonical, checked, parse
from reclock.connectors.format.decoder import Fault, in_field, null_in, shown
from reclock.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.connectors.format.decoder import Field
    from reclock.sql.types import Type

    Convert = Callable[[Any], Any]


@lru_cache(maxsize=256)
def record_reader(fields: tuple[Field, ...], strict: bool) -> Callable[[bytes], Sequence[Any]]:
    """Return how a payload becomes the values of ``fields``, or a ``Fault``."""
    members = [(f.name, converter(f.type, strict), f.nullable) for f in fields]
    known = frozenset(f.name for f in fields)

    def read(payload: bytes) -> list[Any]:
        value = parse(decoded(payload))
        if not isinstance(value, dict):
            message = f"not a JSON object: {shown(canonical(value))}"
            raise Fault(message)
        if strict:
            _refuse_unknown(value, known)
        row: list[Any] = []
        for name, convert, nullable in members:
            member = value.get(name)
            if member is not None:
                try:
                    member = convert(member)
                except Fault as fault:
                    raise in_field(name, fault) from fault
            elif not nullable:
                raise null_in(name)
            row.append(member)
        return row

    return read


def decoded(payload: bytes) -> str:
    r"""Return the text of a payload.

    >>> decoded(b"caf\xe9")
    Traceback (most recent call last):
    reclock.connectors.format.decoder.Fault: not UTF-8: byte 3 is 0xe9
    """
    try:
        return payload.decode()
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte {error.start} is 0x{payload[error.start]:02x}"
        raise Fault(message) from error


def converter(kind: Type, strict: bool) -> Convert:
    """Return how a JSON value that is not null becomes a value of ``kind``."""
    match kind:
        case t.Array():
            return _array(converter(kind.element, strict), kind)
        case t.Record():
            return _record(kind, strict)
        case t.Numeric():
            return lambda value: literal.numeric(_written(value, kind), kind)
    if kind in literal.RANGES:
        return lambda value: _integer(value, kind)
    if kind in t.FLOATS:
        return lambda value: literal.floating(_written(value, kind), kind)
    return _SIMPLE[kind]


def _refuse_unknown(value: dict[str, Any], known: frozenset[str]) -> None:
    for name in value:
        if name not in known:
            message = f'unknown field "{shown(name)}"'
            raise Fault(message)


def _wrong(value: Any, kind: Type) -> Fault:
    """Return the fault of a value of another kind, showing it as JSON."""
    return literal.wrong(canonical(value), kind)


def _written(value: Any, kind: Type) -> str:
    """Return the text of a number, or of a string that should write one."""
    if not isinstance(value, str):
        raise _wrong(value, kind)
    return value if isinstance(value, Number) else value.strip(literal.BLANKS)


def _integer(value: Any, kind: Type) -> int:
    text = _written(value, kind)
    if not isinstance(value, Number):
        return literal.integer(text, kind)
    if text.isdigit() and len(text) < 20:
        return literal.in_range(int(text), kind)
    try:
        number = Decimal(text)
        fits = -(2**63) <= number < 2**63
    except InvalidOperation:  # an exponent that no number has
        fits = False
    if not fits:
        raise literal.out_of_range(text, kind)
    if number != number.to_integral_value():
        raise literal.wrong(text, kind)
    return literal.in_range(int(number), kind)


def _array(convert: Convert, kind: Type) -> Convert:
    def elements(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _wrong(value, kind)
        return [None if element is None else convert(element) for element in value]

    return elements


def _record(kind: t.Record, strict: bool) -> Convert:
    members = [(name, converter(inside, strict)) for name, inside in kind.fields]
    known = frozenset(name for name, _ in kind.fields)

    def record(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong(value, kind)
        if strict:
            _refuse_unknown(value, known)
        row: dict[str, Any] = {}
        for name, convert in members:
            member = value.get(name)
            try:
                row[name] = None if member is None else convert(member)
            except Fault as fault:
                raise in_field(name, fault) from fault
        return row

    return record


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(value, t.BOOLEAN)
    return value


def _string(value: Any, kind: Type) -> str:
    if isinstance(value, Number) or not isinstance(value, str):
        raise _wrong(value, kind)
    return checked(value)


def _bytea(value: Any) -> bytes:
    text = _string(value, t.BYTEA)
    try:
        return binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except ValueError as error:
        raise _wrong(value, t.BYTEA) from error


def _date(value: Any) -> int:
    if not isinstance(value, Number):
        return literal.day(_string(value, t.DATE))
    days = _count(value, t.DATE)
    if not literal.FIRST_DAY <= days <= literal.LAST_DAY:
        raise literal.out_of_range(value, t.DATE)
    return days


def _count(value: Number, kind: Type) -> int:
    """Return how many days or milliseconds a number says."""
    try:
        return _integer(value, t.BIGINT)
    except Fault as fault:
        raise literal.wrong(value, kind) from fault


def _moment(kind: Type, read: Callable[[str], int]) -> Convert:
    def moment(value: Any) -> int:
        if not isinstance(value, Number):
            return read(_string(value, kind))
        return literal.in_time(_count(value, kind) * 1000, value, kind)

    return moment


def _literal(kind: Type) -> Convert:
    read = literal.reader_of(kind)
    return lambda value: read(_string(value, kind))


_SIMPLE: Final[dict[Type, Convert]] = {
    t.BOOLEAN: _boolean,
    t.TEXT: lambda value: _string(value, t.TEXT),
    t.BYTEA: _bytea,
    t.DATE: _date,
    t.TIMESTAMP: _moment(t.TIMESTAMP, literal.timestamp),
    t.TIMESTAMPTZ: _moment(t.TIMESTAMPTZ, literal.timestamptz),
    t.INTERVAL: _literal(t.INTERVAL),
    t.JSON: canonical,
}
