"""Merges beside the ticks: fewer, larger runs, and history forgotten, in a thread of its own.

After a tick the arrangements with many runs are looked at; those whose sizes call for it
(``arrangement.merge``) are merged by a worker, all of one timeline into one file. Nothing
waits for it: the next publish after it is done swaps the merged runs in, and until then
everybody reads the old ones. If it fails nothing has changed, and a later tick tries again.

A merge also compacts: what holds the rows of objects to the earliest of their sinces
(``history``), the state of operators to the latest time. Where nothing calls for a merge,
runs are rewritten for that alone once most of an arrangement's rows are in runs that have
history and need none any more (``arrangement.merge.plan_compaction``): an object that is
left alone, or was held for long, shrinks to what it is.

Tests: tests/coordinator/test_merging.py.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.arrangement.cache import process_cache
from reclock.arrangement.merge import merge, plan_compaction, plan_merge, plan_union
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.shard import describe
from reclock.coordinator.arrangements import INLINE_BYTES, Swap
from reclock.time.antichain import meet_all
from reclock.time.frontier import at

if TYPE_CHECKING:
    from reclock.arrangement.layout import Layout
    from reclock.arrangement.run import RunRef
    from reclock.coordinator.core import Core
    from reclock.coordinator.timeline import TimelineState
    from reclock.dataflow.graph import ArrangementId
    from reclock.time.frontier import Frontier
    from reclock.time.timeline import Timeline

FEW_RUNS: Final = 8
"""An arrangement with at most so many runs is left alone: probing them costs little."""


@dataclass(frozen=True)
class _Task:
    arrangement: ArrangementId
    layout: Layout
    refs: tuple[RunRef, ...]
    since: Frontier


class Merger:
    """The worker that merges; at most one merge of a timeline is under way."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reclock-merge")
        self._running: dict[Timeline, tuple[str, Future[tuple[Swap, ...]]]] = {}

    def consider(self, state: TimelineState) -> None:
        """Begin to merge what needs it, unless a merge of the timeline is under way."""
        if state.timeline in self._running:
            return
        tasks = self._tasks(state)
        if tasks:
            stem = state.stem("merge", state.upper)
            self._core.in_flight.add(stem)
            self._running[state.timeline] = stem, self._pool.submit(_run, state, stem, tasks)

    def finished(self, timeline: Timeline) -> tuple[Swap, ...]:
        """Return the merges that are done, to be published now; a failed one is forgotten."""
        _, future = self._running.get(timeline, ("", None))
        if future is None or not future.done():
            return ()
        return () if future.exception() is not None else future.result()

    def published(self, timeline: Timeline) -> bool:
        """Forget the merges that are done; return whether their old runs are garbage now."""
        stem, future = self._running.get(timeline, ("", None))
        if future is None or not future.done():
            return False
        del self._running[timeline]
        self._core.in_flight.discard(stem)
        return True

    def wait(self) -> None:
        """Wait until no merge is under way; what they made waits for the next publish."""
        for _, future in list(self._running.values()):
            future.exception()

    def close(self) -> None:
        """Wait for the merge under way, and begin no other."""
        self._pool.shutdown(cancel_futures=True)

    def _tasks(self, state: TimelineState) -> list[_Task]:
        tasks = []
        for arrangement, made in state.shape.graph.arrangements.items():
            refs = state.arrangements.runs[arrangement]
            since = self._since(state, arrangement)
            plan = plan_merge(refs) if len(refs) > FEW_RUNS else plan_compaction(refs, since)
            plan = plan or plan_union(refs)
            if plan is not None:
                kept = describe(refs).since.join(since)
                tasks.append(_Task(arrangement, made.keying.layout, refs[plan], kept))
        return tasks

    def _since(self, state: TimelineState, arrangement: ArrangementId) -> Frontier:
        """Return what an arrangement may be compacted to: what all whose rows it holds allow."""
        latest = at(state.upper.back())
        owners = state.shape.owners.get(arrangement, frozenset())
        return meet_all([latest, *(state.sinces[item] for item in owners)])


def _run(state: TimelineState, stem: str, tasks: list[_Task]) -> tuple[Swap, ...]:
    with SegmentWriter(state.segments, stem, inline_limit=INLINE_BYTES) as writer:
        for task in tasks:
            runs = [process_cache().open(state.segments, r, task.layout) for r in task.refs]
            merge(writer, str(task.arrangement), task.layout, runs, task.since)
        refs = writer.finish()
    return tuple(
        Swap(task.arrangement, task.refs, ref) for task, ref in zip(tasks, refs, strict=True)
    )
