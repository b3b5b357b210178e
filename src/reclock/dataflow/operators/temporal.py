"""Temporal filters: rows that come and go because time passes, not because data changes.

Definition. Each row has a set of times at which it passes, as spans ``[lower, upper)`` that
may overlap. As updates, ``(row, t, d)`` becomes, for the disjoint parts of the spans from t on,
``d`` where one begins and ``−d`` where it ends; a part that is empty, or over before t, gives
nothing (tests/support/model/temporal.py is the same in plain Python).

Updates before the tick's ``upper`` are emitted. Later ones wait in the *pending* arrangement,
whose ``kh`` is the time an update is **due**::

    kh = due, <row…>, time = when it was put there, diff

Runs are sorted by ``kh``, so a run is a list of time buckets, its batches: what is due in a tick
is a range of each run, and a tick touches no other batch. The retraction of an input row puts
the opposite of both its updates there, which cancel those of the row when runs are merged, or
when all of them come due. What is due is never taken away: it is before the upper, so it counts
no more, and merges leave it out (``arrangement.merge``).

A bound that has no next millisecond is an error row (22003). Updates due at ``FOREVER`` are
never reached, and not kept; nor are those at or beyond ``until`` (``time.expiry``), which are
counted.

Cost: the change and what is due; O(log) per run. Keeps P3, P5 and P8; tests:
tests/dataflow/test_temporal.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.column import canonical
from reclock.arrangement.layout import diff_of, kh_of, time_of
from reclock.arrangement.stream import concat
from reclock.dataflow import delta as deltas
from reclock.time.timestamp import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from reclock.arrangement.layout import Int64s
    from reclock.dataflow.keying import Keying
    from reclock.dataflow.trace import Trace

    Mask = npt.NDArray[np.bool_]

FOREVER: Final = INT64_MAX
"""A time that no frontier passes: an update due then never is."""

OVERFLOW: Final = "22003|mz_now() bound out of range"


class Limit(NamedTuple):
    """One bound of a span, for every row: its times, and whether the next millisecond counts."""

    value: pa.Array
    after: bool


@dataclass(frozen=True)
class Times:
    """The times of a span, for every row, ``[start, stop)``; none where they are empty."""

    start: Int64s
    stop: Int64s


class Part(NamedTuple):
    """Times of rows that no other part has: ``[start, stop)``, of those that are ``there``."""

    there: Mask
    start: Int64s
    stop: Int64s


class Split(NamedTuple):
    """What a change becomes: updates of this tick, pending ones, and how many were dropped."""

    now: pa.RecordBatch
    pending: pa.RecordBatch
    dropped: int


def overflows(limits: Iterable[Limit], size: int) -> Mask:
    """Return the rows of which some bound has no next millisecond."""
    found = np.zeros(size, np.bool_)
    for value, after in limits:
        if after:
            found |= pc.fill_null(pc.equal(value, FOREVER), False).to_numpy(zero_copy_only=False)
    return found


def span(present: Mask, lowers: Sequence[Limit], uppers: Sequence[Limit], size: int) -> Times:
    """Return the times of one span; none where ``present`` is false or a bound is NULL."""
    start = np.full(size, -FOREVER, np.int64)
    stop = np.full(size, FOREVER, np.int64)
    there = present.copy()
    for limits, combine, target in ((lowers, np.maximum, start), (uppers, np.minimum, stop)):
        for value, after in limits:
            there &= pc.is_valid(value).to_numpy(zero_copy_only=False)
            times = pc.fill_null(value, 0).to_numpy(zero_copy_only=False)
            combine(target, times + 1 if after else times, out=target)
    stop[~there] = -FOREVER
    return Times(start, stop)


def split(
    delta: pa.RecordBatch,
    spans: Sequence[Times],
    keying: Keying,
    upper: int,
    until: int = FOREVER,
) -> Split:
    """Return what the updates of ``delta`` become, by the spans of their rows.

    ``delta`` has the columns of the output; ``upper`` is that of the tick.
    """
    time, diff, end = time_of(delta), diff_of(delta), min(until, FOREVER)
    now: list[pa.RecordBatch] = []
    pending: list[pa.RecordBatch] = []
    dropped = 0
    for part in _parts(time, spans):
        for due, is_end in ((part.start, False), (part.stop, True)):
            kept = part.there & (due < end)
            ends = np.count_nonzero(part.there & (due < FOREVER))
            dropped += int(ends) - int(np.count_nonzero(kept))
            here = kept & (due < upper)
            later = kept & ~here
            if here.any():
                now.append(_emitted(delta, here, due, _signed(diff, here, is_end)))
            if later.any():
                pending.append(_pending(delta, later, due, _signed(diff, later, is_end), keying))
    return Split(
        deltas.union(now) if now else delta.slice(0, 0),
        concat(pending) if pending else keying.layout.empty(),
        dropped,
    )


def _signed(diff: Int64s, rows: Mask, is_end: bool) -> Int64s:
    """Return the diffs of rows where they begin, or where they end."""
    chosen = diff if rows.all() else diff[rows]
    if not is_end:
        return chosen
    if (chosen == np.iinfo(np.int64).min).any():
        raise deltas.out_of_range()
    return -chosen


def come_due(updates: Sequence[pa.RecordBatch], keying: Keying) -> pa.RecordBatch:
    """Return pending updates as a delta at the times they are due."""
    if not updates:
        return deltas.empty(keying.types)
    parts = [deltas.build(keying.columns(b), kh_of(b), diff_of(b)) for b in updates]
    return deltas.union(parts)


def is_due(trace: Trace, first: int, last: int) -> bool:
    """Return whether some pending update is due from ``first`` to ``last``."""
    return next(iter(trace.within(first, last)), None) is not None


def _parts(time: Int64s, spans: Sequence[Times]) -> Iterator[Part]:
    """Yield disjoint parts of the spans, from the time of each row on."""
    if len(spans) == 1:
        start = np.maximum(spans[0].start, time)
        yield Part(start < spans[0].stop, start, spans[0].stop)
        return
    starts = np.stack([np.maximum(s.start, time) for s in spans], 1)
    stops = np.stack([s.stop for s in spans], 1)
    order = np.argsort(starts, axis=1, kind="stable")
    starts = np.take_along_axis(starts, order, 1)
    stops = np.take_along_axis(stops, order, 1)
    # Each part begins where all spans that began before it have ended.
    ended = np.maximum.accumulate(stops, axis=1)[:, :-1]
    starts[:, 1:] = np.maximum(starts[:, 1:], ended)
    for nth in range(len(spans)):
        yield Part(starts[:, nth] < stops[:, nth], starts[:, nth], stops[:, nth])


def _emitted(delta: pa.RecordBatch, rows: Mask, due: Int64s, diff: Int64s) -> pa.RecordBatch:
    """Return updates of rows at the times they are due; what does not change is not copied."""
    if rows.all():
        same = np.array_equal(due, time_of(delta))
        time = delta.column(delta.num_columns - 2) if same else due
        return deltas.build(deltas.rows_of(delta), time, diff)
    chosen = pa.array(rows)
    return deltas.build([c.filter(chosen) for c in deltas.rows_of(delta)], due[rows], diff)


def _pending(
    delta: pa.RecordBatch, rows: Mask, due: Int64s, diff: Int64s, keying: Keying
) -> pa.RecordBatch:
    chosen = delta if rows.all() else delta.filter(pa.array(rows))
    columns = [canonical(c) for c in deltas.rows_of(chosen)]
    return keying.layout.batch(due[rows], columns, time_of(chosen), diff)
