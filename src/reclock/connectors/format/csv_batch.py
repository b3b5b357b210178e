"""CSV batches by columns: pyarrow splits, ``vector`` converts.

``read_batch`` gives the columns that ``csv_exact`` gives, or raises ``Unsure``: a payload
with a line end in it could be two records, or one with the next; quotes are checked by a
regular expression, because pyarrow takes them anywhere. Types ``interval``, ``json`` and
arrays have no fast way.

Tests: tests/connectors/format/test_csv_property.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from reclock.connectors.format.batch import Sure, Unsure
from reclock.connectors.format.vector import from_text, typed
from reclock.sql import types as t

if TYPE_CHECKING:
    from reclock.connectors.format.decoder import Field
    from reclock.sql.types import Type

_SLOW: Final = frozenset({t.JSON, t.INTERVAL, t.BYTEA, t.UNKNOWN})
_ODD: Final = ("\n", "\r", "\0", "\ufeff")
"""Line ends, and what pyarrow drops or may end at."""


def read_batch(payloads: pa.Array, fields: tuple[Field, ...], delimiter: str) -> Sure:
    """Return the columns of ``payloads``, none of them NULL, all of them good."""
    if not all(_supported(f.type) for f in fields):
        raise Unsure
    if len(fields) > 1 and pc.min(pc.binary_length(payloads)).as_py() == 0:
        raise Unsure  # pyarrow takes an empty line for a record of NULLs
    names = [str(at) for at in range(len(fields))]
    lines = _lines(payloads, delimiter)
    try:
        table = pv.read_csv(
            pa.BufferReader(lines),
            pv.ReadOptions(use_threads=False, block_size=len(lines) + 1, column_names=names),
            pv.ParseOptions(delimiter=delimiter, ignore_empty_lines=False),
            pv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise Unsure from error
    if table.num_rows != len(payloads):
        raise Unsure
    pairs = zip(table.columns, fields, strict=True)
    return Sure(tuple(typed(column, field, from_text) for column, field in pairs))


def _supported(kind: Type) -> bool:
    return isinstance(kind, t.Numeric) or (isinstance(kind, t.Simple) and kind not in _SLOW)


def _lines(payloads: pa.Array, delimiter: str) -> bytes:
    try:
        text = pl.Series(payloads.cast(pa.string()))
    except pa.ArrowInvalid as error:  # not UTF-8
        raise Unsure from error
    joined: str = text.str.join("").item()
    if any(character in joined for character in _ODD):
        raise Unsure
    if '"' in joined:
        between = f"\\x{ord(delimiter):02x}"
        value = rf'(?:[^"{between}]*|"(?:[^"]|"")*")'
        if not text.str.contains(f"^{value}(?:{between}{value})*$").all():
            raise Unsure
    lines: str = text.str.join("\n").item()
    return lines.encode() + b"\n"
