"""Bring the updates of equal keys together, in the order of their times.

Definition. ``group`` sorts updates by (kh, key, time); a *group* is the updates of one
key, a *segment* those of one key and time. Segments of a group follow one another, and so
do the updates of a segment: sums per segment are one ``reduceat``, and what holds after
each changed time is a running sum over the segments of a group (``running``).

Hashes bring keys together, keys are compared exactly: two keys of one hash cost a sort of
the key bytes, not correctness. Cost: one sort; no step per row.

Tests: tests/dataflow/test_grouping.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.row import row_bytes, rows_equal
from reclock.dataflow.delta import out_of_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from reclock.arrangement.layout import Int64s


@dataclass(frozen=True, slots=True)
class Groups:
    """Updates in order, and where segments and groups begin.

    ``order`` are the updates; ``segments`` indexes into it, ``groups`` into the segments;
    ``group_of`` is the group of each segment.
    """

    order: Int64s
    segments: Int64s
    groups: Int64s
    group_of: Int64s

    @property
    def first_rows(self) -> Int64s:
        """One update of each group, by which to read its key."""
        return self.order[self.segments[self.groups]]

    @property
    def segment_rows(self) -> Int64s:
        """One update of each segment, by which to read its time."""
        return self.order[self.segments]

    @property
    def last_segments(self) -> Int64s:
        """The last segment of each group."""
        return np.append(self.groups[1:], len(self.segments))[: len(self.groups)] - 1

    @property
    def is_first(self) -> npt.NDArray[np.bool_]:
        """Whether each segment is the first of its group."""
        first = np.zeros(len(self.segments), np.bool_)
        first[self.groups] = True
        return first


def group(kh: Int64s, keys: Sequence[pa.Array], time: Int64s) -> Groups:
    """Return updates with these keys, in canonical form, and times as groups and segments."""
    size = len(kh)
    if size == 0:
        return Groups(kh, kh, kh, kh)
    one_time = bool((time == time[0]).all())
    order = np.argsort(kh, kind="stable") if one_time else np.lexsort((time, kh))
    hashes = kh[order]
    new_group = np.ones(size, np.bool_)
    new_group[1:] = hashes[1:] != hashes[:-1]
    alike = np.flatnonzero(~new_group)
    if alike.size and keys:
        one, other = pa.array(order[alike - 1]), pa.array(order[alike])
        if not rows_equal([c.take(one) for c in keys], [c.take(other) for c in keys]).all():
            order, new_group = _collided(kh, keys, time)
    at = time[order]
    new_segment = new_group.copy()
    new_segment[1:] |= at[1:] != at[:-1]
    segments = np.flatnonzero(new_segment)
    group_starts = new_group[segments]
    return Groups(
        order, segments, np.flatnonzero(group_starts), np.cumsum(group_starts, dtype=np.int64) - 1
    )


def _collided(
    kh: Int64s, keys: Sequence[pa.Array], time: Int64s
) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """Return the order by (kh, key bytes, time), and where a new key begins."""
    rank = pc.rank(row_bytes(keys), tiebreaker="dense").to_numpy(zero_copy_only=False)
    order = np.lexsort((time, rank, kh))
    new = np.ones(len(order), np.bool_)
    k, r = kh[order], rank[order]
    new[1:] = (k[1:] != k[:-1]) | (r[1:] != r[:-1])
    return order, new


def running(sums: npt.NDArray[Any], starts: Int64s, base: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return per segment: ``base`` of its group, plus the sums up to it in its group.

    ``starts`` are the first segments of the groups. The caller sees to it that no partial
    sum overflows.
    """
    made: npt.NDArray[Any] = base + sums if len(starts) == len(sums) else np.cumsum(sums)
    if len(starts) < len(sums):
        before = base - (made[starts] - sums[starts])
        made += np.repeat(before, np.diff(np.append(starts, len(sums))))
    return made


def counted(index: Int64s, diff: Int64s, size: int) -> Int64s:
    """Return the sum of the diffs for each index in ``range(size)``, exactly."""
    sums = np.zeros(size, np.int64)
    check_sum(diff)
    np.add.at(sums, index, diff)
    return sums


def check_sum(*parts: Int64s) -> None:
    """Refuse diffs of which some sum might not fit into int64."""
    if sum(float(np.abs(part.astype(np.float64)).sum()) for part in parts) >= 2.0**62:
        raise out_of_range()
