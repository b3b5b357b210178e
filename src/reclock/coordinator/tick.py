"""One tick of a timeline, from its upper to the next, in numbered steps.

1. The clock and the frontier of tables give the time T that the tick closes; an idle
   timeline whose clock has not moved has nothing to close. Regular ticks close times on the
   grid of ``timestamp_interval``, so T may be ahead of the clock by less than an interval.
   Those that a read, a write or a change of the catalog calls for close now, or the last
   write if that is later: however long the interval, they do not run ahead. None goes past
   the expiration of what is kept (``expirations``), which may be renewed here.
2. The writes that are pending are gathered: one delta per table, every time its own. What
   was read ahead of sources is bound to times up to T: one delta per source (``source``).
3. The engine computes what they append to every arrangement, and what temporal filters do
   because their time has come, at the times that it has, also if nothing was written.
4. All new runs are written, in one file, or in the publishing transaction if small.
5. One append publishes the runs and the bindings, retires the writes, swaps in finished
   merges, moves U and W to {T+1}, and applies T to the oracle. The tick is visible whole or
   not at all.

A crash before 5 leaves at most a file that nothing names; the tick is run again. An idle
tick in which no time comes writes no record and no file: only frontiers move. Keeps P3, P5.
What each of the steps 2 to 5 took is noted for ``reclock.ticks``.

Tests: tests/coordinator/test_tick.py; crashes: test_crash.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reclock.arrangement.cache import process_cache
from reclock.arrangement.precedence import PRECEDENCE
from reclock.coordinator import joint
from reclock.coordinator.arrangements import following, layouts_of, write_runs
from reclock.coordinator.item import Table
from reclock.coordinator.source.letters import letter_changes
from reclock.coordinator.system.ticks import Watch
from reclock.dataflow import delta as deltas
from reclock.dataflow.changes import Changes, Stamped
from reclock.dataflow.graph import temp_of
from reclock.dataflow.hydrate import Stream
from reclock.failpoints import hit
from reclock.time.pace import is_joint
from reclock.time.timeline import EPOCH_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from reclock.coordinator.arrangements import Runs
    from reclock.coordinator.catalog import Catalog
    from reclock.coordinator.core import Core
    from reclock.coordinator.engine import Updates
    from reclock.coordinator.timeline import TimelineState
    from reclock.dataflow.graph import ArrangementId
    from reclock.ids import ObjectId
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp

READ_ROWS: Final = 10_000
"""Writes of more rows than this are not read before it is decided where a tick runs."""


def tick(core: Core, pace: Pace, *, regular: bool = False, ahead: bool = False) -> TimelineState:
    """Run one tick of ``pace``, if there is anything to close; return its state after.

    A ``regular`` one is on the grid of the interval, others close what they must. With ``ahead``
    it binds what was read of sources even if the clock has not got to the next time.
    """
    with core.writing(), PRECEDENCE.going_first():
        core.let_go()
        state = core.state(pace)
        core.intakes.pull(pace, regular=regular)
        time = _time(core, state, regular=regular, ahead=ahead)
        if time is None:
            return state
        renewal = core.expirations.ready(state, time)
        time = core.expirations.closing(state, time, renewal)
        begun = renewal.applied(state)
        watch = Watch()
        changes = gather(state, core.world.catalog)
        taken = core.intakes.take(state, time)
        for item, some in taken.items():
            if some.changes is not None or some.runs:
                batches = () if some.changes is None else (some.changes,)
                changes[item] = Changes(batches, some.runs, state.segments)
            if some.waiting is not None:
                changes[temp_of(item)] = Changes((some.waiting,))
        if is_joint(pace):
            followed = joint.changes(core.world, state, time)
            changes |= {i: Changes((batch,)) for i, batch in followed.items()}
        letters = letter_changes(state, taken)
        changes |= {i: Changes((batch,)) for i, batch in letters.items()}
        watch.lap(sum(change.rows for change in changes.values()))
        hit("tick.compute.before")
        updates = compute(core, begun, changes, time)
        watch.place = "spark" if any(isinstance(u, tuple) for u in updates.values()) else "driver"
        watch.lap(sum(map(rows_in, updates.values())))
        since = joint.first(core.world, state) if is_joint(pace) else state.upper
        added = write(begun, updates, time, since if since > state.upper else None)
        written = sum(map(rows_in, added.values()))
        watch.lap(written)
        renewed = {*renewal.untils, *state.ahead}
        merged = (s for s in core.merger.finished(pace) if s.arrangement not in renewed)
        swaps = (*renewal.swaps, *merged)
        appends, after = state.ticked(time, added, swaps, taken, untils=renewal.untils)
        if renewal.untils:
            after = replace(after, ahead={})
        hit("tick.publish.before")
        core.publish(core.world, appends, after)
        watch.lap(written)
        core.ticks.add(time, watch)
        after = core.world[pace]
        hit("tick.publish.after")
        core.intakes.settle(after)
        if core.merger.published(pace) or any(e.run.segment for e in state.wal.pending):
            core.collect_garbage()
        core.expirations.consider(core.world[pace])
        core.merger.consider(core.world[pace])
        core.compact_bindings()
        return core.world[pace]


def _time(core: Core, state: TimelineState, *, regular: bool, ahead: bool) -> Timestamp | None:
    """Return the time that a tick closes; None if there is nothing to close."""
    now = core.clock.now_ms()
    if is_joint(state.pace):
        return joint.complete(core.world, state)
    if state.is_own:
        return core.intakes.closable(state, now)
    interval = core.settings.timestamp_interval_ms if regular else 1
    if ahead and core.intakes.is_ready(state.pace):
        now = max(now, state.upper)
    staged = state.timeline != EPOCH_MS and core.intakes.is_ready(state.pace)
    return state.tick_time(now, interval, staged=staged, own=core.world.own(state.timeline))


def gather(state: TimelineState, catalog: Catalog) -> dict[ObjectId, Changes]:
    """Return what is pending for each table; large writes as they lie in the store."""
    batches: dict[ObjectId, list[pa.RecordBatch]] = {}
    runs: dict[ObjectId, list[Stamped]] = {}
    for entry in state.wal.pending:
        table = catalog[entry.table]
        assert isinstance(table, Table)
        if entry.run.rows > READ_ROWS:
            runs.setdefault(table.id, []).append(Stamped(entry.run))
            continue
        run = process_cache().open(state.segments, entry.run, table.keying.layout)
        batches.setdefault(table.id, []).extend(table.keying.restore(batch) for batch in run)
    return {
        table: Changes(
            (deltas.union(batches[table]),) if batches.get(table) else (),
            tuple(runs.get(table, ())),
            state.segments,
        )
        for table in dict.fromkeys([*batches, *runs])
        if batches.get(table) or table in runs
    }


def compute(
    core: Core, state: TimelineState, changes: dict[ObjectId, Changes], time: Timestamp
) -> Mapping[ArrangementId, Updates]:
    """Return what a tick appends to every arrangement that changes."""
    lower, upper = state.upper, time.step()
    if not changes and not core.engine.is_due(state.shape, state.traces, lower, upper):
        return {}
    shape = state.limited(core.expirations.dropped)
    return core.engine.step(shape, changes, state.traces, lower, upper)


def write(
    state: TimelineState,
    updates: Mapping[ArrangementId, Updates],
    time: Timestamp,
    since: Timestamp | None = None,
) -> Runs:
    """Return the runs that a tick adds, written but not published.

    With ``since`` nothing can be read before that time, whatever changed.
    """
    if since is None and not updates:
        return {}
    descriptions = {
        arrangement: following(state.arrangements.runs[arrangement], time.step(), since)
        for arrangement in (updates if since is None else state.arrangements.runs)
    }
    stem = state.stem("tick", time)
    return write_runs(state.segments, stem, updates, layouts_of(state.shape.graph), descriptions)


def rows_in(updates: Updates) -> int:
    """Return how many updates an arrangement gets, in a batch or in runs."""
    if isinstance(updates, tuple):
        return sum(ref.rows for ref in updates)
    return updates.rows if isinstance(updates, Stream) else updates.num_rows
