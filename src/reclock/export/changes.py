"""The changes that a sink must write, in whole times, from the runs of its relation.

Definition. What a topic has before F is its *base*: the rows of the sink's relation at F − 1, or
nothing if the sink never wrote. From F on come the changes of the times in ``[F, U)``, in pieces of
whole times: about ``PIECE_ROWS`` updates each, or one time that has more. Three things come
as a *difference* instead, between the base and the rows at one time, all of it at that time::

    the sink begins                  at its as-of: the snapshot, unless it is not wanted; less
                                     what another database wrote, if it takes over (``recover``)
    ALTER SINK … SET FROM            at the first time that the new relation is written
    the relation had an error        at the first time that is right again

A relation that has an error at some time has no rows there. So what can be written is a row of
*stretches*, between errors and changes of the relation; a reader of the topic never sees rows of a
time that had none. Where a relation ends with an error, the one that follows it takes over from
the last right time.

Cost: the runs that overlap are read, one after another, and not merged; of a difference both
contents. Tests: tests/export/test_sinks.py, test_alter.py, test_changes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from reclock.arrangement.layout import time_of
from reclock.arrangement.stream import between, concat
from reclock.catalog.item import Phase
from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import collection_of
from reclock.engine.error_place import Kept
from reclock.engine.object_changes import errors_at, errors_over, failed
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    import pyarrow as pa

    from reclock.catalog.item import Sink
    from reclock.engine.object_changes import ErrorRow
    from reclock.engine.timeline import TimelineState
    from reclock.errors import ExpressionFailed
    from reclock.ids import ObjectId
    from reclock.time.timestamp import Timestamp

PIECE_ROWS: Final = 100_000


class Base(NamedTuple):
    """The rows of ``relation`` at ``time``."""

    relation: ObjectId
    time: Timestamp


class Stretch(NamedTuple):
    """The changes of ``relation`` in ``[start, end)``, where it has no errors.

    Unless it goes on from what was written before, at ``start`` comes the difference to ``base``.
    """

    relation: ObjectId
    start: Timestamp
    end: Timestamp
    base: Base | None

    @property
    def goes_on(self) -> bool:
        """Whether it has nothing but changes."""
        return self.start > 0 and self.base == Base(self.relation, self.start.back())


class Reach(NamedTuple):
    """How far a sink can go: before ``upper``, and what lies between.

    If it is not the end, ``failure`` is the error that begins there and has not gone.
    """

    upper: Timestamp
    stretches: tuple[Stretch, ...]
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
        found: list[Stretch] = []
        base, failure = self.base(lower), None
        ends = [*(phase.start for phase in self.phases[1:]), upper]
        for phase, end in zip(self.phases, ends, strict=True):
            begin, relation = lower.join(phase.start), phase.relation
            known = errors_at(state, relation, begin) if phase.start == begin < upper else None
            for start, stop, error in _right(state, relation, begin, min(end, upper), known):
                failure = None if error is None else failed(*error, Kept(relation, stop))
                if start < stop:
                    found.append(Stretch(relation, start, stop, base))
                    base = Base(relation, stop.back())
        return Reach(found[-1].end if found else lower, tuple(found), failure)

    def between(
        self, state: TimelineState, lower: Timestamp, reach: Reach
    ) -> Iterator[pa.RecordBatch]:
        """Yield the changes from ``lower`` on, whole times, ascending."""
        for stretch in reach.stretches:
            relation, start, end, base = stretch
            if lower <= start and not stretch.goes_on:
                yield self._difference(state, base, Base(relation, start))
                start = start.step()
            start = start.join(lower)
            if start < end:
                shard = state.traces[collection_of(relation)]
                for batches in shard.changes_by_run(start, at(end)):
                    for piece in _pieces(batches):
                        yield self._delta(state, relation, piece)

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


def _right(
    state: TimelineState,
    item: ObjectId,
    begin: Timestamp,
    end: Timestamp,
    known: Counter[ErrorRow] | None,
) -> Iterator[tuple[Timestamp, Timestamp, ErrorRow | None]]:
    """Yield the intervals in which a relation has no error, and the error that ends each.

    ``known`` are its errors at ``begin``; without it there are none before.
    """
    if not begin < end:
        return
    start: Timestamp | None = begin
    if known:
        start = None
        yield begin, begin, min(known)
    for time, now in errors_over(state, item, begin if known is None else begin.step(), end, known):
        if now is None:
            start = time if start is None else start
        elif start is not None:
            yield start, time, now
            start = None
    if start is not None:
        yield start, end, None
