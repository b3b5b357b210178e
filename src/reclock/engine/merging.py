"""Background merges: fewer, larger runs, and forgotten history.

After a tick the arrangements with many runs are looked at. Those whose sizes call for it
(``arrangement.merge``) are merged by the engine: in the driver if that takes a moment, else by a
Spark job. All merges of about one *size* that are due at once are one call. Of each size a timeline
has one call under way, and the sizes are eight times apart: so small runs never wait for a large
merge. No tick waits for any: the next publish after one is done swaps the merged runs in, and until
then everybody reads the old ones. If it fails nothing has changed. It is forgotten and tried again
by a later tick, after a pause that grows; the log tells if it goes on failing.

A merge also compacts: what holds the rows of objects to the earliest of their sinces
(``history``), the state of operators to the latest time. Where nothing calls for a merge,
runs are rewritten for that alone once most of an arrangement's rows are in runs that have
history, need none any more, and have updates that cancel
(``arrangement.merge.plan_compaction``): an object that is left alone, or was held for long,
shrinks to what it is. Merges of updates that wait for their time leave out those whose time has
come, and are made for that alone when they are half.

Closing ends what is under way, here and in Spark: what it wrote is garbage.

Tests: tests/engine/test_merging.py.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol

from reclock.arrangement.family import joined
from reclock.arrangement.merge import (
    families_of,
    plan_compaction,
    plan_merge,
    plan_removal,
    plan_union,
)
from reclock.arrangement.shard import describe
from reclock.dataflow.merge import Merge
from reclock.engine.arrangements import Swap
from reclock.engine.interrupt import Interrupt
from reclock.engine.supervisor import pause
from reclock.errors import Interrupted
from reclock.failpoints import hit
from reclock.time.antichain import meet_all
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from reclock.arrangement.run import RunRef
    from reclock.clock import Clock
    from reclock.dataflow.graph import ArrangementId
    from reclock.engine.engine import Engine
    from reclock.engine.meters import Meters
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.time.frontier import Frontier
    from reclock.time.pace import Pace

LOG: Final = logging.getLogger(__name__)

FEW_RUNS: Final = 8
"""An arrangement with at most so many runs is left alone: probing them costs little."""

SMALL_ROWS: Final = 200_000
"""Merges of at most so many rows are of the least size."""

GROWTH: Final = 8
"""Merges of the next size have up to so many times the rows."""

THREADS: Final = 4
"""So many merges that are not small are under way at once, of all timelines; most in Spark."""

TOLD: Final = 3
"""The log tells of a merge that has failed so often in a row, and each time that doubles."""


@dataclass
class _Call:
    """Merges under way together; ``taken`` when what they made was published."""

    stem: str
    title: str
    merges: list[Merge]
    future: Future[tuple[Swap, ...]]
    taken: bool = False


@dataclass(frozen=True)
class _Failed:
    """So often in a row, the last time at ``at_ms``."""

    times: int
    at_ms: int

    def is_due(self, now_ms: int) -> bool:
        """Return whether to try again, whichever way the clock was set meanwhile."""
        return abs(now_ms - self.at_ms) >= 1_000 * pause(self.times)


class Owner(Protocol):
    """What is needed of the owner of the state."""

    @property
    def clock(self) -> Clock:
        """Its clock."""
        ...

    @property
    def engine(self) -> Engine:
        """What merges."""
        ...

    @property
    def world(self) -> World:
        """The last world that is known to be durable."""
        ...

    @property
    def meters(self) -> Meters:
        """What is counted."""
        ...

    @property
    def in_flight(self) -> set[str]:
        """Stems of segments that background work is writing."""
        ...


class Merger:
    """Has runs merged: of a timeline one call for each size at a time."""

    def __init__(self, core: Owner) -> None:
        self._core = core
        self._small = ThreadPoolExecutor(1, thread_name_prefix="reclock-merge")
        self._large = ThreadPoolExecutor(THREADS, thread_name_prefix="reclock-merge-large")
        self._running: dict[Pace, dict[int, _Call]] = {}
        self._failed: dict[tuple[Pace, int], _Failed] = {}
        self._numbers = count()
        self._stop = Interrupt()
        self._door = Lock()
        self._closed = False

    def consider(self, state: TimelineState) -> None:
        """Begin to merge what needs it, and is not part of a merge in progress."""
        running = self._running.setdefault(state.pace, {})
        now = self._core.clock.now_ms()
        resting = {
            size for (pace, size), failed in self._failed.items()
            if pace == state.pace and not failed.is_due(now)
        }  # fmt: skip
        merges = self._merges(state, running, resting | running.keys())
        with self._door:  # a tick may land while another thread closes
            if self._closed:
                return
            for size in sorted({size_of(one.rows) for one in merges}):
                chosen = [one for one in merges if size_of(one.rows) == size]
                stem = f"{state.stem('merge', state.upper)}-{next(self._numbers)}"
                title = self._title(state, chosen)
                self._core.in_flight.add(stem)
                pool = self._large if size else self._small
                future = pool.submit(self._run, state, stem, title, chosen)
                running[size] = _Call(stem, title, chosen, future)

    def finished(self, pace: Pace) -> tuple[Swap, ...]:
        """Return the merges that are done, to be published now; a failed one is forgotten."""
        swaps: list[Swap] = []
        for size, call in self._running.get(pace, {}).items():
            if not call.future.done() or call.future.cancelled():  # closed before it began
                continue
            error = call.future.exception()
            if error is None:
                self._failed.pop((pace, size), None)
                if not call.taken:
                    self._core.meters.merged(ok=True)
                swaps += call.future.result()
            elif not call.taken:
                self._core.meters.merged(ok=False)
                self._note(pace, size, call.title, error)
            call.taken = True
        return tuple(swaps)

    def published(self, pace: Pace) -> bool:
        """Forget what ``finished`` gave; return whether there are old runs to remove now."""
        running = self._running.get(pace, {})
        done = [size for size, call in running.items() if call.taken]
        for size in done:
            self._core.in_flight.discard(running.pop(size).stem)
        return bool(done)

    @property
    def under_way(self) -> int:
        """How many calls are under way, or wait for a tick to publish them."""
        return sum(len(calls) for calls in tuple(self._running.values()))

    def wait(self) -> None:
        """Wait until no merge is under way; what they made waits for the next publish."""
        for running in list(self._running.values()):
            wait([call.future for call in list(running.values())])

    def close(self) -> None:
        """End the merges under way, and begin no other."""
        with self._door:
            self._closed = True
        self._stop.set(Interrupted("the database is closed"))
        for pool in (self._small, self._large):
            pool.shutdown(cancel_futures=True)

    def _run(
        self, state: TimelineState, stem: str, title: str, merges: list[Merge]
    ) -> tuple[Swap, ...]:
        hit("merge.write.before")
        self._stop.check()
        made = self._core.engine.merge(merges, state.segments, stem, title=title, stop=self._stop)
        hit("merge.write.after")
        return tuple(Swap(one.name, one.refs, refs) for one, refs in zip(merges, made, strict=True))

    def _note(self, pace: Pace, size: int, title: str, error: BaseException) -> None:
        before = self._failed.get((pace, size))
        times = 1 if before is None else before.times + 1
        self._failed[pace, size] = _Failed(times, self._core.clock.now_ms())
        if times % TOLD == 0 and (times // TOLD).bit_count() == 1:
            LOG.warning("%s: failed %d times in a row, is tried again: %s", title, times, error)

    def _merges(
        self, state: TimelineState, running: dict[int, _Call], taken: Collection[int]
    ) -> list[Merge]:
        busy = {(one.name, one.refs[-1]) for call in running.values() for one in call.merges}
        merges = []
        for arrangement, made in state.shape.graph.arrangements.items():
            if arrangement in state.ahead:
                continue  # it is being renewed
            refs = state.arrangements.runs[arrangement]
            ends = [n for n, ref in enumerate(refs, 1) if (arrangement, ref) in busy]
            refs = refs[ends[-1] :] if ends else refs
            since = self._since(state, arrangement)
            sources = len(joined(state.traces[arrangement].runs[-len(refs) :])) if refs else 0
            plan = _plan(refs, sources, since, taken)
            if plan is None and refs:
                plan = self._rewrite(state, arrangement, refs, pending=made.pending and not ends)
            if plan is not None and size_of(_rows(refs[plan])) not in taken:
                kept = describe(refs).since.join(since)
                floor = state.upper if made.pending else None
                merges.append(Merge(arrangement, made.keying.layout, refs[plan], kept, floor))
        return merges

    def _rewrite(
        self,
        state: TimelineState,
        arrangement: ArrangementId,
        refs: tuple[RunRef, ...],
        *,
        pending: bool,
    ) -> slice | None:
        """Return which runs to rewrite though their sizes do not call for it."""
        plan = None
        if FEW_RUNS < len(refs) > len(families_of(refs)):
            plan = plan_union(state.traces[arrangement].runs[-len(refs) :])
        if plan is None and pending:
            plan = plan_removal(state.traces[arrangement].runs, state.upper)
        return plan

    def _since(self, state: TimelineState, arrangement: ArrangementId) -> Frontier:
        """Return what an arrangement may be compacted to: what all that read its past allow."""
        latest = at(state.upper.back())
        readers = state.shape.readers.get(arrangement, frozenset())
        return meet_all([latest, *(state.sinces[item] for item in readers)])

    def _title(self, state: TimelineState, merges: Sequence[Merge]) -> str:
        """Return what Spark's pages call some merges: the objects, and how many rows."""
        items, graph = self._core.world.items, state.shape.graph
        found: set[str] = set()
        for one in merges:
            owners = state.shape.readers.get(one.name) or {
                view for view in graph.views if one.name in graph.state_of(view)
            }
            found |= {items[item].name for item in owners if item in items} or {str(one.name)}
        names = sorted(found)
        rows = sum(one.rows for one in merges)
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"merge · {', '.join(names[:3])}{more} · {rows:,} rows"


def size_of(rows: int) -> int:
    """Return the size of a merge of so many rows.

    >>> [size_of(rows) for rows in (0, 200_000, 200_001, 1_600_000, 1_600_001)]
    [0, 0, 1, 1, 2]
    """
    size, most = 0, SMALL_ROWS
    while rows > most:
        size, most = size + 1, most * GROWTH
    return size


def _plan(
    refs: tuple[RunRef, ...], sources: int, since: Frontier, taken: Collection[int]
) -> slice | None:
    """Return which runs to merge because of their sizes or times; ``sources`` are to be probed.

    If a merge of that size is under way already, only newer runs that are smaller.
    """
    if sources <= FEW_RUNS:
        return plan_compaction(refs, since)
    plan = plan_merge(refs)
    if plan is None or size_of(_rows(refs[plan])) not in taken:
        return plan
    for smaller in _newest(refs, size_of(_rows(refs[plan]))):
        if size_of(_rows(refs[smaller])) not in taken:
            return smaller
    return plan


def _newest(refs: tuple[RunRef, ...], size: int) -> Iterator[slice]:
    """Yield merges of the newest runs, the larger ones first, that are of a lesser size."""
    families = families_of(refs)
    for below in reversed(range(size)):
        most = SMALL_ROWS * GROWTH**below
        large = [nth for nth, (_, rows) in enumerate(families) if 2 * rows > most]
        newest = families[large[-1] + 1 :] if large else families
        if len(newest) <= FEW_RUNS:
            continue
        start = newest[0][0]
        plan = plan_merge(refs[start:])
        if plan is not None and size_of(_rows(refs[start:][plan])) <= below:
            yield slice(start + plan.start, start + plan.stop)


def _rows(refs: Sequence[RunRef]) -> int:
    return sum(ref.rows for ref in refs)
