"""Rows from outside as columns of a table's types: Python tuples, Arrow, DataFrames.

Tuples are matched by position and checked value by value (``dataflow.values``). Arrow
tables, and whatever gives itself as one (a Spark, polars or pandas frame), are matched by
column name: columns left out get their default, unknown ones are refused. What does not
fit is an error that names the column.

Tests: tests/engine/test_write.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reclock.dataflow.types import arrow_type
from reclock.dataflow.values import from_python
from reclock.errors import Error, InvalidValue, UndefinedName, WrongType
from reclock.interval import Interval
from reclock.sql.types import INTERVAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.catalog.item import Table
    from reclock.sql.schema import Column

    Default = Callable[[Table, int, int], pa.Array]


def columns_from(given: object, table: Table, default: Default) -> list[pa.Array]:
    """Return the rows of ``given`` as the columns of ``table``; ``default`` makes the others."""
    frame = _as_arrow(given)
    if frame is not None:
        return _from_arrow(frame, table, default)
    if not isinstance(given, Iterable):
        message = f"rows cannot be made from {type(given).__name__}"
        hint = "give a list of tuples, an Arrow table or a DataFrame"
        raise WrongType(message, hint=hint)
    return _from_tuples(list(given), table)


def column_from(values: Iterable[object], column: Column) -> pa.Array:
    """Return Python values as a column; an error says which column it is."""
    try:
        return from_python(values, column.type)
    except Error as error:
        error.detail = "; ".join(filter(None, [f'column "{column.name}"', error.detail]))
        raise


def _as_arrow(given: object) -> pa.Table | None:
    if isinstance(given, pa.Table):
        return given
    if hasattr(given, "toArrow"):  # a Spark DataFrame
        return given.toArrow()
    if isinstance(given, pa.RecordBatch) or hasattr(given, "__arrow_c_stream__"):
        return pa.table(given)
    return None


def _from_arrow(frame: pa.Table, table: Table, default: Default) -> list[pa.Array]:
    names = table.schema.names
    for name in frame.column_names:
        if name not in names:
            message = f'column "{name}" of relation "{table.name}" does not exist'
            raise UndefinedName(message, hint=f"its columns are {', '.join(names)}")
        if frame.column_names.count(name) > 1:
            message = f'column "{name}" specified more than once'
            raise UndefinedName(message, code="42701")
    columns = []
    for at, column in enumerate(table.columns):
        if column.column.name in frame.column_names:
            columns.append(_cast(frame.column(column.column.name), column.column))
        else:
            columns.append(default(table, at, frame.num_rows))
    return columns


def _cast(values: pa.ChunkedArray, column: Column) -> pa.Array:
    kind = arrow_type(column.type)
    if column.type == INTERVAL:
        return _intervals(values, column)
    try:
        whole = values.combine_chunks() if values.type == kind else values.cast(kind)
        if isinstance(whole, pa.ChunkedArray):
            whole = whole.combine_chunks()
    except pa.ArrowNotImplementedError as error:
        message = f'column "{column.name}" is of type {column.type} but the data is {values.type}'
        raise WrongType(message, detail=str(error), hint="cast the data") from error
    except pa.ArrowInvalid as error:
        message = f'a value does not fit column "{column.name}" of type {column.type}'
        raise InvalidValue(message, detail=str(error), code="22003") from error
    return whole


def _intervals(values: pa.ChunkedArray, column: Column) -> pa.Array:
    """Return intervals from durations, or from structs of three numbers."""
    if not pa.types.is_duration(values.type) and not pa.types.is_struct(values.type):
        message = f'column "{column.name}" is of type interval but the data is {values.type}'
        hint = "give durations, or structs of days, micros and months"
        raise WrongType(message, hint=hint)
    given = values.to_pylist()
    if pa.types.is_struct(values.type):
        given = [None if v is None else _interval(v, column) for v in given]
    return column_from(given, column)


def _interval(numbers: dict[str, Any], column: Column) -> Interval:
    try:
        return Interval(numbers["months"], numbers["days"], numbers["micros"])
    except (KeyError, InvalidValue) as error:
        message = f'a value does not fit column "{column.name}" of type interval'
        hint = "a struct has the numbers days, micros and months"
        raise InvalidValue(message, detail=f"{numbers}", hint=hint, code="22003") from error


def _from_tuples(rows: list[Any], table: Table) -> list[pa.Array]:
    width = len(table.columns)
    for row in rows:
        if isinstance(row, str | bytes) or not isinstance(row, Sequence) or len(row) != width:
            message = f'a row of "{table.name}" has {width} columns'
            raise InvalidValue(message, detail=f"got {row!r:.200}", code="42601")
    return [
        column_from((row[at] for row in rows), column) for at, column in enumerate(table.schema)
    ]
