"""Merges of runs, in this process or in Spark tasks; both give the same arrangement.

A ``Merge`` is runs of one arrangement that follow one another, and the since that they are
compacted to (``arrangement.merge``). ``merge_here`` writes all of some merges into one segment,
a run for each.

``merge_in_tasks`` cuts each merge into *spans*: ranges of ``kh`` of about as many rows each, as
the tables of the runs tell. So updates that are arranged by their time are cut as well as hashes
are. A task gets the references of the runs that reach into its range, reads of them the batches
that do, and writes one run into a segment; small spans share a task. What stands for a merge is
then siblings (``arrangement.family``), or one run if it had one span. The driver gets references
only.

A task that fails, is lost or runs twice changes nothing: names come from contents. What was
written and not published is garbage, as long as its stem is not in flight (``arrangement.gc``).

Tests: tests/dataflow/test_merge.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from reclock.arrangement import merge as rules
from reclock.arrangement.cache import RunCache, process_cache
from reclock.arrangement.run import RunRef
from reclock.arrangement.segment import SegmentWriter
from reclock.time.timestamp import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reclock.arrangement.layout import Layout
    from reclock.arrangement.run import Run
    from reclock.arrangement.store import Store
    from reclock.dataflow.graph import ArrangementId
    from reclock.dataflow.job.tasks import Tasks
    from reclock.dataflow.stop import Stop
    from reclock.time.description import Description
    from reclock.time.frontier import Frontier
    from reclock.time.timestamp import Timestamp

INLINE_BYTES: Final = 4_096
"""Runs up to this size travel in their references."""

MOST_PARTS: Final = 64
"""A merge has no more parts than this, unless that is fewer than four for each core."""

_POINTS: Final = 64
"""So many hashes of a batch are guessed to find out how rows are spread."""

_SHARED: Final = 4
"""Pieces share a task up to this fraction of a part."""


@dataclass(frozen=True)
class Merge:
    """Runs that become one, compacted to ``since``, without what has a ``kh`` before ``floor``."""

    name: ArrangementId
    layout: Layout
    refs: tuple[RunRef, ...]
    since: Frontier
    floor: int | None = None

    @property
    def rows(self) -> int:
        """How many updates are read."""
        return sum(ref.rows for ref in self.refs)

    @property
    def bytes(self) -> int:
        """How many bytes these have."""
        return sum(ref.length for ref in self.refs)


@dataclass(frozen=True)
class Span:
    """One range of a merge, both ends included; ``rows`` is about how many it has."""

    merge: int
    name: str
    layout: Layout
    refs: tuple[RunRef, ...]
    description: Description[Timestamp]
    first: int
    last: int
    rows: int


def merge_here(
    merges: Sequence[Merge], store: Store, stem: str, stop: Stop | None = None
) -> list[tuple[RunRef, ...]]:
    """Return what stands for each merge from now on, all written to one segment."""
    with SegmentWriter(store, stem, inline_limit=INLINE_BYTES) as writer:
        for one in merges:
            runs = process_cache().open_all(store, one.refs, one.layout)
            rules.merge(
                writer, str(one.name), one.layout, runs, one.since, floor=one.floor, stop=stop
            )
        return [(ref,) for ref in writer.finish()]


def merge_in_tasks(
    tasks: Tasks, merges: Sequence[Merge], store: Store, stem: str
) -> list[tuple[RunRef, ...]]:
    """Return the same, written by tasks: one segment for each."""
    loads = shared([p for nth, one in enumerate(merges) for p in cut(nth, one, store, tasks)])
    found: list[list[tuple[int, RunRef]]] = [[] for _ in merges]
    for load, text in zip(loads, tasks.run(_Task(store, stem), loads), strict=True):
        for span, stored in zip(load, json.loads(text), strict=True):
            ref = RunRef.from_json(stored)
            if ref.rows:
                found[span.merge].append((span.first, ref))
    made = [
        tuple(ref for _, ref in sorted(some, key=lambda pair: pair[0])) or (_nothing(one),)
        for one, some in zip(merges, found, strict=True)
    ]
    store.require({ref.segment for refs in made for ref in refs if ref.segment is not None})
    return made


def cut(nth: int, merge: Merge, store: Store, tasks: Tasks) -> list[Span]:
    """Return the spans of a merge that have rows."""
    runs = process_cache().open_all(store, merge.refs, merge.layout)
    count = parts_of(merge.rows, tasks.parallelism)
    description = rules.compacted(merge.refs, merge.since)
    ranges = list(ranges_of(runs, count, rules.INT64_MIN if merge.floor is None else merge.floor))
    spans = []
    for part, (first, last) in enumerate(ranges):
        name = f"{merge.name}.{part}" if len(ranges) > 1 else str(merge.name)
        there = [run for run in runs if run.rows and run.first[0] <= last and run.last[-1] >= first]
        refs = tuple(run.ref for run in there)
        rows = merge.rows // len(ranges)
        if refs:
            spans.append(Span(nth, name, merge.layout, refs, description, first, last, rows))
    return spans


def parts_of(rows: int, parallelism: int) -> int:
    """Return how many parts a merge of so many rows has: as many as are worth it.

    >>> parts_of(900_000, 2), parts_of(2_100_000, 2), parts_of(10**9, 2), parts_of(10**9, 32)
    (1, 2, 64, 128)
    """
    return max(1, min(rows // rules.PART_ROWS, max(MOST_PARTS, 4 * parallelism)))


def ranges_of(runs: Sequence[Run], count: int, least: int) -> Iterator[tuple[int, int]]:
    """Yield at most ``count`` ranges from ``least`` on, of about as many rows each.

    Inside of a batch hashes are taken to be spread evenly. If they are not, ranges have more or
    fewer rows, and are still ranges.
    """
    cuts: set[int] = set()
    if count > 1:
        tables = [(run.first, run.last, run.sizes) for run in runs if run.rows]
        first, last, sizes = (np.concatenate(some) for some in zip(*tables, strict=True))
        low, high = first.astype(np.float64), last.astype(np.float64)
        share = (np.arange(_POINTS) + 0.5) / _POINTS
        points = (low[:, None] + (high - low)[:, None] * share).ravel()
        weights = np.repeat(sizes / _POINTS, _POINTS)
        weights, points = weights[points >= least], points[points >= least]
        order = np.argsort(points, kind="stable")
        before = np.cumsum(weights[order])
        if len(before):
            wanted = before[-1] * np.arange(1, count) / count
            at = np.minimum(np.searchsorted(before, wanted), len(order) - 1)
            cuts = {int(point) for point in points[order[at]].tolist()}
    inside = sorted(point for point in cuts if least < point <= INT64_MAX)
    for begin, end in pairwise([least, *inside, INT64_MAX + 1]):
        yield begin, end - 1


def shared(spans: Sequence[Span]) -> list[tuple[Span, ...]]:
    """Return what each task does: one span, or several small ones."""
    loads: list[list[Span]] = []
    rows = 0
    for span in spans:
        if loads and rows + span.rows <= rules.PART_ROWS // _SHARED:
            loads[-1].append(span)
            rows += span.rows
        else:
            loads.append([span])
            rows = span.rows
    return [tuple(load) for load in loads]


def _nothing(merge: Merge) -> RunRef:
    """Return the run that stands for updates that all cancel."""
    return RunRef(str(merge.name), rules.compacted(merge.refs, merge.since), 0, 0, 0)


@dataclass(frozen=True)
class _Task:
    """What a task runs."""

    store: Store
    stem: str

    def __call__(self, load: tuple[Span, ...]) -> str:
        """Write the runs of some spans; return their references."""
        cache = RunCache()  # the runs are read once, and their files are removed soon
        with SegmentWriter(self.store, self.stem, inline_limit=INLINE_BYTES) as writer:
            for span in load:
                runs = cache.open_all(self.store, span.refs, span.layout)
                rules.merge_range(
                    writer, span.name, span.layout, runs, span.description,
                    first=span.first, last=span.last,
                )  # fmt: skip
            return json.dumps([ref.to_json() for ref in writer.finish()])
