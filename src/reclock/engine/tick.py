"""One tick of a timeline, from its upper to the next, in three phases.

*Begin*, under the lock:

1. The clock and the frontier of tables give the time T that the tick closes; an idle timeline whose
   clock has not moved has nothing to close. Regular ticks close times on the grid of
   ``timestamp_interval``, so T may be ahead of the clock by less than an interval. Ticks on demand,
   for a read, a write or a change of the catalog, close the present time, or that of the last write
   if it is later: they never run ahead, however long the interval. None goes past the expiration of
   what is kept (``expirations``), which may be renewed with it.
2. The state that it starts from is fixed, and its files stay (``flights``). What was read ahead
   of sources is bound to times up to T: one delta per source (``source``). From here on
   writes get times after T.

*Prepare*, without the lock: reads, writes and changes of the catalog go on.

3. A source may offer rows from files, which are checked now (``ingest.cdcv2_intake``): if they
   cannot be published, the tick begins again. The pending writes are gathered: one delta per table,
   each write at its own time. The engine computes their effect on every arrangement, and the
   changes of temporal filters that are due by T, each at its own time, even if nothing was written.
4. All new runs are written, in one file, or in the publishing transaction if small.

*Land*, under the lock:

5. If the state is still the one that it started from, but for later writes, one append publishes
   the runs and the bindings, retires the writes up to T, swaps in finished merges, moves U to {T+1}
   and W at least there, and applies T to the oracle. The tick becomes visible as a whole or not at
   all. If objects have come or gone meanwhile, it is fitted to them before, without the lock
   (``flights``). If the pace has moved, what was prepared is dropped.

``tick`` does so; ``settle`` does all of it under the lock, which the caller holds, and so overtakes
a running tick: correct at any time, but the work of that tick is lost, so statements wait for it
first (``session.statements.context``).

A crash before 5 leaves at most a file that nothing names; the tick is run again. An idle tick in
which no time comes writes no record and no file: only frontiers move. Keeps P3, P5.
``reclock.ticks`` has how long gathering, computing, writing and publishing took.

Tests: tests/engine/test_tick.py, test_flights.py; crashes: test_crash.py.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from reclock.arrangement.cache import process_cache
from reclock.arrangement.precedence import PRECEDENCE
from reclock.catalog.item import Table
from reclock.dataflow import delta as deltas
from reclock.dataflow.changes import Changes, Stamped
from reclock.dataflow.graph import temp_of
from reclock.dataflow.work import Stream
from reclock.engine import multi_pace as joint
from reclock.engine.arrangements import following, layouts_of, write_runs
from reclock.engine.dead_letters import letter_changes
from reclock.engine.flights import Flight, refit
from reclock.engine.taken import TakeAgain
from reclock.failpoints import hit
from reclock.time.pace import is_joint
from reclock.time.timeline import EPOCH_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from reclock.catalog.catalog import Catalog
    from reclock.dataflow.graph import ArrangementId
    from reclock.engine.arrangements import Runs
    from reclock.engine.core import Core
    from reclock.engine.engine import Updates
    from reclock.engine.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp

READ_ROWS: Final = 10_000
"""Writes of more rows than this are not read before it is decided where a tick runs."""


def tick(
    core: Core,
    pace: Pace,
    *,
    regular: bool = False,
    ahead: bool = False,
    lower: Timestamp | None = None,
) -> TimelineState:
    """Run one tick of ``pace``, if there is anything to close; return its state after.

    A ``regular`` one is on the grid of the interval, others close what they must. With ``ahead``
    it binds what was read of sources even if the clock has not got to the next time. With ``lower``
    only if that is where it begins: others may have ticked. Do not hold the lock.
    """
    if pace in core.world.timelines:
        core.intakes.pull(pace, regular=regular)
    with PRECEDENCE.going_first():
        while True:
            core.flights.wait([pace])
            with core.writing():
                if core.flights.among([pace]):
                    continue
                if lower is not None and core.state(pace).upper != lower:
                    return core.world[pace]
                flight = begin(core, pace, regular=regular, ahead=ahead)
                if flight is None:
                    return core.world[pace]
                core.flights.add(flight)
            if _flown(core, flight) or core.world[pace].upper > flight.time:
                return core.world[pace]


def _flown(core: Core, flight: Flight) -> bool:
    """Prepare and land a tick that has begun; return whether it did.

    It does not if another step got ahead of it, or if a source has other changes after a look at
    them.
    """
    try:
        done = _is_done(core, flight, partial(prepare, core, flight))
        while done:
            with core.writing() as world:
                flight.interrupt.check()
                if not flight.fits(world):
                    return False
                basis = flight.basis
                if basis is flight.fitted:
                    land(core, flight)
                    return True
            done = _is_done(core, flight, partial(refit, core.engine, flight, basis))
    finally:
        core.flights.end(flight)
    return False


def _is_done(core: Core, flight: Flight, work: Callable[[], None]) -> bool:
    """Do what a tick needs; return whether it could, with what it reads still there."""
    try:
        work()
    except TakeAgain:
        return False
    except Exception:
        flight.interrupt.check()
        if flight.is_untouched(core.world):
            raise
        return False  # what it read may be gone
    return True


def settle(core: Core, pace: Pace, *, ahead: bool = False) -> TimelineState:
    """Run one tick of ``pace`` and return its state: nothing is pending; hold the lock."""
    with core.writing(), PRECEDENCE.going_first():
        core.state(pace)
        core.intakes.pull(pace, regular=False)
        while (flight := begin(core, pace, ahead=ahead)) is not None:
            try:
                prepare(core, flight)
            except TakeAgain:
                continue
            land(core, flight)
            break
        return core.world[pace]


def begin(core: Core, pace: Pace, *, regular: bool = False, ahead: bool = False) -> Flight | None:
    """Decide what a tick closes, and starts from; None if there is nothing to close."""
    core.let_go()
    state = core.state(pace)
    time = _time(core, state, regular=regular, ahead=ahead)
    if time is None:
        return None
    due = core.expirations.due(state, time)
    time = core.expirations.closing(state, time, due.untils)
    return Flight(core.world, state, time, due, core.intakes.take(state, time))


def prepare(core: Core, flight: Flight) -> None:
    """Compute what a tick publishes, and write it."""
    world, state, time, watch = flight.world, flight.state, flight.time, flight.watch
    renewal = flight.renewal = core.expirations.renewal(state, flight.due)
    begun = renewal.applied(state)
    flight.taken = {
        item: some if some.look is None else some.look(watch.effort, flight.interrupt)
        for item, some in flight.taken.items()
    }
    changes = gather(state, world.catalog)
    for item, some in flight.taken.items():
        if some.changes is not None or some.runs:
            batches = () if some.changes is None else (some.changes,)
            changes[item] = Changes(batches, some.runs, state.segments)
        for table, part in some.tables.items():
            changes[table] = Changes(part.changes(begun), part.runs, state.segments)
        if some.waiting is not None:
            changes[temp_of(item)] = Changes((some.waiting,))
    if is_joint(state.pace):
        followed = joint.changes(world, state, time)
        changes |= {i: Changes((batch,)) for i, batch in followed.items()}
    letters = letter_changes(state, flight.taken)
    changes |= {i: Changes((batch,)) for i, batch in letters.items()}
    watch.lap(sum(change.rows for change in changes.values()))
    watch.held = sum(change.rows - change.staged_rows for change in changes.values())
    hit("tick.compute.before")
    updates = compute(core, begun, changes, time, flight)
    watch.lap(sum(map(rows_in, updates.values())))
    since = joint.first(world, state) if is_joint(state.pace) else state.upper
    flight.added = write(begun, updates, time, since if since > state.upper else None)
    watch.lap(sum(map(rows_in, flight.added.values())))
    hit("tick.land.before")


def land(core: Core, flight: Flight) -> None:
    """Publish a tick in the world that it fits; hold the lock."""
    pace, renewal, watch = flight.pace, flight.renewal, flight.watch
    state = core.world[pace]
    renewed = {*renewal.untils, *state.ahead}
    merged = (s for s in core.merger.finished(pace) if s.arrangement not in renewed)
    swaps = (*renewal.swaps, *merged)
    appends, after = state.ticked(
        flight.time, flight.added, swaps, flight.taken, untils=renewal.untils
    )
    if renewal.untils:
        after = replace(after, ahead={})
    hit("tick.publish.before")
    core.publish(core.world, appends, after)
    core.flights.end(flight)
    watch.lap(sum(map(rows_in, flight.added.values())))
    core.ticks.add(flight.time, watch)
    added = {name: rows_in(updates) for name, updates in flight.added.items()}
    core.meters.ticked(pace, flight.state.shape.graph, watch, added)
    core.expirations.landed(pace, flight.due, flight.dropped)
    hit("tick.publish.after")
    core.intakes.settle(core.world[pace])
    gone = core.merger.published(pace) or any(e.run.segment for e in state.wal.pending)
    if gone or core.uncollected:
        core.collect_garbage()
    core.expirations.consider(core.world[pace])
    core.merger.consider(core.world[pace])
    core.compact_bindings()


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
    core: Core,
    state: TimelineState,
    changes: dict[ObjectId, Changes],
    time: Timestamp,
    flight: Flight | None = None,
) -> Mapping[ArrangementId, Updates]:
    """Return what a tick appends to every arrangement that changes."""
    lower, upper = state.upper, time.step()
    if not changes and not core.engine.is_due(state.shape, state.traces, lower, upper):
        return {}
    if flight is None:
        shape = state.limited(core.expirations.dropped)
        return core.engine.step(shape, changes, state.traces, lower, upper)
    return core.engine.step(
        state.limited(flight.dropped), changes, state.traces, lower, upper,
        effort=flight.watch.effort, stop=flight.interrupt,
    )  # fmt: skip


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
