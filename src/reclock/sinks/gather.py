"""Closed timestamps, gathered into groups that are one transaction each.

Definition. A group is all updates with times in ``[frontier, end)``. Its end is such that

    no timestamp is split                       read_committed readers see it whole
    it has at most ``rows`` and ``bytes``       unless its first timestamp alone has more
    it is not less than it could be             few transactions when there is much to write

Updates come as batches of whole timestamps, ascending. Those before the frontier are written
already and are dropped: a reading may begin earlier than it must. What is read ahead of a group's
end is kept for the next one, so nothing is read twice; after a failure all is read again.

Cost: of each batch its times are looked at once, rows are sliced, not copied, until a group is
put together.

Tests: tests/sinks/test_gather.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from reclock.errors import InvalidValue
from reclock.time.frontier import CLOSED, at
from reclock.time.timestamp import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reclock.time.frontier import Frontier


@dataclass(frozen=True, slots=True)
class Limits:
    """What one transaction may have, in rows and bytes as they are stored."""

    rows: int = 500_000
    bytes: int = 128 << 20

    def __post_init__(self) -> None:
        """Refuse limits that allow nothing."""
        if self.rows < 1 or self.bytes < 1:
            message = "a transaction must be allowed at least one row and one byte"
            raise InvalidValue(message)


class Group(NamedTuple):
    """All updates of the times up to ``end``, which is beyond them; None if there are none."""

    updates: pa.RecordBatch | None
    end: Frontier
    times: int


class Gathering:
    """What is read of the changes in ``[frontier, upper)``, and not in a group yet."""

    def __init__(self, frontier: Frontier, upper: Frontier, batches: Iterable[pa.RecordBatch]):
        self._frontier = frontier
        self.upper: Final = upper
        self._batches: Iterator[pa.RecordBatch] = iter(batches)
        self._ahead: pa.RecordBatch | None = None
        self._last = -1

    def next(self, limits: Limits) -> Group:
        """Return the next group; its end is ``upper`` if it is the last one."""
        parts: list[pa.RecordBatch] = []
        rows, size, times = 0, 0.0, 0
        while rows < limits.rows and size < limits.bytes:
            batch = self._take()
            if batch is None:
                return self._group(parts, self.upper, times)
            moments = batch.column(batch.num_columns - 2).to_numpy()
            each = max(batch.nbytes / batch.num_rows, 1.0)
            allowed = int(min(limits.rows - rows, (limits.bytes - size) / each))
            ends = np.append(np.flatnonzero(np.diff(moments)) + 1, batch.num_rows)
            kept = int(np.searchsorted(ends, allowed, side="right"))
            if kept == 0 and parts:
                self._ahead = batch
                break
            kept = max(kept, 1)
            cut = int(ends[kept - 1])
            parts.append(batch.slice(0, cut))
            rows, size, times = rows + cut, size + cut * each, times + kept
            if cut < batch.num_rows:
                self._ahead = batch.slice(cut)
                break
        last = int(parts[-1].column(parts[-1].num_columns - 2)[-1].as_py())
        return self._group(parts, CLOSED if last == INT64_MAX else at(last + 1), times)

    def _group(self, parts: list[pa.RecordBatch], end: Frontier, times: int) -> Group:
        return Group(pa.concat_batches(parts) if parts else None, end, times)

    def _take(self) -> pa.RecordBatch | None:
        """Return the next batch with updates that count, sorted by time."""
        if self._ahead is not None:
            batch, self._ahead = self._ahead, None
            return batch
        for batch in self._batches:
            wanted = self._wanted(batch)
            if wanted.num_rows:
                return wanted
        return None

    def _wanted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.num_rows == 0:
            return batch
        times = batch.column(batch.num_columns - 2).to_numpy()
        if (np.diff(times) < 0).any():
            batch = batch.take(np.argsort(times, kind="stable"))
            times = batch.column(batch.num_columns - 2).to_numpy()
        first, last = int(times[0]), int(times[-1])
        if first <= self._last or not _before(last, self.upper):
            message = "changes for a sink are not whole timestamps in their order"
            detail = f"times {first} to {last} after {self._last}, where {self.upper} is the end"
            raise InvalidValue(message, detail=detail)
        self._last = last
        if self._frontier.is_closed:
            return batch.slice(0, 0)
        return batch.slice(int(np.searchsorted(times, int(self._frontier.element()))))


def _before(time: int, frontier: Frontier) -> bool:
    return frontier.is_closed or time < frontier.element()
