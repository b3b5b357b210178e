"""CSV as COPY reads and writes it: records of texts, NULL where nothing stands and is not quoted.

Bytes come in pieces of any size. ``Records`` cuts them where a record ends: at a line end outside
of quotes. ``read_csv`` has Arrow read whole records, and ``typed`` turns texts into values, numbers
by Arrow too. Memory: a piece and the record that it ends in.

Unlike PostgreSQL, quotes count only at the beginning of a value.

Tests: tests/rows/test_copy_csv.py, tests/server/test_copy_formats.py.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from reclock.dataflow.types import arrow_type
from reclock.errors import InvalidValue
from reclock.rows.copy_text import text_of, utf8
from reclock.rows.given import column_from
from reclock.rows.plain_values import plain_values
from reclock.sql.types import TEXT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.sql.schema import Column
    from reclock.sql.statement.copy import CopyFormat
    from reclock.sql.types import Type

_BLOCK: Final = 1 << 30


class Records:
    """Cuts what comes where a record ends."""

    def __init__(self, form: CopyFormat) -> None:
        self._quote = form.quote.encode()
        escape = form.escape.encode()
        self._escaped = None
        if escape != self._quote:
            self._escaped = re.compile(re.escape(escape) + b".", re.DOTALL)
        self._rest = b""

    def cut(self, data: bytes) -> bytes:
        """Return the records that are whole now."""
        whole = self._rest + data
        end = whole.rfind(b"\n")
        while end >= 0 and not self._is_outside(whole[: end + 1]):
            end = whole.rfind(b"\n", 0, end)
        self._rest = whole[end + 1 :]
        return whole[: end + 1]

    def end(self) -> bytes:
        """Return what is left: the last record may have no line end."""
        rest, self._rest = self._rest, b""
        if not self._is_outside(rest):
            message = "unterminated CSV quoted field"
            raise InvalidValue(message, code="22P04")
        return b"" if rest.strip(b"\r\n") in {b"", b"\\."} else rest

    def first(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the first record, and the others."""
        end = data.find(b"\n")
        while end >= 0 and not self._is_outside(data[: end + 1]):
            end = data.find(b"\n", end + 1)
        return (data, b"") if end < 0 else (data[: end + 1], data[end + 1 :])

    def _is_outside(self, data: bytes) -> bool:
        """Return whether whole records, or the beginning of one, end outside of quotes."""
        plain = data if self._escaped is None else self._escaped.sub(b"", data)
        return plain.count(self._quote) % 2 == 0


def read_csv(data: bytes, form: CopyFormat, names: Sequence[str], before: int) -> pa.RecordBatch:
    """Return whole records as columns of text; ``before`` records came before."""
    width = len(names)
    wrong: list[Any] = []

    def refused(row: Any) -> str:
        wrong.append(row)
        return "error"

    if data.endswith(b"\n\\.\n"):
        data = data[:-3]
    columns = [f"c{i}" for i in range(width)]
    if form.escape != form.quote:
        data = _doubled(data, form)
    try:
        found = csv.read_csv(
            pa.py_buffer(data),
            csv.ReadOptions(column_names=columns, block_size=_BLOCK, use_threads=False),
            csv.ParseOptions(
                delimiter=form.delimiter,
                quote_char=form.quote,
                double_quote=True,
                escape_char=False,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=refused,
            ),
            csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                null_values=[form.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        if wrong:
            few = wrong[0].actual_columns < width
            message = "missing data for a column" if few else "extra data after last column"
            at = "" if wrong[0].number is None else f"line {before + wrong[0].number}: "
            detail = f"{at}{wrong[0].actual_columns} values for {width} columns"
            raise InvalidValue(message, code="22P04", detail=detail) from error
        utf8(data)  # says which byte is wrong
        message = "CSV that cannot be read"
        raise InvalidValue(message, code="22P04", detail=f"after line {before}: {error}") from error
    made = []
    for name, column in zip(names, found.columns, strict=True):
        texts = column.combine_chunks()
        if isinstance(texts, pa.ChunkedArray):
            texts = (
                pa.concat_arrays(texts.chunks) if texts.num_chunks else pa.array([], pa.string())
            )
        if name in form.force_not_null:
            texts = pc.fill_null(texts, form.null)
        if name in form.force_null:
            texts = pc.if_else(pc.equal(texts, form.null), pa.scalar(None, pa.string()), texts)
        made.append(texts)
    return pa.RecordBatch.from_arrays(made, columns)


def marked(data: bytes, form: CopyFormat, names: Sequence[str]) -> pa.RecordBatch | None:
    """Return which values of whole records are defaults, as NULLs; None if none can be."""
    if form.default is None or form.default.encode() not in data:
        return None
    plain = replace(form, null=form.default, force_null=(), force_not_null=())
    return read_csv(data, plain, names, 0)


def _doubled(data: bytes, form: CopyFormat) -> bytes:
    """Return records in which a quote within quotes is two, whatever it was escaped by."""
    quote, escape = form.quote.encode(), form.escape.encode()
    q, e = re.escape(quote), re.escape(escape)
    escaped = re.compile(e + b"([" + e + q + b"])")

    def rewritten(found: re.Match[bytes]) -> bytes:
        inside = escaped.sub(lambda m: m[1] * 2 if m[1] == quote else m[1], found[1])
        return quote + inside + quote

    quoted = q + b"((?:" + e + b"[" + e + q + b"]|[^" + q + b"])*)" + q
    return re.sub(quoted, rewritten, data)


def typed(texts: pa.Array, column: Column) -> pa.Array:
    """Return texts as values of a column."""
    if column.type == TEXT:
        if texts.null_count < len(texts) and pc.any(pc.match_substring(texts, "\0")).as_py():
            utf8(b"\0")
        return texts.cast(arrow_type(column.type))
    found = plain_values(texts, column.type)
    return column_from(texts.to_pylist(), column) if found is None else found


def csv_line(
    row: Sequence[Any], kinds: Sequence[Type], form: CopyFormat, names: Sequence[str]
) -> str:
    """Return a row as a record."""
    values = []
    for value, kind, name in zip(row, kinds, names, strict=True):
        if value is None:
            values.append(form.null)
            continue
        text = text_of(value, kind)
        forced = form.force_quote is None or name in form.force_quote
        special = (form.delimiter, form.quote, "\r", "\n")
        marks = text == form.null or (text == "\\." and len(row) == 1)
        if forced or marks or any(c in text for c in special):
            for character in dict.fromkeys((form.escape, form.quote)):
                text = text.replace(character, form.escape + character)
            text = f"{form.quote}{text}{form.quote}"
        values.append(text)
    return form.delimiter.join(values) + "\n"
