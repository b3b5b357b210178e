"""Sort updates, add up the diffs of equal ones, drop those that come to nothing.

Definition. A batch is *consolidated* when its updates are strictly increasing in::

    (kh, fingerprint of key and value, key and value, time)

with no diff 0. The third place matters only when two different rows share a hash and a
fingerprint; it compares their bytes. The order is total on distinct updates, so the same
multiset of updates always gives the same batch, whatever order it came in: a retried task
writes the same bytes.

Cost: one sort of int64 (linear when the input is a few sorted pieces, as in a merge),
fingerprints and a finer sort of only the rows that share a ``kh``, an exact comparison of
only the neighbours that share a fingerprint. No row is handled by itself in Python.

Tests: tests/arrangement/test_consolidate.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.fingerprint import fingerprint
from reclock.arrangement.layout import diff_of, kh_of, time_of
from reclock.arrangement.row import row_bytes, rows_equal
from reclock.errors import InvalidValue

if TYPE_CHECKING:
    import numpy.typing as npt

    from reclock.arrangement.layout import Int64s, Layout

    Words = npt.NDArray[np.uint64]

_FEW_PIECES: Final = 64


def consolidate(
    layout: Layout, updates: pa.RecordBatch, prints: Words | None = None
) -> pa.RecordBatch:
    """Return the consolidated form of a conformed batch of updates.

    ``prints`` are the fingerprints of the rows, for a caller that has them already.
    """
    size = updates.num_rows
    if size == 0:
        return updates
    kh, time, diff = kh_of(updates), time_of(updates), diff_of(updates)
    order = by_hash(kh)
    tied = _tied(kh[order])
    if prints is None:
        prints = _prints(layout, updates, order[tied])
    _sort_tied(order, tied, kh, prints, time)
    new_row = _row_starts(layout, updates, kh[order], prints[order], order)
    if new_row is None:
        order, new_row = _sort_collided(layout, updates, kh, prints, time)
    at = time[order]
    new_row[1:] |= at[1:] != at[:-1]
    starts = np.flatnonzero(new_row)
    sums = _sums(diff[order], starts)
    kept = sums != 0
    taken = order[starts[kept]]
    if len(taken) == size and np.array_equal(taken, np.arange(size)):
        return updates
    rows = updates.take(pa.array(taken))
    return pa.RecordBatch.from_arrays(
        [*rows.columns[:-1], pa.array(sums[kept])], schema=layout.schema
    )


def by_hash(kh: Int64s) -> npt.NDArray[np.intp]:
    """Return an order of hashes, that of equal ones being any.

    A few sorted pieces are merged; numpy's fastest sort does not see them.
    """
    few = np.count_nonzero(kh[1:] < kh[:-1]) < _FEW_PIECES
    return np.argsort(kh, kind="stable" if few else "quicksort")


def _tied(kh: Int64s | Words) -> npt.NDArray[np.bool_]:
    """Return which of sorted numbers occur more than once."""
    tied = np.zeros(len(kh), np.bool_)
    tie = kh[1:] == kh[:-1]
    tied[1:] = tie
    tied[:-1] |= tie
    return tied


def _prints(layout: Layout, updates: pa.RecordBatch, rows: npt.NDArray[np.intp]) -> Words:
    """Return fingerprints, right for ``rows`` at least: no others are compared."""
    columns, size = layout.rows(updates), updates.num_rows
    if len(rows) > size // 2:
        return fingerprint(columns, size)
    prints = np.zeros(size, np.uint64)
    chosen = pa.array(rows)
    prints[rows] = fingerprint([column.take(chosen) for column in columns], len(rows))
    return prints


def _sort_tied(
    order: npt.NDArray[np.intp],
    tied: npt.NDArray[np.bool_],
    kh: Int64s,
    prints: Words,
    time: Int64s,
) -> None:
    """Refine ``order``, which is by kh, to (kh, fingerprint, time), in place."""
    some = order[tied]
    k, p, t = kh[some], prints[some], time[some]
    later = (k[1:] > k[:-1]) | (p[1:] > p[:-1]) | ((p[1:] == p[:-1]) & (t[1:] >= t[:-1]))
    if later.all():
        return
    # One sort of one number: which hash it is, then as much of the fingerprint as fits.
    nth = np.zeros(len(k), np.uint64)
    np.cumsum(k[1:] != k[:-1], out=nth[1:])
    bits = np.uint64(int(nth[-1]).bit_length())
    joint = (nth << (np.uint64(64) - bits)) | (p >> bits) if bits else p
    sort = np.argsort(joint)
    joint = joint[sort]
    # The few that it does not tell apart, by all there is.
    alike = np.flatnonzero(_tied(joint))
    if alike.size:
        few = sort[alike]
        sort[alike] = few[np.lexsort((few, t[few], p[few], joint[alike]))]
    order[tied] = some[sort]


def _row_starts(
    layout: Layout,
    updates: pa.RecordBatch,
    kh: Int64s,
    prints: Words,
    order: npt.NDArray[np.intp],
) -> npt.NDArray[np.bool_] | None:
    """Return where a row differs from the one before it.

    ``None`` when rows that differ share a fingerprint, so equal ones may not be neighbours.
    """
    new_row = np.ones(len(order), np.bool_)
    new_row[1:] = (kh[1:] != kh[:-1]) | (prints[1:] != prints[:-1])
    rows = layout.rows(updates)
    alike = np.flatnonzero(~new_row)
    if alike.size and rows:
        one, other = pa.array(order[alike - 1]), pa.array(order[alike])
        equal = rows_equal([c.take(one) for c in rows], [c.take(other) for c in rows])
        if not equal.all():
            return None
    return new_row


def _sort_collided(
    layout: Layout, updates: pa.RecordBatch, kh: Int64s, prints: Words, time: Int64s
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return the order with rows compared by their bytes, and where a new row begins."""
    ranked = pc.rank(row_bytes(layout.rows(updates)), tiebreaker="dense")
    rank = ranked.to_numpy(zero_copy_only=False)
    order = np.lexsort((time, rank, prints, kh))
    new_row = np.ones(len(order), np.bool_)
    k, p, r = kh[order], prints[order], rank[order]
    new_row[1:] = (k[1:] != k[:-1]) | (p[1:] != p[:-1]) | (r[1:] != r[:-1])
    return order, new_row


def _sums(diff: Int64s, starts: npt.NDArray[np.intp]) -> Int64s:
    """Return the sum of each group of diffs; one that does not fit is an error, not wrong."""
    sums = np.add.reduceat(diff, starts)
    if len(starts) < len(diff):
        rough = np.add.reduceat(diff.astype(np.float64), starts)
        large = np.abs(rough) >= 2.0**62
        if large.any() and not np.allclose(sums[large], rough[large], rtol=1e-6):
            message = "the multiplicity of a row is out of range"
            raise InvalidValue(message, code="22003")
    return sums
