"""Values of PostgreSQL as columns of ours: from the texts of the log, and from binary copies.

Definition. ``from_texts`` and ``from_arrow`` give the same column for the same values, however
they came: what a row is does not depend on whether it was copied or streamed. A value that its
type here cannot hold (NaN in a numeric, more digits than 38, a date after 9999, infinity) has a
fault, which is the same text both ways and names the column; it is never rounded or cut.

Cost: vectorised; Python looks at single values only where a fast way is not sure, and at
intervals, JSON, arrays and bytes.

Tests: tests/connectors/postgres/test_values.py.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reclock.connectors.format import literal, vector
from reclock.connectors.format.batch import Unsure
from reclock.connectors.format.decoder import Fault
from reclock.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.connectors.format.decoder import Field

    Faults = dict[int, str]

_SLOW: Final = frozenset({t.JSON, t.INTERVAL, t.BYTEA})
_UTC: Final = "+00"
_FIRST, _LAST = literal.FIRST_DAY * literal.DAY, (literal.LAST_DAY + 1) * literal.DAY - 1


def fault_of(field: Field) -> str:
    """Return what is said of a value that a column cannot hold."""
    return f'column "{field.name}" has a value that type {field.type} cannot hold'


def from_texts(
    texts: Sequence[bytes | None], field: Field, faults: Faults, *, exact: bool = False
) -> pa.Array:
    """Return the column that texts stand for, and note the rows that it cannot hold.

    ``exact``: numbers with more digits than the type has are not rounded.
    """
    column = pa.array(texts, pa.binary()).cast(pa.string())
    return from_strings(column, field, faults, exact=exact)


def from_strings(
    column: pa.Array, field: Field, faults: Faults, *, exact: bool = False
) -> pa.Array:
    """Return the column that strings stand for."""
    kind = field.type
    if kind == t.TEXT:
        return column
    if not isinstance(kind, t.Array) and kind not in _SLOW:
        try:
            made = _fast(column, kind)
            return made if made.type == field.arrow else made.cast(field.arrow)
        except (Unsure, pa.ArrowInvalid, pl.exceptions.PolarsError):
            pass
    read = literal.reader_of(kind)
    values: list[object] = []
    for at, text in enumerate(column.to_pylist()):
        value = None
        if text is not None:
            try:
                value = read(text)
                if exact and _is_cut(text, value):
                    faults.setdefault(at, fault_of(field))
                    value = None
            except (Fault, ArithmeticError):
                faults.setdefault(at, fault_of(field))
        values.append(value)
    return pa.array(values, field.arrow)


def _is_cut(text: str, value: object) -> bool:
    """Return whether a number, or one in an array, has more digits than were read."""
    if isinstance(value, list):
        texts = literal.reader_of(t.Array(t.TEXT))(text)
        assert isinstance(texts, list)
        pairs = zip(texts, value, strict=True)
        return any(_is_cut(said, one) for said, one in pairs if one is not None)
    return isinstance(value, Decimal) and Decimal(text) != value


def _fast(column: pa.Array, kind: t.Type) -> pa.Array:
    if kind == t.TIMESTAMPTZ and pc.all(pc.ends_with(column, _UTC)).as_py() is not False:
        local = pc.utf8_slice_codeunits(column, 0, -len(_UTC))
        return vector.from_text(local, kind)
    return vector.from_text(column, kind)


def from_arrow(column: pa.Array, field: Field, faults: Faults) -> pa.Array:
    """Return a column that was copied in binary as one of ours."""
    if field.type in t.DATETIMES:
        wide = column.cast(pa.int32()).cast(pa.int64()) if field.type == t.DATE else column
        numbers = wide.cast(pa.int64())
        low, high = (
            (literal.FIRST_DAY, literal.LAST_DAY) if field.type == t.DATE else (_FIRST, _LAST)
        )
        ends = pc.min_max(numbers)
        least, most = ends["min"].as_py(), ends["max"].as_py()
        if least is not None and not low <= least <= most <= high:
            wrong = pc.fill_null(pc.or_(pc.less(numbers, low), pc.greater(numbers, high)), False)
            for at in pc.indices_nonzero(wrong).to_pylist():
                faults.setdefault(at, fault_of(field))
            column = pc.if_else(wrong, pa.scalar(None, column.type), column)
    return column if column.type == field.arrow else column.cast(field.arrow)
