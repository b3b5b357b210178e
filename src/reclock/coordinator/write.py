"""Writes to a table: rows added and taken away, at one timestamp, all or nothing.

1. The rows are arranged, checked (``constraints``) and encoded as one run: inline if it is
   small, else in a segment, which is durable before the record that names it.
2. One append: the record in the log, the frontier W, and the oracle, which thereby has
   handed out the write's time and applied it. From then on every strict read sees it.

Every write looks through those that are pending, so when there are many they are folded
first, by a tick: writers who outrun the ticks pay for them.

Times of writes increase strictly, whatever the clock does (P7). A write of no rows has a
time too.

Tests: tests/coordinator/test_write.py; crashes: test_crash.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.segment import SegmentWriter, rows_per_batch
from reclock.coordinator.constraints import check_key, check_not_null
from reclock.coordinator.tick import tick
from reclock.dataflow import delta as deltas
from reclock.failpoints import hit
from reclock.time.description import Description
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from reclock.arrangement.run import RunRef
    from reclock.coordinator.core import Core
    from reclock.coordinator.item import Table
    from reclock.coordinator.timeline import TimelineState
    from reclock.time.timestamp import Timestamp

INLINE_BYTES: Final = 65_536
"""Writes up to this size travel in the log's record; larger ones get a segment."""

FOLD_AFTER: Final = 256
"""How many writes may be pending before the next one."""


def write(
    core: Core,
    table: Table,
    added: Sequence[pa.Array],
    removed: Sequence[pa.Array] | None = None,
) -> Timestamp:
    """Add and take away rows, given as columns of the table's types; return the time."""
    with core.writing():
        assert table.timeline is not None
        check_not_null(table, added)
        state = core.state(table.timeline)
        if len(state.wal.pending) >= FOLD_AFTER:
            state = tick(core, table.timeline)
        given = state.write_time(core.clock.now_ms())
        time = given[1]
        batches = [_arranged(table, added, time, 1)]
        if removed is not None:
            batches.append(_arranged(table, removed, time, -1))
        updates = _whole(table, batches)
        check_key(table, state, updates)
        runs = {table.id: _encode(table, state, updates, time)} if updates.num_rows else {}
        appends, after = state.written(given, runs)
        hit("write.append.before")
        core.publish(core.world, appends, after)
        hit("write.append.after")
        return time


def _arranged(
    table: Table, columns: Sequence[pa.Array], time: Timestamp, diff: int
) -> pa.RecordBatch:
    size = len(columns[0])
    times, diffs = np.full(size, time, np.int64), np.full(size, diff, np.int64)
    return table.keying.arrange(deltas.build(columns, times, diffs))


def _whole(table: Table, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return all updates, without those that cancel."""
    return consolidate(table.keying.layout, deltas.union(batches))


def _encode(table: Table, state: TimelineState, updates: pa.RecordBatch, time: Timestamp) -> RunRef:
    description = Description(at(time), at(time.step()), at(0))
    stem = state.stem("write", time)
    with SegmentWriter(state.segments, stem, inline_limit=INLINE_BYTES) as writer:
        per_batch = rows_per_batch(updates.num_rows, updates.nbytes)
        layout = table.keying.layout
        writer.add(str(table.id), layout, [updates], description, batch_rows=per_batch)
        return writer.finish()[0]
