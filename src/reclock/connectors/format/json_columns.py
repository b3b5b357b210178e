"""Texts from the holes of a template → columns of SQL types, with the rows that are right.

``quoted``, ``bare`` and ``whole`` give what ``json_exact`` gives for a string, for a number,
true or false, and for anything. They return the column and the rows of which they are sure,
None for all; they raise ``Unsure`` where they cannot tell which.

What is left out: blanks and signs that PostgreSQL takes around numbers in strings, exponents
and more than 18 digits of numerics, zones that differ.

Tests: tests/connectors/format/test_json_property.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reclock.connectors.format import lexical
from reclock.connectors.format.batch import Unsure
from reclock.connectors.format.canonical import DEEPEST, parse
from reclock.connectors.format.decoder import Fault
from reclock.connectors.format.json_exact import converter
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


def whole(texts: Texts, kind: Type, arrow: pa.DataType, strict: bool) -> Found:
    """Return any JSON values as ``kind``, each distinct one read by itself."""
    convert = converter(kind, strict)
    encoded = texts.column.dictionary_encode()
    values: list[Any] = []
    right: list[bool] = []
    for text in encoded.dictionary.to_pylist():
        try:
            parsed = _parsed(text)
            values.append(None if parsed is None else convert(parsed))
            right.append(True)
        except Fault:
            values.append(None)
            right.append(False)
    rows = None if all(right) else np.array(right)[np.asarray(encoded.indices)]
    return pa.array(values, arrow).take(encoded.indices), rows


def values(texts: Texts) -> NDArray[np.bool_]:
    """Return the texts that are JSON values, whatever they are."""
    encoded = texts.column.dictionary_encode()
    right = np.array([_is_json(text) for text in encoded.dictionary.to_pylist()], np.bool_)
    rows: NDArray[np.bool_] = right[np.asarray(encoded.indices)]
    return rows


def _is_json(text: str) -> bool:
    try:
        _parsed(text)
    except Fault:
        return False
    return True


def _parsed(text: str) -> Any:
    """Return a value that is nested so little that its record is not nested too deep."""
    if text.count("{") + text.count("[") > DEEPEST // 2:
        message = "perhaps too deep"
        raise Fault(message)
    return parse(text)


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
    more = np.maximum(kind.scale - behind, 0)
    rows &= texts.sizes <= _LONGEST - more
    if not rows.all():
        digits = pc.if_else(pa.array(rows), digits, "0")
        behind, more = np.where(rows, behind, 0), np.where(rows, more, 0)
    whole = np.asarray(digits.cast(pa.int64())) * 10**more
    if (behind > kind.scale).any():
        less = 10 ** np.maximum(behind - kind.scale, 0)
        whole = np.sign(whole) * ((np.abs(whole) + less // 2) // less)  # half away from zero
    if kind.precision <= _LONGEST:
        rows &= np.abs(whole) < 10**kind.precision
    halves = np.empty((len(whole), 2), np.int64)
    halves[:, 0] = whole
    halves[:, 1] = whole >> 63
    made = pa.decimal128(kind.precision, kind.scale)
    return pa.Array.from_buffers(made, len(whole), [None, pa.py_buffer(halves)]), rows


def _valid(made: pa.Array) -> NDArray[np.bool_] | None:
    return np.asarray(made.is_valid()) if made.null_count else None
