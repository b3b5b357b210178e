"""Deltas: the changes that flow between operators, as Arrow batches.

Definition. A delta over columns of some types is a record batch, addressed by position::

    c0, …, c{n−1}: the user's columns, time: int64, diff: int64

Names carry no meaning. A delta is "as stored": it may hold a row several times, and
updates that cancel. ``consolidated`` leaves one update per (row, time), sorted by hash.

Here are also the operators that need nothing but the change, since the sum of the images
is the image of the sum: ``union``, ``negate``, ``permute``, ``mask``. Their cost is that of
the columns they touch.

Diffs are int64 and never wrap: what does not fit is ``out_of_range`` (22003).

Tests: tests/dataflow/test_delta.py.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa

from reclock.arrangement.column import canonical
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.fingerprint import fingerprint
from reclock.arrangement.layout import DIFF, TIME, Layout, diff_of
from reclock.arrangement.stream import concat
from reclock.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reclock.arrangement.layout import Int64s

Types: TypeAlias = tuple[pa.DataType, ...]
"""The types of a delta's user columns."""

_LEAST: Final = np.iinfo(np.int64).min


@lru_cache(maxsize=4096)
def schema_of(types: Types) -> pa.Schema:
    """Return the schema of deltas over these types.

    >>> schema_of((pa.string(), pa.int32())).names
    ['c0', 'c1', 'time', 'diff']
    """
    return pa.schema([*(pa.field(f"c{i}", kind) for i, kind in enumerate(types)), TIME, DIFF])


def build(
    columns: Iterable[pa.Array], time: Int64s | pa.Array, diff: Int64s | pa.Array
) -> pa.RecordBatch:
    """Put a delta together from its user columns, times and diffs."""
    user = list(columns)
    schema = schema_of(tuple(column.type for column in user))
    times, diffs = (x if isinstance(x, pa.Array) else pa.array(x) for x in (time, diff))
    return pa.RecordBatch.from_arrays([*user, times, diffs], schema=schema)


@lru_cache(maxsize=4096)
def empty(types: Types) -> pa.RecordBatch:
    """Return the delta without updates."""
    none = np.empty(0, np.int64)
    return build([pa.array([], kind) for kind in types], none, none)


def rows_of(delta: pa.RecordBatch) -> list[pa.Array]:
    """Return the user columns; ``time_of`` and ``diff_of`` of ``layout`` give the others."""
    columns: list[pa.Array] = delta.columns
    return columns[:-2]


def types_of(delta: pa.RecordBatch) -> Types:
    """Return the types of the user columns."""
    return tuple(delta.schema.types[:-2])


def union(deltas: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return all updates of at least one delta of the same types: UNION ALL."""
    return concat([delta for delta in deltas if delta.num_rows] or deltas[:1])


def negate(delta: pa.RecordBatch) -> pa.RecordBatch:
    """Return the delta that undoes this one."""
    diff = diff_of(delta)
    if (diff == _LEAST).any():
        raise out_of_range()
    return build(rows_of(delta), delta.column(delta.num_columns - 2), -diff)


def permute(delta: pa.RecordBatch, columns: Sequence[int | pa.Array]) -> pa.RecordBatch:
    """Return the delta with these user columns, or constants: a projection that computes nothing.

    A constant is an array of one value.
    """
    rows = rows_of(delta)
    every = pa.array(np.zeros(delta.num_rows, np.int64))
    moved = [rows[at] if isinstance(at, int) else at.take(every) for at in columns]
    return build(moved, *delta.columns[-2:])


def mask(delta: pa.RecordBatch, keep: pa.Array) -> pa.RecordBatch:
    """Return the updates for which the boolean ``keep`` is true; NULL is not true."""
    return delta.filter(keep)


def consolidated(delta: pa.RecordBatch) -> pa.RecordBatch:
    """Return one update per (row, time), without zeros, in canonical form and order.

    >>> d = build([pa.array(["a", "a"])], np.array([3, 3]), np.array([2, -2]))
    >>> consolidated(d).num_rows
    0
    """
    if delta.num_rows == 0:
        return delta
    rows = [canonical(column) for column in rows_of(delta)]
    kh = key_hash(rows, delta.num_rows)
    layout = _whole_row(types_of(delta))
    # The hash of the whole row is its fingerprint too: computed once.
    batch = pa.RecordBatch.from_arrays(
        [pa.array(kh), *rows, *delta.columns[-2:]], schema=layout.schema
    )
    made = consolidate(layout, batch, kh.view(np.uint64))
    return build(layout.rows(made), *made.columns[-2:])


@lru_cache(maxsize=4096)
def _whole_row(types: Types) -> Layout:
    return Layout(tuple(schema_of(types))[:-2], ())


def key_hash(columns: Sequence[pa.Array], size: int) -> Int64s:
    """Return ``kh`` of rows in canonical form: their fingerprint as a signed number.

    >>> key_hash([pa.array([1, 1])], 2).tolist()
    [8512134273316695673, 8512134273316695673]
    """
    return fingerprint(columns, size).view(np.int64)


def out_of_range() -> InvalidValue:
    """Return the error for a diff that int64 cannot hold."""
    return InvalidValue("the multiplicity of a row is out of range", code="22003")
