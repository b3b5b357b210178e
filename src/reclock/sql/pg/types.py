"""Types in the catalog: PostgreSQL's name, what DuckDB keeps them as, what clients are told.

An oid is DuckDB's only unsigned number and a ``"char"`` is text; names are text for clients too.
Types that are written as numbers or names (``regclass`` and its like) are in ``casts``.

Tests: tests/sql/pg/test_relations.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from reclock.sql import types as t

_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type: its name in PostgreSQL, its storage, and the type that clients are told."""

    name: str
    storage: str
    type: t.Type


_PLAIN: Final = {
    "bool": ("BOOLEAN", t.BOOLEAN),
    "bytea": ("BLOB", t.BYTEA),
    "char": ("VARCHAR", t.CHAR),
    "date": ("DATE", t.DATE),
    "float4": ("FLOAT", t.REAL),
    "float8": ("DOUBLE", t.DOUBLE),
    "int2": ("SMALLINT", t.SMALLINT),
    "int4": ("INTEGER", t.INTEGER),
    "int8": ("BIGINT", t.BIGINT),
    "interval": ("INTERVAL", t.INTERVAL),
    "name": ("VARCHAR", t.TEXT),
    "oid": ("UINTEGER", t.OID),
    "text": ("VARCHAR", t.TEXT),
    "timestamp": ("TIMESTAMP", t.TIMESTAMP),
    "timestamptz": ("TIMESTAMPTZ", t.TIMESTAMPTZ),
}
_SYNONYMS: Final = {
    "aclitem": "text",
    "bigint": "int8",
    "boolean": "bool",
    "bpchar": "text",
    "cardinal_number": "int4",
    "character varying": "text",
    "character_data": "text",
    "cstring": "text",
    "decimal": "float8",
    "double": "float8",
    "double precision": "float8",
    "float": "float4",
    "inet": "text",
    "int": "int4",
    "integer": "int4",
    "json": "text",
    "jsonb": "text",
    "numeric": "float8",
    "pg_node_tree": "text",
    "real": "float4",
    "smallint": "int2",
    "sql_identifier": "name",
    "tid": "text",
    "uint": "oid",
    "varchar": "text",
    "xid": "int8",
    "yes_or_no": "text",
}
_VECTORS: Final = {"int2vector": "int2[]", "oidvector": "oid[]", "anyarray": "text[]"}


def column_type(name: str) -> ColumnType:
    """Return the type of that name; ``KeyError`` if there is none.

    >>> column_type("oid").storage, column_type("int2vector").storage
    ('UINTEGER', 'SMALLINT[]')
    """
    known = _VECTORS.get(name, name)
    if known.endswith("[]"):
        inside = column_type(known[:-2])
        return ColumnType(known, f"{inside.storage}[]", t.Array(inside.type))
    plain = _SYNONYMS.get(known, known)
    storage, kind = _PLAIN[plain]
    return ColumnType(plain, storage, kind)


_BY_STORAGE: Final[dict[str, t.Type]] = {
    **{storage: kind for storage, kind in _PLAIN.values() if kind != t.CHAR},
    "TINYINT": t.SMALLINT,
    "UTINYINT": t.SMALLINT,
    "USMALLINT": t.INTEGER,
    "UBIGINT": t.Numeric(20, 0),
    "HUGEINT": t.Numeric(38, 0),
    "UHUGEINT": t.Numeric(38, 0),
    "TIMESTAMP WITH TIME ZONE": t.TIMESTAMPTZ,
    "JSON": t.JSON,
    "VARCHAR": t.TEXT,
}


def type_of_storage(storage: str) -> t.Type | None:
    """Return the type of a column of an answer; None if it is to be shown as text.

    >>> str(type_of_storage("UINTEGER[]")), str(type_of_storage("DECIMAL(10,2)"))
    ('oid[]', 'numeric(10,2)')
    """
    if storage.endswith("[]"):
        element = type_of_storage(storage[:-2])
        return None if element is None else t.Array(element)
    digits = _DECIMAL.fullmatch(storage)
    if digits is not None:
        return t.Numeric(int(digits[1]), int(digits[2]))
    return _BY_STORAGE.get(storage)
