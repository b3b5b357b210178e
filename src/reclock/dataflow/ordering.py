"""ORDER BY as numbers: the rank of each value of a column, by PostgreSQL's order.

Definition. ``ranks`` of a column are integers that sort as the column does: NaN after
every number, then NULL where it is asked for; equal values have equal ranks. Text is
compared by code points, arrays element by element, structs by the names of their fields.

``order_of`` sorts rows by some columns, and rows that these do not tell apart by all
columns, in their order, ascending, NULLs last: the order of rows is a function of the rows
alone, whenever and wherever they are sorted.

Cost: a sort per column of ORDER BY in Arrow, and one of all together. The other columns are
ranked of the rows alone that ORDER BY does not tell apart. Types that Arrow does not order are
ordered in Python.

Tests: tests/dataflow/test_ordering.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.column import canonical, validity
from reclock.change.value import sort_key

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from reclock.arrangement.layout import Int64s


_LIMIT: Final = 1 << 62
_NARROW: Final = 1 << 24
"""Integers in so narrow a range need no sort: three columns of them still fit one number."""


@dataclass(frozen=True, slots=True)
class OrderBy:
    """One column of ORDER BY; ``nulls_first`` is PostgreSQL's when it equals ``descending``."""

    column: int
    descending: bool = False
    nulls_first: bool = False


def ranks(column: pa.Array, *, descending: bool = False, nulls_first: bool = False) -> Int64s:
    """Return numbers that sort as the values do.

    >>> ranks(pa.array([2.0, None, float("nan")])).tolist()
    [1, 4, 2]
    >>> ranks(pa.array([2.0, None, float("nan")]), descending=True, nulls_first=True).tolist()
    [-1, -4, -2]
    """
    size = len(column)
    made = _ascending(canonical(column))
    if descending:
        made = -made
    valid = validity(column)
    if valid is not None:
        made[~valid] = -size - 1 if nulls_first else size + 1
    return made


def _ascending(column: pa.Array) -> Int64s:
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.int64)
    if pa.types.is_nested(kind) or pa.types.is_interval(kind):
        keys = [sort_key(value) for value in column.to_pylist()]
        place = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        return np.array([place[key] for key in keys], np.int64)
    if pa.types.is_integer(kind) and column.null_count == 0 and len(column):
        numbers: Int64s = column.cast(pa.int64(), safe=False).to_numpy()
        if not pa.types.is_uint64(kind) and int(numbers.max()) - int(numbers.min()) < _NARROW:
            own: Int64s = numbers - numbers.min() + 1  # they are their own ranks
            return own
    ranked = pc.rank(column, tiebreaker="dense").cast(pa.int64())
    made: Int64s = ranked.to_numpy().copy()
    return made


def order_of(
    rows: Sequence[pa.Array],
    order: Sequence[OrderBy],
    first: Int64s,
    at: Int64s,
    alike: Collection[int] = (),
) -> Int64s:
    """Return the order of entries by ``first``, then by the row each has in ``at``.

    Rows are ranked once, however many entries share them. The columns ``alike`` do not
    differ between entries with the same ``first``, and are not looked at.
    """
    by = [
        ranks(rows[o.column], descending=o.descending, nulls_first=o.nulls_first)
        for o in order
        if o.column not in alike
    ]
    made = _sorted(by, first, at)
    said = {*alike, *(o.column for o in order)}
    others = [column for i, column in enumerate(rows) if i not in said]
    if others:
        _sort_tied(made, others, by, first, at)
    return made


def _sort_tied(
    made: Int64s, others: Sequence[pa.Array], by: Sequence[Int64s], first: Int64s, at: Int64s
) -> None:
    """Sort by other columns, in place, what the ranks do not tell apart."""
    row, group = at[made], first[made]
    same = group[1:] == group[:-1]
    for rank in by:
        same &= rank[row[1:]] == rank[row[:-1]]
    if not (same & (row[1:] != row[:-1])).any():
        return
    some = np.flatnonzero(np.append(same, False) | np.append(False, same))
    run = np.cumsum(np.append(True, ~same))[some]
    few, places = np.unique(row[some], return_inverse=True)
    chosen = pa.array(few)
    own = [ranks(column.take(chosen)) for column in others]
    made[some] = made[some[_sorted(own, run, places)]]


def _sorted(by: Sequence[Int64s], first: Int64s, at: Int64s) -> Int64s:
    """Return the order of entries by ``first``, then by the ranks of their rows."""
    ranked = _joint(by)
    if ranked is None or len(first) == 0:
        return np.lexsort([*(rank[at] for rank in reversed(by)), first])
    width = int(ranked.max(initial=0)) + 1
    if (int(first.max()) + 1) * width >= _LIMIT:
        return np.lexsort((ranked[at], first))
    # What one number does not tell apart is tied, or the same row: it may stay in any order.
    return np.argsort(first * width + ranked[at])


def _joint(by: Sequence[Int64s]) -> Int64s | None:
    """Return numbers from 0 on that sort as the ranks, taken together, do; None if too large."""
    if not by:
        return None
    made = np.zeros(len(by[0]), np.int64)
    most = 1
    for rank in by:
        low = int(rank.min(initial=0))
        width = int(rank.max(initial=0)) - low + 1
        most *= width
        if most >= _LIMIT:
            return None
        made = made * width + (rank - low)
    return made
