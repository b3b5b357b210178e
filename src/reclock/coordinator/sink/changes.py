"""What a sink has to write: the changes of its relation, whole times, from the runs.

Definition. From a frontier F on, the changes of the times in ``[F, U)``, in pieces of whole
times: about ``PIECE_ROWS`` updates each, or one time that has more. A sink that never wrote
begins with the *snapshot*: all rows at its as-of, at that time.

A relation that has an error at some time has no rows there: a sink can go up to it, and
``reach`` says why no further. When the error is gone, what changed meanwhile is given at the
first time that is right again: a reader of the topic never sees rows of a time that had none.

Cost: a piece reads the runs that overlap it. Tests: tests/coordinator/sink/test_sinks.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.arrangement.layout import time_of
from reclock.arrangement.stream import concat
from reclock.coordinator.subscribe.changes import errors_over, failed
from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import collection_of
from reclock.time.frontier import at
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.coordinator.timeline import TimelineState
    from reclock.errors import ExpressionFailed
    from reclock.ids import ObjectId

PIECE_ROWS: Final = 100_000


@dataclass(frozen=True)
class Reach:
    """How far a sink can go: before ``upper``.

    If ``at`` is set there was an error from the frontier on which is gone at ``at``: everything
    up to there changes at that time. If ``failure`` is, the error is still there.
    """

    upper: Timestamp
    at: Timestamp | None = None
    failure: ExpressionFailed | None = None


@dataclass(frozen=True)
class Changes:
    """The changes of one relation from ``as_of`` on; with a ``snapshot`` of it, or without."""

    item: ObjectId
    as_of: Timestamp
    snapshot: bool = True

    def reach(self, state: TimelineState, lower: Timestamp, upper: Timestamp) -> Reach:
        """Return how far the changes from ``lower`` on can be written; none failed before it."""
        told = None
        for time, error in errors_over(state, self.item, lower, upper):
            if error is None and told is not None:
                return Reach(time.step(), time)
            if error is not None and told is None:
                if time > lower:
                    return Reach(time)
                told = failed(*error, time)
        return Reach(upper) if told is None else Reach(lower, failure=told)

    def of(self, state: TimelineState, lower: Timestamp, reach: Reach) -> Iterator[pa.RecordBatch]:
        """Yield the changes from ``lower`` on, whole times, ascending."""
        if reach.at is not None:
            yield self._at(state, lower, reach.at)
            return
        if lower == self.as_of:
            if self.snapshot:
                shard = state.traces[collection_of(self.item)]
                yield self._delta(state, list(shard.snapshot(self.as_of)))
            lower = lower.step()
        while lower < reach.upper:
            lower, found = self._piece(state, lower, reach.upper)
            yield found

    def _piece(
        self, state: TimelineState, lower: Timestamp, upper: Timestamp
    ) -> tuple[Timestamp, pa.RecordBatch]:
        """Return some changes from ``lower`` on, and the time before which they are."""
        shard = state.traces[collection_of(self.item)]
        batches = list(shard.changes(lower, at(upper)))
        if sum(batch.num_rows for batch in batches) > PIECE_ROWS:
            upper = self._cut(batches, upper)
            batches = [batch.filter(pa.array(time_of(batch) < upper)) for batch in batches]
        return upper, self._delta(state, batches)

    def _at(self, state: TimelineState, lower: Timestamp, time: Timestamp) -> pa.RecordBatch:
        """Return what changed from ``lower`` up to ``time``, as changes at that time."""
        shard = state.traces[collection_of(self.item)]
        found = self._delta(state, list(shard.changes(lower, at(time.step()))))
        times = np.full(found.num_rows, time, np.int64)
        return deltas.consolidated(
            deltas.build(deltas.rows_of(found), times, found.column(found.num_columns - 1))
        )

    def _cut(self, batches: list[pa.RecordBatch], upper: Timestamp) -> Timestamp:
        """Return where the first piece ends: after one time at the least."""
        times = np.concatenate([time_of(batch) for batch in batches])
        found, counts = np.unique(times, return_counts=True)
        beyond = np.flatnonzero(np.cumsum(counts) > PIECE_ROWS)
        place = max(1, int(beyond[0])) if len(beyond) else len(found)
        return Timestamp(int(found[place])) if place < len(found) else upper

    def _delta(self, state: TimelineState, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        keying = state.shape.graph.arrangements[collection_of(self.item)].keying
        if not batches:
            return deltas.empty(keying.types)
        whole = concat(batches)
        order = np.argsort(time_of(whole), kind="stable")
        return keying.restore(whole.take(order))
