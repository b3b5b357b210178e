"""Which SQL type is which on the wire: PostgreSQL's OIDs, sizes and modifiers.

Every SQL type has an OID. Going the other way, several OIDs are one type here (varchar and name
are text, jsonb is json), and those that have none are refused by name (0A000). Intervals of
months and of days are one type on the wire; a value says which it is.

Tests: tests/server/codec/test_values.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.errors import NotSupported
from reclock.sql import types as t

if TYPE_CHECKING:
    from reclock.sql.types import Type

RECORD: Final = 2249
_RECORDS: Final = 2287
_NUMERIC: Final = 1700
_NUMERICS: Final = 1231

_OIDS: Final[dict[Type, tuple[int, int, int]]] = {
    t.BOOLEAN: (16, 1000, 1),
    t.BYTEA: (17, 1001, -1),
    t.BIGINT: (20, 1016, 8),
    t.SMALLINT: (21, 1005, 2),
    t.INTEGER: (23, 1007, 4),
    t.TEXT: (25, 1009, -1),
    t.JSON: (114, 199, -1),
    t.REAL: (700, 1021, 4),
    t.DOUBLE: (701, 1022, 8),
    t.DATE: (1082, 1182, 4),
    t.TIMESTAMP: (1114, 1115, 8),
    t.TIMESTAMPTZ: (1184, 1185, 8),
    t.INTERVAL: (1186, 1187, 16),
    t.MONTHS: (1186, 1187, 16),
    t.UNKNOWN: (25, 1009, -1),
}
"""The OID of a type and of arrays of it, and the size of its values; -1 if they vary."""

_TYPES: Final[dict[int, Type]] = {
    **{
        array: t.Array(kind)
        for kind, (_, array, _) in _OIDS.items()
        if kind not in {t.MONTHS, t.UNKNOWN}
    },
    **{oid: kind for kind, (oid, _, _) in _OIDS.items() if kind not in {t.MONTHS, t.UNKNOWN}},
    _NUMERIC: t.Numeric(),
    _NUMERICS: t.Array(t.Numeric()),
    18: t.TEXT,  # "char"
    19: t.TEXT,  # name
    26: t.BIGINT,  # oid
    705: t.UNKNOWN,
    1042: t.TEXT,  # bpchar
    1043: t.TEXT,  # varchar
    1002: t.Array(t.TEXT),
    1003: t.Array(t.TEXT),
    1014: t.Array(t.TEXT),
    1015: t.Array(t.TEXT),
    3802: t.JSON,  # jsonb
    3807: t.Array(t.JSON),
}
JSONB: Final = 3802
JSONBS: Final = 3807


def oid_of(kind: Type) -> int:
    """Return the OID of a type.

    >>> oid_of(t.BIGINT), oid_of(t.Array(t.Array(t.TEXT))), oid_of(t.Numeric(12, 2))
    (20, 1009, 1700)
    """
    match kind:
        case t.Numeric():
            return _NUMERIC
        case t.Record():
            return RECORD
        case t.Array(element):
            return _array_of(element)
    return _OIDS[kind][0]


def _array_of(element: Type) -> int:
    match element:
        case t.Numeric():
            return _NUMERICS
        case t.Record():
            return _RECORDS
        case t.Array(inner):
            return _array_of(inner)  # arrays of arrays are arrays of more dimensions
    return _OIDS[element][1]


def size_of(kind: Type) -> int:
    """Return how many bytes a value has; -1 if that varies."""
    return _OIDS[kind][2] if isinstance(kind, t.Simple) else -1


def modifier_of(kind: Type) -> int:
    """Return what else describes a type: digits of a numeric; -1 is nothing.

    >>> modifier_of(t.Numeric(12, 2)), modifier_of(t.BIGINT)
    (786438, -1)
    """
    return (kind.precision << 16 | kind.scale) + 4 if isinstance(kind, t.Numeric) else -1


def type_of(oid: int) -> Type:
    """Return the type that an OID means; 0 is not known yet."""
    if oid == 0:
        return t.UNKNOWN
    found = _TYPES.get(oid)
    if found is None:
        message = f"type with OID {oid} is not supported"
        raise NotSupported(message, hint="send the parameter as text, without a type")
    return found
