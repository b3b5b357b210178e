"""The first rows of each group: ORDER BY … LIMIT … OFFSET, DISTINCT ON.

Rule. A function of whole groups (``groups``): of each version, the rows in order, of which
those at places ``offset ≤ place < offset + limit`` are kept. A row that occurs three times
takes three places. Rows that ORDER BY does not tell apart are in the order of all their
columns, ascending, NULLs last (``ordering``), so that the result depends on the contents
and not on arrival.

All versions of all groups are sorted at once. Cost: the changed groups; ``minmax`` shows
how to make it flat in their size.

Tests: tests/dataflow/test_topk.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reclock.dataflow.operators.groups import differences, snapshots
from reclock.dataflow.ordering import order_of
from reclock.errors import InvalidValue

if TYPE_CHECKING:
    import pyarrow as pa

    from reclock.dataflow.keying import Keying
    from reclock.dataflow.operators.groups import Snapshots
    from reclock.dataflow.ordering import OrderBy
    from reclock.dataflow.trace import Trace


@dataclass(frozen=True)
class TopK:
    """Of each group by the key of ``keying``, the rows in these places; no limit: all."""

    keying: Keying
    order: tuple[OrderBy, ...]
    limit: int | None
    offset: int = 0

    def __post_init__(self) -> None:
        """Refuse places that do not exist."""
        if self.offset < 0 or (self.limit is not None and self.limit < 0):
            message = f"limit {self.limit} offset {self.offset} is negative"
            raise InvalidValue(message)

    def step(self, delta: pa.RecordBatch, trace: Trace) -> pa.RecordBatch:
        """Return the change of the kept rows; ``trace`` is the input's, by the group key."""
        snaps = snapshots(delta, trace, self.keying)
        return differences(snaps, self.kept(snaps))

    def kept(self, snaps: Snapshots) -> pa.RecordBatch:
        """Return the rows that each version keeps, with their counts."""
        key = self.keying.key  # the same in all rows of a version
        order = order_of(snaps.rows, self.order, snaps.version, snaps.row, key)
        version, count = snaps.version[order], snaps.count[order]
        before = np.cumsum(count) - count
        starts = np.flatnonzero(np.append(True, version[1:] != version[:-1])[: len(version)])
        sizes = np.diff(np.append(starts, len(version)))
        before -= np.repeat(before[starts], sizes)
        last = before + count
        if self.limit is not None:
            last = np.minimum(last, self.offset + self.limit)
        kept = last - np.maximum(before, self.offset)
        some = np.flatnonzero(kept > 0)
        return snaps.select(order[some], kept[some])
