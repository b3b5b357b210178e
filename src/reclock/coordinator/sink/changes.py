"""What a sink has to write: the changes of its relation, whole times, from the runs.

Definition. What a topic has before F is its *base*: the rows of the sink's relation at F − 1, or
nothing if the sink never wrote. From F on come the changes of the times in ``[F, U)``, in pieces of
whole times: about ``PIECE_ROWS`` updates each, or one time that has more. Three things come
as a *difference* instead, between the base and the rows at one time, all of it at that time::

    the sink begins                  at its as-of: the snapshot, unless it is not wanted; less
                                     what another database wrote, if it takes over (``recover``)
    ALTER SINK … SET FROM            at the first time that the new relation is written
    the relation had an error        at the first time that is right again

A relation that has an error at some time has no rows there: ``reach`` goes up to it, and says
why no further. A reader of the topic never sees rows of a time that had none. Where the relation
before a change of it ends with an error, the new one takes over from the last right time.

Cost: the runs that overlap are read, one after another, and not merged; of a difference both
contents. Tests: tests/coordinator/sink/test_sinks.py, test_alter.py, test_changes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from reclock.arrangement.layout import time_of
from reclock.arrangement.stream import between, concat
from reclock.coordinator.item import Phase
from reclock.coordinator.subscribe.changes import errors_at, errors_over, failed
from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import collection_of
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from reclock.coordinator.item import Sink
    from reclock.coordinator.timeline import TimelineState
    from reclock.errors import ExpressionFailed
    from reclock.ids import ObjectId
    from reclock.time.timestamp import Timestamp

PIECE_ROWS: Final = 100_000


class Base(NamedTuple):
    """The rows of ``relation`` at ``time``."""

    relation: ObjectId
    time: Timestamp


@dataclass(frozen=True)
class Reach:
    """How far a sink can go: before ``upper``, with the changes of ``relation``.

    If ``at`` is set they begin with a difference to ``base`` there. If ``failure`` is, there is an
    error that has not gone.
    """

    upper: Timestamp
    relation: ObjectId
    at: Timestamp | None = None
    base: Base | None = None
    failure: ExpressionFailed | None = None


class _Right(NamedTuple):
    """The first time without an error, and the next one with an error or out of bounds."""

    first: Timestamp | None
    end: Timestamp
    failure: ExpressionFailed | None


@dataclass(frozen=True)
class Changes:
    """The changes of what a sink is made of, relation after relation, from its as-of on."""

    phases: tuple[Phase, ...]
    snapshot: bool = True
    written: pa.RecordBatch | None = None
    """Rows that the topic has already when the first phase begins."""

    @classmethod
    def of_sink(cls, sink: Sink) -> Changes:
        """Return what a sink has to write."""
        return cls(sink.phases, sink.facts["snapshot"])

    def after(self, start: Timestamp, written: pa.RecordBatch) -> Changes:
        """Return the same, from ``start`` on, for a topic that has ``written``."""
        first = self.relation_at(start)
        later = (phase for phase in self.phases if phase.start > start)
        return Changes((Phase(first, start), *later), written=written)

    def relation_at(self, time: Timestamp) -> ObjectId:
        """Return what the sink is made of at a time."""
        return next(p.relation for p in reversed(self.phases) if p.start <= time)

    def base(self, lower: Timestamp) -> Base | None:
        """Return what the topic has before ``lower``; None: nothing."""
        first = self.phases[0]
        if lower > first.start:
            return Base(self.relation_at(lower.back()), lower.back())
        return None if self.snapshot else Base(first.relation, first.start)

    def reach(self, state: TimelineState, lower: Timestamp, upper: Timestamp) -> Reach:
        """Return how far the changes from ``lower`` on can be written; there is no error before."""
        base, failure = self.base(lower), None
        ends = [*(phase.start for phase in self.phases[1:]), upper]
        for phase, end in zip(self.phases, ends, strict=True):
            begin, end = lower.join(phase.start), min(end, upper)  # noqa: PLW2901 - within bounds
            if not begin < end:
                continue
            new = begin == phase.start
            right = self._right(state, phase.relation, begin, end, new=new)
            failure = failure or right.failure
            if right.first is not None:
                plain = not new and right.first == begin
                first = None if plain else right.first
                return Reach(right.end, phase.relation, first, base)
        return Reach(lower, self.phases[-1].relation, failure=failure)

    def between(
        self, state: TimelineState, lower: Timestamp, reach: Reach
    ) -> Iterator[pa.RecordBatch]:
        """Yield the changes from ``lower`` on, whole times, ascending."""
        if reach.at is not None and lower <= reach.at:
            yield self._difference(state, reach.base, Base(reach.relation, reach.at))
            lower = reach.at.step()
        if lower < reach.upper:
            shard = state.traces[collection_of(reach.relation)]
            for batches in shard.changes_by_run(lower, at(reach.upper)):
                for piece in _pieces(batches):
                    yield self._delta(state, reach.relation, piece)

    def _right(
        self, state: TimelineState, item: ObjectId, begin: Timestamp, end: Timestamp, *, new: bool
    ) -> _Right:
        """Return when a relation is without errors; ``new``: it may have some before ``begin``."""
        known = errors_at(state, item, begin) if new else None
        first = None if known else begin
        failure = failed(*min(known), begin) if known else None
        after = begin.step() if new else begin
        for time, error in errors_over(state, item, after, end, known):
            if error is None:
                first = time if first is None else first
            elif first is None or first == time:
                first, failure = None, failure or failed(*error, time)
            else:
                return _Right(first, time, failure)
        return _Right(first, end, failure)

    def _difference(self, state: TimelineState, base: Base | None, new: Base) -> pa.RecordBatch:
        """Return what turns the base into the rows at a time, at that time."""
        shard = state.traces[collection_of(new.relation)]
        if base is not None and base.relation == new.relation:
            batches = list(shard.changes(base.time.step(), at(new.time.step())))
            parts = [self._delta(state, new.relation, batches)]
        else:
            parts = [self._delta(state, new.relation, list(shard.snapshot(new.time)))]
            if base is None and self.written is not None:
                parts.append(deltas.negate(self.written))
            if base is not None:
                old = list(state.traces[collection_of(base.relation)].snapshot(base.time))
                parts.append(deltas.negate(self._delta(state, base.relation, old)))
        if len(parts) == 1 and base is None:
            return parts[0]
        whole = deltas.union(parts)
        times = np.full(whole.num_rows, new.time, np.int64)
        return deltas.consolidated(
            deltas.build(deltas.rows_of(whole), times, whole.column(whole.num_columns - 1))
        )

    def _delta(
        self, state: TimelineState, item: ObjectId, batches: list[pa.RecordBatch]
    ) -> pa.RecordBatch:
        keying = state.shape.graph.arrangements[collection_of(item)].keying
        if not batches:
            return deltas.empty(keying.types)
        whole = concat(batches)
        times = time_of(whole)
        if (times[1:] < times[:-1]).any():
            whole = whole.take(np.argsort(times, kind="stable"))
        return keying.restore(whole)


def _pieces(batches: list[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Yield updates in pieces of whole times, ascending, not more in one than need be."""
    if sum(batch.num_rows for batch in batches) <= PIECE_ROWS:
        yield batches
        return
    times = np.concatenate([time_of(batch) for batch in batches])
    found, counts = np.unique(times, return_counts=True)
    begin = 0
    while begin < len(found):
        fitting = int(np.searchsorted(np.cumsum(counts[begin:]), PIECE_ROWS, "right"))
        end = begin + max(1, fitting)
        if begin == 0 and end == len(found):
            yield batches
            return
        inside = between(int(found[begin]), int(found[end - 1]) + 1)
        parts = map(inside, batches)
        yield [part for part in parts if part.num_rows]
        begin = end
