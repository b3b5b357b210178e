"""Texts from the holes of a template → columns of SQL types, with the rows that are right.

``quoted`` and ``bare`` give what ``json_exact`` gives for a string, and for a number, true
or false. They return the column and the rows of which they are sure, None for all; they
raise ``Unsure`` where they cannot tell which. ``nothing`` is the column of NULLs.

What is left out: blanks and signs that PostgreSQL takes around numbers in strings, exponents
for numerics, more digits than a scale has, zones that differ.

Tests: tests/connectors/format/test_json_property.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reclock.connectors.format import lexical
from reclock.connectors.format.batch import Unsure
from reclock.connectors.format.vector import date, from_text, moment, real
from reclock.sql import types as t

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reclock.connectors.format.lexical import Texts
    from reclock.sql.types import Type

    Found = tuple[pa.Array, NDArray[np.bool_] | None]

_INTEGERS: Final[dict[Type, type[pl.DataType]]] = {
    t.SMALLINT: pl.Int16,
    t.INTEGER: pl.Int32,
    t.BIGINT: pl.Int64,
}
_LONGEST: Final = 18
"""Digits that an int64 has for sure."""


def quoted(texts: Texts, kind: Type) -> Found:
    """Return strings, which hold no escapes, as ``kind``."""
    if kind == t.TEXT:
        return texts.column, None
    if kind == t.BYTEA:
        made = pl.Series(texts.column).str.decode("base64", strict=False).to_arrow()
        return made.cast(pa.binary()), _valid(made)
    if kind in t.DATETIMES:
        return from_text(texts.column, kind), None
    if t.is_number(kind):
        return _number(texts, kind)
    raise Unsure


def bare(texts: Texts, kind: Type) -> Found:
    """Return numbers, true and false as ``kind``."""
    if kind == t.BOOLEAN:
        made = pc.index_in(texts.column, pa.array(["false", "true"]))
        return made.cast(pa.bool_()), _valid(made)
    if kind == t.DATE:
        days, rows = _integer(texts, t.INTEGER)
        return date(days.cast(pa.date32())), rows
    if kind in t.DATETIMES:
        millis, rows = _integer(texts, t.BIGINT)
        return moment(pc.multiply_checked(millis, 1000).cast(pa.timestamp("us")), kind), rows
    if t.is_number(kind):
        return _number(texts, kind)
    raise Unsure


def _number(texts: Texts, kind: Type) -> Found:
    if isinstance(kind, t.Numeric):
        return _numeric(texts, kind)
    if kind in _INTEGERS:
        return _integer(texts, kind)
    rows = lexical.numbers(texts)
    written = texts.column if rows.all() else pc.if_else(pa.array(rows), texts.column, "0")
    made = written.cast(pa.float64())
    if pc.any(pc.is_inf(made)).as_py():
        raise Unsure
    return (real(made) if kind == t.REAL else made), rows


def _integer(texts: Texts, kind: Type) -> Found:
    rows = lexical.integers(texts)
    made = pl.Series(texts.column).cast(_INTEGERS[kind], strict=False).to_arrow()
    if made.null_count:
        rows &= np.asarray(made.is_valid())
        made = made.fill_null(0)
    return made, rows


def _numeric(texts: Texts, kind: t.Numeric) -> Found:
    rows, behind, digits = lexical.decimals(texts)
    rows &= (behind <= kind.scale) & (texts.sizes <= _LONGEST - (kind.scale - behind))
    if not rows.all():
        digits = pc.if_else(pa.array(rows), digits, "0")
        behind = np.where(rows, behind, 0)
    whole = np.asarray(digits.cast(pa.int64())) * 10 ** (kind.scale - behind)
    if kind.precision < _LONGEST + 1:
        rows &= np.abs(whole) < 10**kind.precision
    halves = np.empty((len(whole), 2), np.int64)
    halves[:, 0] = whole
    halves[:, 1] = whole >> 63
    buffers = [None, pa.py_buffer(halves)]
    made = pa.decimal128(kind.precision, kind.scale)
    return pa.Array.from_buffers(made, len(whole), buffers), rows


def _valid(made: pa.Array) -> NDArray[np.bool_] | None:
    return np.asarray(made.is_valid()) if made.null_count else None
