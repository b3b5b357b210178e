"""SQL types on the wire: PostgreSQL's OIDs, sizes and modifiers.

Every SQL type has an OID. Going the other way, several OIDs are one type here (varchar and name
are text, jsonb is json), and those that have none are refused by name (0A000).

Tests: tests/server/codec/test_values.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.errors import NotSupported
from reclock.sql import types as t
from reclock.sql.pg.oid import NUMERIC, NUMERICS, OIDS, modifier_of, oid_of, size_of

if TYPE_CHECKING:
    from reclock.sql.types import Type

__all__ = ["JSONB", "modifier_of", "oid_of", "size_of", "type_of"]

_GIVEN: Final = frozenset({t.UNKNOWN, t.INT2VECTOR, t.OIDVECTOR})
"""Types that are given, and not taken: another has their OID, or no client sends them."""

_TYPES: Final[dict[int, Type]] = {
    **{array: t.Array(kind) for kind, (_, array, _) in OIDS.items() if kind not in _GIVEN},
    **{oid: kind for kind, (oid, _, _) in OIDS.items() if kind not in _GIVEN},
    NUMERIC: t.Numeric(),
    NUMERICS: t.Array(t.Numeric()),
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


def type_of(oid: int) -> Type:
    """Return the type that an OID means; 0 is not known yet."""
    if oid == 0:
        return t.UNKNOWN
    found = _TYPES.get(oid)
    if found is None:
        message = f"type with OID {oid} is not supported"
        raise NotSupported(message, hint="send the parameter as text, without a type")
    return found
