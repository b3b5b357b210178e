"""Writes to tables: rows added and taken away, at one timestamp, all or nothing.

1. The rows are arranged, checked (``constraints``) and encoded as one run per table: inline
   if they are small, else in a segment, which is durable before the record that names it.
2. One append: the records in the log, the frontier W, and the oracle, which thereby has
   handed out the write's time and applied it. From then on every strict read sees it.

Every write checks the pending ones, so when there are many, a tick folds them first: writers that
outrun the ticks pay for them. While a tick computes, writes get times after the one that it closes,
and more of them may be pending; beyond that, writers wait for the tick
(``session.statements.context``).

Times of writes increase strictly, whatever the clock does (P7). A write without rows has a time
too.

Tests: tests/engine/test_write.py; crashes: test_crash.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.segment import SegmentWriter, rows_per_batch
from reclock.dataflow import delta as deltas
from reclock.engine.constraints import check_conditions, check_keys, check_not_null, fitted
from reclock.engine.joining import MUCH, waiting
from reclock.engine.tick import settle
from reclock.failpoints import hit
from reclock.time.description import Description
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from reclock.arrangement.run import RunRef
    from reclock.catalog.item import Table
    from reclock.catalog.unique import UniqueKey
    from reclock.engine.core import Core
    from reclock.engine.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.time.timestamp import Timestamp

INLINE_BYTES: Final = 65_536
"""Writes up to this size travel in the log's record; larger ones get a segment."""

FOLD_AFTER: Final = 256
"""How many writes may be pending before the next one."""


@dataclass(frozen=True, slots=True)
class Change:
    """Rows that a table gets and loses, as columns of its types.

    Of ``arbitrated`` keys it was looked up whether those of added rows are there.
    """

    table: Table
    added: Sequence[pa.Array]
    removed: Sequence[pa.Array] | None = None
    arbitrated: tuple[UniqueKey, ...] = ()


def write(
    core: Core,
    table: Table,
    added: Sequence[pa.Array],
    removed: Sequence[pa.Array] | None = None,
) -> Timestamp:
    """Add and take away rows, given as columns of the table's types; return the time."""
    return write_all(core, [Change(table, added, removed)])


def write_all(core: Core, changes: Sequence[Change]) -> Timestamp:
    """Make changes of tables of one timeline at one time, all or none; return the time."""
    with core.writing():
        timeline = changes[0].table.timeline
        assert timeline is not None
        assert all(change.table.timeline == timeline for change in changes)
        for change in changes:
            check_not_null(change.table, change.added)
        changes = [replace(c, added=fitted(c.table, c.added)) for c in changes]
        for change in changes:
            check_conditions(core.engine, change.table, change.added)
        state = core.state(timeline)
        closing = core.flights.closing(timeline)
        state = folded(core, state)
        given = state.write_time(core.clock.now_ms(), closing)
        time = given[1]
        updates = updates_of(changes, time)
        for table, batch in updates:
            given_rows = [c.added for c in changes if c.table.id == table.id]
            keys = core.world.catalog.unique_keys(table)
            check_keys(table, keys, state, batch, given_rows[-1])
        runs = _encode(state, [pair for pair in updates if pair[1].num_rows], time)
        appends, after = state.written(given, list(runs.items()))
        hit("write.append.before")
        core.publish(core.world, appends, after)
        hit("write.append.after")
        return time


def folded(core: Core, state: TimelineState) -> TimelineState:
    """Return the state after a tick, if many writes are pending; hold the lock.

    Of much the loop is told, which does not hold the lock while it computes.
    """
    if len(state.wal.pending) < FOLD_AFTER or core.flights.among([state.pace]):
        return state
    if core.loop is not None and waiting(core, state) > MUCH:
        core.loop.wake(state.pace, state.table_upper.back())
        return state
    return settle(core, state.pace)


def updates_of(changes: Sequence[Change], time: Timestamp) -> list[tuple[Table, pa.RecordBatch]]:
    """Return all updates of each table, without those that cancel."""
    tables = {change.table.id: change.table for change in changes}
    batches: dict[ObjectId, list[pa.RecordBatch]] = {item: [] for item in tables}
    for change in changes:
        some = batches[change.table.id]
        some.append(arranged(change.table, change.added, time, 1))
        if change.removed is not None:
            some.append(arranged(change.table, change.removed, time, -1))
    return [
        (table, consolidate(table.keying.layout, deltas.union(some)))
        for table, some in zip(tables.values(), batches.values(), strict=True)
    ]


def arranged(
    table: Table, columns: Sequence[pa.Array], time: Timestamp, diff: int
) -> pa.RecordBatch:
    """Return rows as updates, in the order of the table's arrangement."""
    size = len(columns[0])
    times, diffs = np.full(size, time, np.int64), np.full(size, diff, np.int64)
    return table.keying.arrange(deltas.build(columns, times, diffs))


def _encode(
    state: TimelineState, updates: Sequence[tuple[Table, pa.RecordBatch]], time: Timestamp
) -> dict[ObjectId, RunRef]:
    """Return a run for each table; those that are not small share one file."""
    if not updates:
        return {}
    description = Description(at(time), at(time.step()), at(0))
    stem = state.stem("write", time)
    with SegmentWriter(state.segments, stem, inline_limit=INLINE_BYTES) as writer:
        for table, batch in updates:
            per_batch = rows_per_batch(batch.num_rows, batch.nbytes)
            layout = table.keying.layout
            writer.add(str(table.id), layout, [batch], description, batch_rows=per_batch)
        refs = writer.finish()
    return {table.id: ref for (table, _), ref in zip(updates, refs, strict=True)}
