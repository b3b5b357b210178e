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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from reclock.errors import InvalidValue
from reclock.time.frontier import CLOSED, at
from reclock.time.timestamp import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from reclock.time.frontier import Frontier

    Changes = Callable[[Frontier, Frontier], Iterable[pa.RecordBatch]]
    """Consolidated updates of [lower, upper) as deltas of whole timestamps, ascending."""


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


class Gatherer:
    """Makes groups, one after another; what is read and not in a group yet is kept.

    ``changes`` is asked, and read, within one call of ``next``: the world it looks at may be
    another one in the next.
    """

    def __init__(self) -> None:
        self._ahead: pa.RecordBatch | None = None

    def forget(self) -> None:
        """Keep nothing: all is read again."""
        self._ahead = None

    def next(self, frontier: Frontier, upper: Frontier, changes: Changes, limits: Limits) -> Group:
        """Return the group from ``frontier`` on; its end is ``upper`` if there is nothing more."""
        parts: list[pa.RecordBatch] = []
        rows, size, times = 0, 0.0, 0
        batches = self._batches(frontier, upper, changes)
        while rows < limits.rows and size < limits.bytes:
            batch = next(batches, None)
            if batch is None:
                return Group(pa.concat_batches(parts) if parts else None, upper, times)
            moments = times_of(batch)
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
        return Group(pa.concat_batches(parts), _after(parts[-1]), times)

    def _batches(
        self, frontier: Frontier, upper: Frontier, changes: Changes
    ) -> Iterator[pa.RecordBatch]:
        """Yield what was read ahead, then what is read: updates that count, sorted by time."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and _after(ahead).precedes(upper):
            yield ahead
            frontier = _after(ahead)
        if not frontier.strictly_precedes(upper):
            return
        last = -1
        for batch in changes(frontier, upper):
            if batch.num_rows == 0:
                continue
            times = times_of(batch)
            if (np.diff(times) < 0).any():
                batch = batch.take(np.argsort(times, kind="stable"))  # noqa: PLW2901 - the same
                times = times_of(batch)
            if times[0] <= last or not _after(batch).precedes(upper):
                message = "changes for a sink are not whole timestamps in their order"
                detail = f"times {times[0]} to {times[-1]} after {last}, to be before {upper}"
                raise InvalidValue(message, detail=detail)
            last = int(times[-1])
            wanted = batch.slice(int(np.searchsorted(times, int(frontier.element()))))
            if wanted.num_rows:
                yield wanted


def times_of(delta: pa.RecordBatch) -> NDArray[np.int64]:
    """Return the times of a delta's updates."""
    times: NDArray[np.int64] = delta.column(delta.num_columns - 2).to_numpy()
    return times


def _after(batch: pa.RecordBatch) -> Frontier:
    """Return the frontier just after the last time of a batch."""
    last = int(times_of(batch)[-1])
    return CLOSED if last == INT64_MAX else at(last + 1)
