"""Batches of an answer as bytes: rows for the wire, many at a time.

``data_rows`` gives exactly the bytes of a ``DataRow`` for each row, one after the other, without
a Python object per value wherever Arrow can write the value itself: integers, text, times and
booleans as text; all numbers of fixed size, text and times as binary. The others are written one
by one (``text``, ``binary``). ``copy_rows`` gives for each row a ``CopyOutData`` with a line of
COPY's text format: the same texts, with what would end a value or a line escaped. Memory: the
bytes of the batch, twice.

Tests: tests/server/codec/test_rows.py.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.server.codec import binary, text
from reclock.server.codec.zoned import local_times
from reclock.sql import types as t
from reclock.sql.statement.copy import CopyFormat
from reclock.sql.zone import DEFAULT, zone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.sql.types import Type

_BYTES: Final = pa.large_binary()
_SIZE: Final = struct.Struct("!i")
_COLUMNS: Final = struct.Struct("!h")
_NULL: Final = b"\xff\xff\xff\xff"
_EMPTY: Final = pa.scalar(b"", _BYTES)
_FRACTION: Final = r"\.?0+$"
_DAYS: Final = 10_957
"""Days from 1970 to 2000."""

_MICROSECONDS: Final = _DAYS * 86_400_000_000
_PLAIN: Final = {*t.INTEGERS, t.BOOLEAN, t.DATE, t.TIMESTAMP, t.TIMESTAMPTZ, t.REAL, t.DOUBLE}
_SPECIAL: Final = r"[\\\x08-\x0d]"
_ESCAPES: Final = {
    "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r"
}  # fmt: skip
_PLAIN_TEXT: Final = CopyFormat()
_SWAPPED: Final[dict[Type, str]] = {
    t.SMALLINT: ">i2",
    t.INTEGER: ">i4",
    t.BIGINT: ">i8",
    t.REAL: ">f4",
    t.DOUBLE: ">f8",
    t.OID: ">u4",
}


def data_rows(
    batch: pa.RecordBatch, kinds: Sequence[Type], formats: Sequence[int], letter: bytes = b"D"
) -> bytes:
    r"""Return the rows of a batch as messages; a format is 0 for text, 1 for binary.

    >>> data_rows(pa.record_batch([pa.array([7], pa.int64())], ["a"]), [t.BIGINT], [0])
    b'D\x00\x00\x00\x0b\x00\x01\x00\x00\x00\x017'
    """
    count = batch.num_rows
    sizes = np.full(count, 6, np.int64)
    parts: list[pa.Array] = []
    for column, kind, form in zip(batch.columns, kinds, formats, strict=True):
        values = _binary(column, kind) if form else _text(column, kind)
        lengths = pc.fill_null(pc.binary_length(values), -1).to_numpy(zero_copy_only=False)
        sizes += 4 + np.maximum(lengths, 0)
        parts += [_fixed(lengths.astype(">i4")), pc.fill_null(values, b"")]
    head = np.zeros(count, [("letter", "S1"), ("size", ">i4"), ("columns", ">i2")])
    head["letter"], head["size"], head["columns"] = letter, sizes, len(parts) // 2
    return _bytes(pc.binary_join_element_wise(_fixed(head), *parts, _EMPTY))


def copy_rows(
    batch: pa.RecordBatch,
    kinds: Sequence[Type],
    form: CopyFormat = _PLAIN_TEXT,
    names: Sequence[str] = (),
) -> bytes:
    r"""Return the rows of a batch as COPY writes them, each in a message of its own.

    Of binary rows that is what a ``DataRow`` has. ``names`` are the columns that may be forced to
    be quoted.

    >>> copy_rows(pa.record_batch([pa.array(["a\tb", None])], ["a"]), [t.TEXT])
    b'd\x00\x00\x00\ta\\tb\nd\x00\x00\x00\x07\\N\n'
    """
    if form.name == "binary":
        return data_rows(batch, kinds, [1] * len(kinds), b"d")
    values = []
    for at, (column, kind) in enumerate(zip(batch.columns, kinds, strict=True)):
        texts = _text(column, kind)
        if form.name == "csv":
            forced = form.force_quote is None or (at < len(names) and names[at] in form.force_quote)
            texts = _quoted(texts, form, forced=forced, alone=len(kinds) == 1)
        else:
            texts = _escaped(texts, kind, form.delimiter)
        values.append(pc.fill_null(texts, form.null.encode()))
    lines = pc.binary_join_element_wise(*values, pa.scalar(form.delimiter.encode(), _BYTES))
    head = np.zeros(batch.num_rows, [("letter", "S1"), ("size", ">i4")])
    head["letter"], head["size"] = b"d", pc.binary_length(lines).to_numpy() + 5
    ends = pa.scalar(b"\n", _BYTES)
    return _bytes(pc.binary_join_element_wise(_fixed(head), lines, ends, _EMPTY))


def _escaped(values: pa.Array, kind: Type, delimiter: str) -> pa.Array:
    """Return texts in which nothing ends a value or a line."""
    if delimiter == "\t":
        if kind in _PLAIN or isinstance(kind, t.Numeric):
            return values
        if not pc.any(pc.match_substring_regex(values, _SPECIAL)).as_py():
            return values
    for found, written in _ESCAPES.items():
        values = pc.replace_substring(values, pattern=found, replacement=written)
    if delimiter != "\t":
        values = pc.replace_substring(values, pattern=delimiter, replacement="\\" + delimiter)
    return values


def _quoted(values: pa.Array, form: CopyFormat, *, forced: bool, alone: bool) -> pa.Array:
    """Return texts in quotes where CSV needs them: what ends a value, or would be NULL."""
    special = "[" + "".join(map(re.escape, (form.delimiter, form.quote, "\r", "\n"))) + "]"
    needs = pc.or_kleene(
        pc.match_substring_regex(values, special), pc.equal(values, form.null.encode())
    )
    if alone:
        needs = pc.or_kleene(needs, pc.equal(values, b"\\."))
    if forced:
        needs = values.is_valid()
    if not pc.any(needs).as_py():
        return values
    inside = values
    for character in dict.fromkeys((form.escape, form.quote)):
        inside = pc.replace_substring(
            inside, pattern=character, replacement=form.escape + character
        )
    quote = pa.scalar(form.quote.encode(), _BYTES)
    whole = pc.binary_join_element_wise(quote, inside, quote, _EMPTY)
    return pc.if_else(needs, whole, values)


def _bytes(rows: pa.Array) -> bytes:
    """Return what an array of bytes has, one after the other."""
    if not len(rows):
        return b""
    _, ends, data = rows.buffers()
    bounds = np.frombuffer(ends, np.int64, len(rows) + 1, rows.offset * 8)
    return bytes(memoryview(data)[bounds[0] : bounds[-1]])


def few_rows(
    rows: Sequence[tuple[Any, ...]], kinds: Sequence[Type], formats: Sequence[int]
) -> bytes:
    r"""Return the same for few rows whose values are those of Python that Arrow gives.

    >>> few_rows([(7,), (None,)], [t.BIGINT], [0])[:12]
    b'D\x00\x00\x00\x0b\x00\x01\x00\x00\x00\x017'
    """
    writers = [_writer(kind, form) for kind, form in zip(kinds, formats, strict=True)]
    made = bytearray()
    for row in rows:
        parts = [_COLUMNS.pack(len(row))]
        for value, write in zip(row, writers, strict=True):
            if value is None:
                parts.append(_NULL)
            else:
                data = write(value)
                parts += (_SIZE.pack(len(data)), data)
        body = b"".join(parts)
        made += b"D"
        made += _SIZE.pack(len(body) + 4)
        made += body
    return bytes(made)


@lru_cache(maxsize=1_024)
def _writer(kind: Type, form: int) -> Callable[[Any], bytes]:
    """Return how a value of a type is written."""
    if form:
        return partial(_flipped, binary.write, kind)
    if kind in t.INTEGERS:
        return lambda value: b"%d" % value
    if kind == t.TEXT:
        return str.encode
    return partial(_flipped, _write_text, kind)


def _flipped(write: Callable[[Any, Type], bytes], kind: Type, value: Any) -> bytes:
    return write(value, kind)


def _fixed(values: np.ndarray[Any, Any]) -> pa.Array:
    """Return the bytes of each element of an array."""
    ends = np.arange(len(values) + 1, dtype=np.int64) * values.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(values.tobytes())]
    return pa.Array.from_buffers(_BYTES, len(values), buffers)


def _each(column: pa.Array, write: Any, kind: Type) -> pa.Array:
    """Return values that are written one by one."""
    values = column.to_pylist()
    return pa.array([None if v is None else write(v, kind) for v in values], _BYTES)


def _write_text(value: Any, kind: Type) -> bytes:
    return text.write(value, kind).encode()


def _text(column: pa.Array, kind: Type) -> pa.Array:
    """Return a column as text."""
    if kind in {*t.INTEGERS, t.DATE, t.OID}:
        return column.cast(pa.large_string()).cast(_BYTES)
    if kind in {t.TEXT, t.JSON, t.UNKNOWN, t.CHAR, t.INT2VECTOR, t.OIDVECTOR}:
        return column.cast(pa.large_string()).cast(_BYTES)
    if kind == t.BOOLEAN:
        return pc.if_else(column, pa.scalar(b"t", _BYTES), pa.scalar(b"f", _BYTES))
    if kind in {t.TIMESTAMP, t.TIMESTAMPTZ}:
        plain, offsets = column.cast(pa.timestamp("us")), pa.scalar(b"+00", _BYTES)
        if kind == t.TIMESTAMPTZ and zone() != DEFAULT:
            plain, offsets = local_times(plain, zone())
        whole = plain.cast(pa.large_string())
        short = pc.replace_substring_regex(whole, pattern=_FRACTION, replacement="")
        found = short.cast(_BYTES)
        if kind == t.TIMESTAMPTZ:
            found = pc.binary_join_element_wise(found, offsets, _EMPTY)
        return found
    if isinstance(kind, t.Numeric):
        whole = column.cast(pa.large_string())
        if not pc.any(pc.match_substring(whole, "E")).as_py():  # 0E-9: not as PostgreSQL does
            return whole.cast(_BYTES)
    return _each(column, _write_text, kind)


def _binary(column: pa.Array, kind: Type) -> pa.Array:
    """Return a column as PostgreSQL's binary formats."""
    if kind in {t.TEXT, t.JSON, t.BYTEA, t.UNKNOWN, t.CHAR}:
        return column.cast(_BYTES)
    numbers = None
    if kind in _SWAPPED:
        numbers = _numbers(column).astype(_SWAPPED[kind])
    elif kind == t.DATE:
        numbers = (_numbers(column.cast(pa.int32())) - _DAYS).astype(">i4")
    elif kind in {t.TIMESTAMP, t.TIMESTAMPTZ}:
        numbers = (_numbers(column.cast(pa.int64())) - _MICROSECONDS).astype(">i8")
    if numbers is None:
        return _each(column, binary.write, kind)
    found = _fixed(numbers)
    return pc.if_else(column.is_valid(), found, pa.scalar(None, _BYTES))


def _numbers(column: pa.Array) -> np.ndarray[Any, Any]:
    return np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False))
