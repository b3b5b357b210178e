"""SQL types as Arrow stores them and as Spark computes with them.

Definition. ``arrow_type`` is how values lie in deltas, runs and answers. Spark reads and
writes it without loss::

    timestamp       timestamp[us]          TIMESTAMP_NTZ
    timestamptz     timestamp[us, UTC]     TIMESTAMP (session time zone UTC)
    numeric(p,s)    decimal128(p, s)       DECIMAL(p, s)
    interval        duration[us]           INTERVAL DAY TO SECOND
    json            string                 STRING

Only an interval of months has no Arrow type that Python can read from Spark: it is stored
as int32 months, and ``to_spark`` and ``from_spark`` turn a column, also inside arrays and
records, into the interval and back. For every other type they are the identity.

Tests: tests/dataflow/test_types.py sends every type through Spark and back.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.sql.plan.spark_literal import quote_name, quote_string
from reclock.sql.types import MONTHS, Array, Numeric, Record, Simple

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
    "interval": pa.duration("us"),
    "interval year to month": pa.int32(),
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


@lru_cache(maxsize=1024)
def stored_name(kind: Type) -> str:
    """Return Spark's name for a column of ``arrow_type(kind)`` as it comes from Arrow.

    >>> stored_name(Array(MONTHS)), Array(MONTHS).spark_name
    ('ARRAY<INT>', 'ARRAY<INTERVAL YEAR TO MONTH>')
    """
    match kind:
        case Array():
            return f"ARRAY<{stored_name(kind.element)}>"
        case Record():
            inside = ", ".join(f"{quote_name(name)}: {stored_name(t)}" for name, t in kind.fields)
            return f"STRUCT<{inside}>"
    return "INT" if kind == MONTHS else kind.spark_name


def stored_ddl(names: Sequence[str], kinds: Sequence[Type]) -> str:
    """Return the schema of stored columns as Spark's DDL: what a task yields as Arrow.

    >>> stored_ddl(["c0"], [MONTHS])
    '`c0` INT'
    """
    columns = zip(names, kinds, strict=True)
    return ", ".join(f"{quote_name(name)} {stored_name(kind)}" for name, kind in columns)


def to_spark(text: str, kind: Type) -> str:
    """Return Spark SQL for a stored column as expressions of type ``kind`` want it.

    >>> to_spark("c0", MONTHS), to_spark("c0", Numeric())
    ("(INTERVAL '1' MONTH * c0)", 'c0')
    """
    return _converted(text, kind, "(INTERVAL '1' MONTH * {})")


def from_spark(text: str, kind: Type) -> str:
    """Return Spark SQL for an expression of type ``kind`` as Arrow stores it.

    >>> from_spark("c0", Array(MONTHS))
    'transform(c0, x0 -> CAST(x0 AS INT))'
    """
    # The cast of an interval counts its least unit.
    return _converted(text, kind, "CAST({} AS INT)")


def has_months(kind: Type) -> bool:
    """Return whether Spark computes with another type than Arrow stores."""
    match kind:
        case Array():
            return has_months(kind.element)
        case Record():
            return any(has_months(t) for _, t in kind.fields)
    return kind == MONTHS


def _converted(text: str, kind: Type, months: str, depth: int = 0) -> str:
    if not has_months(kind):
        return text
    match kind:
        case Array():
            each = f"x{depth}"
            inside = _converted(each, kind.element, months, depth + 1)
            return f"transform({text}, {each} -> {inside})"
        case Record():
            fields = ", ".join(
                f"{quote_string(name)}, "
                + _converted(f"{text}.{quote_name(name)}", t, months, depth)
                for name, t in kind.fields
            )
            return f"CASE WHEN {text} IS NOT NULL THEN named_struct({fields}) END"
    return months.format(text)
