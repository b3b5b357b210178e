"""SQL types in PostgreSQL: OIDs, sizes and modifiers.

Every SQL type has an OID. Intervals of months and of days are one type; a value says which it is.

Tests: tests/server/codec/test_values.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.sql import types as t

if TYPE_CHECKING:
    from reclock.sql.types import Type

RECORD: Final = 2249
_RECORDS: Final = 2287
NUMERIC: Final = 1700
NUMERICS: Final = 1231

OIDS: Final[dict[Type, tuple[int, int, int]]] = {
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
    t.UNKNOWN: (25, 1009, -1),
    t.OID: (26, 1028, 4),
    t.CHAR: (18, 1002, 1),
    t.INT2VECTOR: (22, 1006, -1),
    t.OIDVECTOR: (30, 1013, -1),
}
"""The OID of a type and of arrays of it, and the size of its values; -1 if they vary."""


def oid_of(kind: Type) -> int:
    """Return the OID of a type.

    >>> oid_of(t.BIGINT), oid_of(t.Array(t.Array(t.TEXT))), oid_of(t.Numeric(12, 2))
    (20, 1009, 1700)
    """
    match kind:
        case t.Numeric():
            return NUMERIC
        case t.Record():
            return RECORD
        case t.Array(element):
            return _array_of(element)
    return OIDS[kind][0]


def _array_of(element: Type) -> int:
    match element:
        case t.Numeric():
            return NUMERICS
        case t.Record():
            return _RECORDS
        case t.Array(inner):
            return _array_of(inner)  # arrays of arrays are arrays of more dimensions
    return OIDS[element][1]


def size_of(kind: Type) -> int:
    """Return how many bytes a value has; -1 if that varies."""
    return OIDS[kind][2] if isinstance(kind, t.Simple) else -1


def modifier_of(kind: Type) -> int:
    """Return what else describes a type: digits of a numeric; -1 is nothing.

    >>> modifier_of(t.Numeric(12, 2)), modifier_of(t.BIGINT)
    (786438, -1)
    """
    return (kind.precision << 16 | kind.scale) + 4 if isinstance(kind, t.Numeric) else -1
