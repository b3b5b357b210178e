"""Columns as a parser gives them → columns of SQL types, all at once.

``from_text`` gives what ``literal`` gives value by value, or raises ``Unsure``: it converts
with Arrow's casts, after checks for what those take and PostgreSQL does not (0x10, 1e999),
and leaves to the exact way what they do not take (blanks, more digits than a scale has,
zones that differ).

Tests: tests/connectors/format/test_csv_property.py.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reclock.connectors.format import literal
from reclock.connectors.format.batch import Unsure
from reclock.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.connectors.format.decoder import Field
    from reclock.sql.types import Type

_FIRST, _LAST = literal.FIRST_DAY * literal.DAY, (literal.LAST_DAY + 1) * literal.DAY - 1
_ZONED: Final = pa.timestamp("us", "UTC")
_LOCAL: Final = pa.timestamp("us")
_INTEGERS: Final[dict[Type, pa.DataType]] = {
    t.SMALLINT: pa.int16(),
    t.INTEGER: pa.int32(),
    t.BIGINT: pa.int64(),
}
_BOOLEANS: Final = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def typed(
    column: pa.ChunkedArray, field: Field, convert: Callable[[pa.Array, Type], pa.Array]
) -> pa.Array:
    """Return the column as ``field`` wants it."""
    whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if whole.null_count and not field.nullable:
        raise Unsure
    try:
        made = convert(whole, field.type)
        return made if made.type == field.arrow else made.cast(field.arrow)
    except (pa.ArrowInvalid, pl.exceptions.PolarsError) as error:
        raise Unsure from error


def from_text(column: pa.Array, kind: Type) -> pa.Array:
    """Return a column of texts as ``kind``, as PostgreSQL reads them."""
    if kind == t.TEXT:
        return column
    if kind == t.BOOLEAN:
        found = pc.index_in(column, pa.array(_BOOLEANS))
        if found.null_count != column.null_count:
            raise Unsure
        return pa.array(_BOOLEANS.values()).take(found)
    if kind == t.DATE:
        return date(column.cast(pa.date32()))
    if kind in t.DATETIMES:
        return moment(_moments(column, kind), kind)
    return _number(column, kind)


def date(days: pa.Array) -> pa.Array:
    """Return dates, if all are in the years that there are."""
    _check_between(days.cast(pa.int32()), literal.FIRST_DAY, literal.LAST_DAY)
    return days


def _moments(column: pa.Array, kind: Type) -> pa.Array:
    """Return times as if they had no zones, or in UTC where that is asked for."""
    zones = [None, "UTC"]
    if kind == t.TIMESTAMP and not pc.all(pc.ends_with(column, "Z")).as_py():
        zones = [None]
    for unit, zone in product(("us", "ns"), zones):
        try:
            return _micros(column.cast(pa.timestamp(unit, zone)))
        except pa.ArrowInvalid:
            continue
    raise Unsure


def _micros(moments: pa.Array) -> pa.Array:
    """Return times without their zone, rounded half up."""
    if moments.type.unit == "us":
        return moments.cast(_LOCAL)
    nanos = np.asarray(moments.cast(pa.int64()).fill_null(0))
    mask = np.asarray(moments.is_null())
    return pa.array((nanos + 500) // 1000, pa.int64(), mask=mask).cast(_LOCAL)


def moment(moments: pa.Array, kind: Type) -> pa.Array:
    """Return times as ``kind``, if all are in the years that there are."""
    _check_between(moments.cast(pa.int64()), _FIRST, _LAST)
    return moments if kind == t.TIMESTAMP else moments.cast(_ZONED)


def _check_between(numbers: pa.Array, low: int, high: int) -> None:
    ends = pc.min_max(numbers)
    if ends["min"].is_valid and not low <= ends["min"].as_py() <= ends["max"].as_py() <= high:
        raise Unsure


def _number(column: pa.Array, kind: Type) -> pa.Array:
    """Return numbers that were written as text."""
    if isinstance(kind, t.Numeric):
        return _numeric(column, kind)
    if pc.any(pc.match_substring_regex(column, "[^0-9.eE+-]")).as_py():
        raise Unsure
    if kind in t.FLOATS:
        numbers = column.cast(pa.float64())
        if pc.any(pc.is_inf(numbers)).as_py():
            raise Unsure
        return real(numbers) if kind == t.REAL else numbers
    return column.cast(_INTEGERS[kind])


def _numeric(column: pa.Array, kind: t.Numeric) -> pa.Array:
    """Return decimals, if none has an exponent or so many digits that Arrow's cast fails badly."""
    longest = pc.max(pc.binary_length(column)).as_py()
    if pc.any(pc.match_substring_regex(column, "[^0-9.+-]")).as_py() or (longest or 0) > 38:
        raise Unsure
    numbers = column.cast(pa.decimal128(kind.precision, kind.scale))
    numbers.validate(full=True)
    return numbers


def real(column: pa.Array) -> pa.Array:
    """Return doubles as floats, if none overflows."""
    small = column.cast(pa.float32(), safe=False)
    if pc.any(pc.is_inf(small)).as_py():
        raise Unsure
    return small
