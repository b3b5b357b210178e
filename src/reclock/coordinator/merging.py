"""Merges beside the ticks: fewer, larger runs, and history forgotten, in a thread of its own.

After a tick the arrangements with many runs are looked at; those whose sizes call for it
(``arrangement.merge``) are merged by a worker, all of one timeline into one file; merges of
many rows by another, so that small runs never wait for them. No tick waits for either: the
next publish after one is done swaps the merged runs in, and until then everybody reads the
old ones. If it fails nothing has changed, and a later tick tries again.

A merge also compacts: what holds the rows of objects to the earliest of their sinces
(``history``), the state of operators to the latest time. Where nothing calls for a merge,
runs are rewritten for that alone once most of an arrangement's rows are in runs that have
history and need none any more (``arrangement.merge.plan_compaction``): an object that is
left alone, or was held for long, shrinks to what it is. Merges of updates that wait for their
time leave out those whose time has come, and are made for that alone when they are half.

Tests: tests/coordinator/test_merging.py.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.arrangement.cache import process_cache
from reclock.arrangement.merge import (
    merge,
    plan_compaction,
    plan_merge,
    plan_removal,
    plan_union,
)
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.shard import describe
from reclock.coordinator.arrangements import INLINE_BYTES, Swap
from reclock.time.antichain import meet_all
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.arrangement.layout import Layout
    from reclock.arrangement.run import RunRef
    from reclock.coordinator.core import Core
    from reclock.coordinator.timeline import TimelineState
    from reclock.dataflow.graph import ArrangementId
    from reclock.time.frontier import Frontier
    from reclock.time.pace import Pace

FEW_RUNS: Final = 8
"""An arrangement with at most so many runs is left alone: probing them costs little."""

LARGE_ROWS: Final = 1_000_000
"""A merge of more rows than this has a thread of its own: others do not wait for it."""


@dataclass(frozen=True)
class _Task:
    arrangement: ArrangementId
    layout: Layout
    refs: tuple[RunRef, ...]
    since: Frontier
    floor: int | None = None

    @property
    def is_large(self) -> bool:
        return _rows(self.refs) > LARGE_ROWS


@dataclass
class _Merge:
    """Tasks under way that write one file; ``taken`` when what they made was published."""

    stem: str
    tasks: list[_Task]
    future: Future[tuple[Swap, ...]]
    taken: bool = False


class Merger:
    """The workers that merge: of a timeline at most one small and one large merge at a time."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="reclock-merge")
        self._running: dict[Pace, dict[bool, _Merge]] = {}

    def consider(self, state: TimelineState) -> None:
        """Begin to merge what needs it, and can be merged beside what is under way."""
        running = self._running.setdefault(state.pace, {})
        if len(running) == 2:
            return
        tasks = self._tasks(state, running)
        for large in (False, True):
            chosen = [task for task in tasks if task.is_large is large]
            if chosen and large not in running:
                stem = state.stem("merge-large" if large else "merge", state.upper)
                self._core.in_flight.add(stem)
                future = self._pool.submit(_run, state, stem, chosen)
                running[large] = _Merge(stem, chosen, future)

    def finished(self, pace: Pace) -> tuple[Swap, ...]:
        """Return the merges that are done, to be published now; a failed one is forgotten."""
        swaps: list[Swap] = []
        for merge_ in self._running.get(pace, {}).values():
            if merge_.future.done():
                merge_.taken = True
                if merge_.future.exception() is None:
                    swaps += merge_.future.result()
        return tuple(swaps)

    def published(self, pace: Pace) -> bool:
        """Forget what ``finished`` gave; return whether there are old runs to remove now."""
        running = self._running.get(pace, {})
        done = [large for large, merge_ in running.items() if merge_.taken]
        for large in done:
            self._core.in_flight.discard(running.pop(large).stem)
        return bool(done)

    def wait(self) -> None:
        """Wait until no merge is under way; what they made waits for the next publish."""
        for running in list(self._running.values()):
            for merge_ in list(running.values()):
                merge_.future.exception()

    def close(self) -> None:
        """Wait for the merges under way, and begin no other."""
        self._pool.shutdown(cancel_futures=True)

    def _tasks(self, state: TimelineState, running: Mapping[bool, _Merge]) -> list[_Task]:
        busy = {
            (task.arrangement, task.refs[-1])
            for merge_ in running.values()
            for task in merge_.tasks
        }
        tasks = []
        for arrangement, made in state.shape.graph.arrangements.items():
            if arrangement in state.ahead:
                continue  # it is being renewed
            refs = state.arrangements.runs[arrangement]
            ends = [n for n, ref in enumerate(refs, 1) if (arrangement, ref) in busy]
            refs = refs[ends[-1] :] if ends else refs
            since = self._since(state, arrangement)
            plan = _plan(refs, since, large=True not in running)
            if plan is None and made.pending and not ends:
                plan = plan_removal(state.traces[arrangement].runs, state.upper)
            if plan is not None:
                kept = describe(refs).since.join(since)
                floor = state.upper if made.pending else None
                tasks.append(_Task(arrangement, made.keying.layout, refs[plan], kept, floor))
        return tasks

    def _since(self, state: TimelineState, arrangement: ArrangementId) -> Frontier:
        """Return what an arrangement may be compacted to: what all that read its past allow."""
        latest = at(state.upper.back())
        readers = state.shape.readers.get(arrangement, frozenset())
        return meet_all([latest, *(state.sinces[item] for item in readers)])


def _plan(refs: tuple[RunRef, ...], since: Frontier, *, large: bool) -> slice | None:
    """Return which runs to merge; without ``large`` ones, only if that is a small merge."""
    plan = plan_merge(refs) if len(refs) > FEW_RUNS else plan_compaction(refs, since)
    plan = plan or plan_union(refs)
    if plan is None or large or _rows(refs[plan]) <= LARGE_ROWS:
        return plan
    sizes = [index for index, ref in enumerate(refs) if 2 * ref.rows > LARGE_ROWS]
    newest = sizes[-1] + 1 if sizes else 0
    small = plan_merge(refs[newest:]) if len(refs) - newest > FEW_RUNS else None
    if small is None or _rows(refs[newest:][small]) > LARGE_ROWS:
        return None
    return slice(newest + small.start, newest + small.stop)


def _rows(refs: Sequence[RunRef]) -> int:
    return sum(ref.rows for ref in refs)


def _run(state: TimelineState, stem: str, tasks: list[_Task]) -> tuple[Swap, ...]:
    with SegmentWriter(state.segments, stem, inline_limit=INLINE_BYTES) as writer:
        for task in tasks:
            runs = [process_cache().open(state.segments, r, task.layout) for r in task.refs]
            merge(writer, str(task.arrangement), task.layout, runs, task.since, floor=task.floor)
        refs = writer.finish()
    return tuple(
        Swap(task.arrangement, task.refs, (ref,)) for task, ref in zip(tasks, refs, strict=True)
    )
