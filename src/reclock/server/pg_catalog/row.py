"""Rows of relations, as Arrow has them.

A row names the columns that have something to say; the others have what PostgreSQL has there
when there is nothing: 0, false, an empty ``"char"``, else NULL.

Tests: tests/server/pg_catalog/test_rows.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reclock.sql.pg.types import ColumnType

Row = dict[str, Any]

_ARROW: Final = {
    "BOOLEAN": pa.bool_(),
    "BLOB": pa.binary(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "UINTEGER": pa.uint32(),
    "VARCHAR": pa.string(),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
}
_DEFAULTS: Final = {"bool": False, "char": "", "int2": 0, "int4": 0, "int8": 0, "oid": 0}


def table_of(columns: Mapping[str, ColumnType], rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table with all columns of their relation."""
    known = list(rows)
    arrays = [
        pa.array([row.get(name, _DEFAULTS.get(kind.name)) for row in known], _arrow(kind.storage))
        for name, kind in columns.items()
    ]
    return pa.table(arrays, names=list(columns))


def _arrow(storage: str) -> pa.DataType:
    if storage.endswith("[]"):
        return pa.list_(_arrow(storage[:-2]))
    return _ARROW[storage]
