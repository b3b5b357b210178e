"""SQL types as Arrow stores them and as Spark computes with them.

Definition. ``arrow_type`` is how values lie in deltas, runs and answers. Spark reads and
writes it without loss::

    timestamp       timestamp[us]          TIMESTAMP_NTZ
    timestamptz     timestamp[us, UTC]     TIMESTAMP (session time zone UTC)
    numeric(p,s)    decimal128(p, s)       DECIMAL(p, s)
    interval        struct of 3 numbers    STRUCT<days: INT, micros: BIGINT, months: INT>
    json            string                 STRING

Arrow's and Spark's own intervals are not used: neither has one that the other reads, that can
be stored, and that has months, days and microseconds (design note 0011).

Tests: tests/dataflow/test_types.py sends every type through Spark and back.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.sql.plan.spark_literal import quote_name
from reclock.sql.types import Array, Numeric, Record, Simple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.dataflow.delta import Types
    from reclock.sql.schema import Schema
    from reclock.sql.types import Type

_SIMPLE: Final = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double precision": pa.float64(),
    "text": pa.string(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "interval": pa.struct([("days", pa.int32()), ("micros", pa.int64()), ("months", pa.int32())]),
    "json": pa.string(),
    "unknown": pa.null(),
}


@lru_cache(maxsize=1024)
def arrow_type(kind: Type) -> pa.DataType:
    """Return the Arrow type that holds values of ``kind``.

    >>> arrow_type(Array(Numeric(12, 2)))
    ListType(list<element: decimal128(12, 2)>)
    """
    match kind:
        case Simple():
            return _SIMPLE[kind.name]
        case Numeric():
            return pa.decimal128(kind.precision, kind.scale)
        case Array():
            return pa.list_(pa.field("element", arrow_type(kind.element)))
        case Record():
            return pa.struct([pa.field(name, arrow_type(t)) for name, t in kind.fields])


def arrow_types(schema: Schema) -> Types:
    """Return the Arrow types of a relation's columns: those of its deltas."""
    return tuple(arrow_type(column.type) for column in schema)


def stored_ddl(names: Sequence[str], kinds: Sequence[Type]) -> str:
    """Return the schema of stored columns as Spark's DDL: what a task yields as Arrow.

    >>> from reclock.sql.types import INTEGER
    >>> stored_ddl(["c0"], [INTEGER])
    '`c0` INT'
    """
    columns = zip(names, kinds, strict=True)
    return ", ".join(f"{quote_name(name)} {kind.spark_name}" for name, kind in columns)
