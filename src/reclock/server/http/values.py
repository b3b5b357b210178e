r"""Rows and errors as JSON.

A value is what JSON can say exactly: booleans, numbers that every reader keeps exact (32 bits and
less, and floating point), text, arrays as lists, records as objects, json as itself. bigint and
numeric are strings, because many readers of JSON would round them; so is everything else, as
PostgreSQL writes it: times, intervals, bytea as ``\x…``, and NaN and Infinity.

Tests: tests/server/http/test_sql.py.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from reclock.errors import ConstraintViolation, Error, StatementError
from reclock.server.codec import text
from reclock.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from reclock.sql.schema import Schema
    from reclock.sql.types import Type

Json = dict[str, Any]


def columns_of(schema: Schema) -> list[Json]:
    """Return the columns of an answer: name and SQL type."""
    return [{"name": column.name, "type": str(column.type)} for column in schema]


def rows_of(batch: pa.RecordBatch, kinds: Sequence[Type]) -> list[list[Any]]:
    """Return the rows of a batch."""
    columns = [
        [value_of(value, kind) for value in column.to_pylist()]
        for column, kind in zip(batch.columns, kinds, strict=True)
    ]
    if not columns:
        return [[] for _ in range(batch.num_rows)]
    return [list(row) for row in zip(*columns, strict=True)]


def value_of(value: Any, kind: Type) -> Any:
    """Return a value as Arrow gives it, as JSON has it.

    >>> value_of(7, t.INTEGER), value_of(7, t.BIGINT), value_of(float("nan"), t.DOUBLE)
    (7, '7', 'NaN')
    >>> value_of(99.98999786376953, t.REAL)
    99.99
    """
    if value is None:
        return None
    match kind:
        case t.Array(element):
            return [value_of(each, element) for each in value]
        case t.Record(fields):
            return {name: value_of(value[name], inside) for name, inside in fields}
    if kind == t.JSON:
        return json.loads(value)
    if kind == t.REAL and math.isfinite(value):
        return float(text.write(value, kind))  # in as few digits as tell it apart
    plain = kind in {t.BOOLEAN, t.SMALLINT, t.INTEGER, t.TEXT} or (
        kind == t.DOUBLE and math.isfinite(value)
    )
    return value if plain else text.write(value, kind)


def parameter_of(value: Any, kind: Type) -> Any:
    """Return a parameter: text is read as the type that the statement needs."""
    if isinstance(value, str) and kind not in {t.TEXT, t.JSON}:
        return text.read(value, kind)
    if isinstance(value, list | dict):
        return text.read(json.dumps(value), kind) if kind == t.JSON else value
    return value


def error_of(error: BaseException) -> Json:
    """Return an error: code, message, detail, hint, position; a bug says nothing of itself."""
    if not isinstance(error, Error):
        return {
            "code": "XX000", "message": "internal error", "detail": None,
            "hint": "the log says more", "position": None,
        }  # fmt: skip
    position = None
    if isinstance(error, StatementError | ConstraintViolation):
        position = error.position
    return {
        "code": error.code,
        "message": error.message,
        "detail": error.detail,
        "hint": error.hint,
        "position": position,
    }


def dumps(value: Any) -> bytes:
    """Return JSON in one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
