"""The changes of an object, read from its runs in bounded steps and decoded once.

A ``Step`` is what happened in ``[lower, upper)``, by time. Who lags far behind gets it in pieces of
whole times with at most ``STEP_ROWS`` updates together; a single time that has more is ``streamed``
from the runs, batch by batch. Steps of the same object and interval are the same for every
subscriber, down to the ``Update`` objects: ``Steps`` keeps the last few, and the first reader
decodes for the others.

A view that has an error at some time has no rows there: its step ends before that time, and
``failure`` is the error.

Cost: a step reads the runs that overlap it; what it decodes it decodes once.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np

from reclock.arrangement.layout import diff_of, time_of
from reclock.arrangement.stream import concat
from reclock.dataflow.error_rows import failure
from reclock.dataflow.graph import collection_of, errors_of
from reclock.dataflow.values import to_python
from reclock.engine.error_place import Kept
from reclock.engine.update import Update
from reclock.time.frontier import at
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from reclock.engine.timeline import TimelineState
    from reclock.errors import ExpressionFailed
    from reclock.ids import ObjectId
    from reclock.sql.types import Type

STEP_ROWS: Final = 16_384
KEPT: Final = 8
"""How many steps are kept for others."""

Group = tuple[Timestamp, list[Update]]
ErrorRow = tuple[str, str]
"""The code and the message of an error."""


@dataclass(frozen=True, slots=True)
class Step:
    """What happened in ``[lower, upper)``; if ``streamed``, only that much happened there."""

    lower: Timestamp
    upper: Timestamp
    groups: tuple[Group, ...] = ()
    failure: ExpressionFailed | None = None
    streamed: bool = False


@dataclass(frozen=True)
class Followed:
    """An object whose rows are kept, and the types that they are decoded as."""

    item: ObjectId
    kinds: tuple[Type, ...]

    def snapshot(self, state: TimelineState, as_of: Timestamp) -> Iterator[list[Update]]:
        """Yield the rows at ``as_of``, as updates at that time."""
        self.check(state, as_of)
        for batch in state.traces[collection_of(self.item)].snapshot(as_of):
            yield self._decoded(state, batch)

    def streamed(self, state: TimelineState, time: Timestamp) -> Iterator[list[Update]]:
        """Yield the updates of one time."""
        shard = state.traces[collection_of(self.item)]
        for batch in shard.changes(time, at(time.step())):
            yield self._decoded(state, batch)

    def step(self, state: TimelineState, lower: Timestamp, upper: Timestamp) -> Step:
        """Return what happened from ``lower`` on, up to ``upper`` at the most."""
        failure = self._failure(state, lower, upper)
        if failure is not None:
            upper = failure[0]
        shard = state.traces[collection_of(self.item)]
        batches: list[pa.RecordBatch] = []
        rows = 0
        if lower < upper:
            for batch in shard.changes(lower, at(upper)):
                batches.append(batch)
                rows += batch.num_rows
                if rows > STEP_ROWS:
                    return self._piece(state, lower, upper)
        groups = self._grouped(state, batches)
        return Step(lower, upper, groups, None if failure is None else failure[1])

    def changed_after(self, state: TimelineState, time: Timestamp) -> bool:
        """Return whether a run says that something may have happened at ``time`` or later."""
        for arrangement in (collection_of(self.item), errors_of(self.item)):
            runs = state.arrangements.runs.get(arrangement)
            if runs and runs[-1].description.upper.element() > time:
                return True
        return False

    def _piece(self, state: TimelineState, lower: Timestamp, upper: Timestamp) -> Step:
        """Return the first whole times that are not too many; there is more than enough."""
        counts: Counter[int] = Counter()
        for batch in state.traces[collection_of(self.item)].changes(lower, at(upper)):
            times, some = np.unique(time_of(batch), return_counts=True)
            counts.update(dict(zip(times.tolist(), some.tolist(), strict=True)))
        total, end = 0, upper
        for time, count in sorted(counts.items()):
            total += count
            if total > STEP_ROWS:
                end = Timestamp(time)
                break
        if end == lower:
            return Step(lower, lower.step(), streamed=True)
        return self.step(state, lower, end)

    def _grouped(self, state: TimelineState, batches: list[pa.RecordBatch]) -> tuple[Group, ...]:
        if not batches:
            return ()
        whole = concat(batches)
        order = np.argsort(time_of(whole), kind="stable")
        sorted_ = whole.take(order)
        updates = self._decoded(state, sorted_)
        times = time_of(sorted_)
        starts = [0, *(np.flatnonzero(times[1:] != times[:-1]) + 1).tolist(), len(times)]
        return tuple((updates[a].timestamp, updates[a:b]) for a, b in pairwise(starts))

    def _decoded(self, state: TimelineState, batch: pa.RecordBatch) -> list[Update]:
        keying = state.shape.graph.arrangements[collection_of(self.item)].keying
        return decoded(keying.columns(batch), self.kinds, batch)

    def check(self, state: TimelineState, as_of: Timestamp) -> None:
        """Raise the error that the object has at ``as_of``, if it has one."""
        if there := errors_at(state, self.item, as_of):
            raise failed(*min(there), Kept(self.item, as_of))

    def _failure(
        self, state: TimelineState, lower: Timestamp, upper: Timestamp
    ) -> tuple[Timestamp, ExpressionFailed] | None:
        """Return the first time with an error, and that; there was none before ``lower``."""
        for time, error in errors_over(state, self.item, lower, upper):
            if error is not None:
                return time, failed(*error, Kept(self.item, time))
        return None


class Steps:
    """The last few steps, each decoded at the first request; for all threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[object, _Once] = OrderedDict()

    def get(self, key: object, make: Callable[[], Step]) -> Step:
        """Return the step of a key, made if it is not known."""
        with self._lock:
            once = self._known.setdefault(key, _Once())
            self._known.move_to_end(key)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return once.get(make)


class _Once:
    """A value that the first who asks for it makes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._step: Step | None = None

    def get(self, make: Callable[[], Step]) -> Step:
        with self._lock:
            if self._step is None:
                self._step = make()
            return self._step


def decoded(
    columns: Sequence[pa.Array], kinds: Sequence[Type], batch: pa.RecordBatch
) -> list[Update]:
    """Return the updates of a batch whose user columns are ``columns``."""
    values = [to_python(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    rows = zip(*values, strict=True) if values else iter([()] * batch.num_rows)
    times, diffs = map(Timestamp, time_of(batch).tolist()), diff_of(batch).tolist()
    return [Update(t, d, row) for t, d, row in zip(times, diffs, rows, strict=True)]


def errors_at(state: TimelineState, item: ObjectId, as_of: Timestamp) -> Counter[ErrorRow]:
    """Return the errors that an object has at ``as_of``, and how often."""
    found: Counter[ErrorRow] = Counter()
    arrangement = state.shape.graph.arrangements.get(errors_of(item))
    if arrangement is not None:
        for batch in state.traces[arrangement.id].snapshot(as_of):
            for _, error, diff in _errors(arrangement.keying.columns(batch), batch):
                found[error] += diff
    return +found


def errors_over(
    state: TimelineState,
    item: ObjectId,
    lower: Timestamp,
    upper: Timestamp,
    known: Counter[ErrorRow] | None = None,
) -> Iterator[tuple[Timestamp, ErrorRow | None]]:
    """Yield each time at which the errors of an object changed, and one it has from then on.

    Before ``lower`` it has those that are ``known``.
    """
    arrangement = state.shape.graph.arrangements.get(errors_of(item))
    if arrangement is None or not lower < upper:
        return
    by_time: dict[int, list[tuple[ErrorRow, int]]] = {}
    for batch in state.traces[arrangement.id].changes(lower, at(upper)):
        for time, error, diff in _errors(arrangement.keying.columns(batch), batch):
            by_time.setdefault(time, []).append((error, diff))
    counts: Counter[ErrorRow] = Counter(known)
    for time in sorted(by_time):
        for error, diff in by_time[time]:
            counts[error] += diff
        yield Timestamp(time), min((e for e, count in counts.items() if count > 0), default=None)


def failed(code: str, message: str, where: Kept) -> ExpressionFailed:
    """Return the error that a view has at a time."""
    made = failure(code, message, f"at {where.timestamp}")
    made.place = where
    return made


def _errors(
    columns: Sequence[pa.Array], batch: pa.RecordBatch
) -> Iterator[tuple[int, ErrorRow, int]]:
    codes, messages = (column.to_pylist() for column in columns)
    times, diffs = time_of(batch).tolist(), diff_of(batch).tolist()
    return zip(times, zip(codes, messages, strict=True), diffs, strict=True)
