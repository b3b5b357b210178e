"""Closing times of a source that brings its own: each update once, looked at where it lies.

Statements of CDCv2 wait in the files that tasks wrote (``stated_runs``). A time may lie in several
of them, and an update in more than one, as often as it was sent. A ``Closing`` is all updates at
times of ``[lower, end)``. Tasks take a range of hashes each, in which equal updates lie, and

* leave every update once, and count them by time;
* look for two diffs of one row at one time, and for rows that are taken away and are not there;
* write them as the collection of the source keeps rows, so that a tick adopts the runs;
* say the hashes of the updates of some times (``closed_times``).

The driver gets references, counts and what is wrong. Whether the counts are those that were stated
is its to say: if they are not, what was written is garbage.

Cost: one job of one stage; a task has a range of updates in memory, as a part of a job.
Tests: tests/dataflow/test_closing.py.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reclock.arrangement.cache import RunCache
from reclock.arrangement.column import canonical
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import diff_of, time_of
from reclock.arrangement.merge import INT64_MIN
from reclock.arrangement.run import RunRef
from reclock.arrangement.segment import SegmentWriter, rows_per_batch
from reclock.arrangement.shard import Shard, within
from reclock.dataflow import delta as deltas
from reclock.dataflow.merge import ranges_of
from reclock.dataflow.taken_away import first_taken_away
from reclock.errors import ConflictingStatements
from reclock.time.description import Description
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reclock.arrangement.layout import Int64s
    from reclock.arrangement.store import Store
    from reclock.dataflow.job.errand import Kept
    from reclock.dataflow.job.tasks import Tasks
    from reclock.dataflow.stated_runs import StatedRuns

PART_ROWS: Final = 1_000_000
PART_BYTES: Final = 256 << 20
"""How much a task looks at, about."""

_ANY: Final = Description(at(0), at(1), at(0))


@dataclass(frozen=True)
class Closing:
    """The updates at times of ``[lower, end)`` of staged runs, and what there is before.

    ``remembered`` are the times whose hashes are asked for.
    """

    runs: StatedRuns
    refs: tuple[RunRef, ...]
    lower: int
    end: int
    state: Kept
    remembered: tuple[int, ...] = ()


@dataclass
class Found:
    """What tasks have found: how many updates each time has, and what is wrong with them."""

    refs: list[RunRef] = field(default_factory=list)
    """Runs of the collection: ranges of hashes, one after the other."""
    counts: dict[int, int] = field(default_factory=dict)
    hashes: dict[int, Int64s] = field(default_factory=dict)
    two_diffs: ConflictingStatements | None = None
    taken_away: ConflictingStatements | None = None
    """The first of all."""
    _first: int | None = None

    @property
    def segments(self) -> frozenset[str]:
        """The files that were written."""
        return frozenset(ref.segment for ref in self.refs if ref.segment is not None)

    def add(self, text: str) -> None:
        """Take in what a task has sent."""
        sent = json.loads(text)
        self.refs += map(RunRef.from_json, sent["runs"])
        times, counts = (_numbers(sent[name]) for name in ("times", "counts"))
        for time, count in zip(times.tolist(), counts.tolist(), strict=True):
            self.counts[time] = self.counts.get(time, 0) + count
        for time, text_of in sent["hashes"]:
            some = [_numbers(text_of), *([self.hashes[time]] if time in self.hashes else [])]
            self.hashes[time] = np.sort(np.concatenate(some))
        if sent["two_diffs"] is not None and self.two_diffs is None:
            self.two_diffs = _error(sent["two_diffs"])
        if sent["taken_away"] is not None:
            when, error = sent["taken_away"]
            if self._first is None or when < self._first:
                self._first, self.taken_away = when, _error(error)


def hashes_of(row: Sequence[pa.Array], diff: pa.Array) -> Int64s:
    """Return a hash of each update: of its data and diff."""
    columns = [*map(canonical, row), diff]
    return deltas.key_hash(columns, len(diff))


def close(
    tasks: Tasks, closing: Closing, others: pa.RecordBatch | None, store: Store, stem: str
) -> Found:
    """Look at the updates of some times, in tasks; ``others`` are in memory, as they would lie."""
    with ExitStack() as undo:
        refs = list(closing.refs)
        if others is not None and others.num_rows:
            with SegmentWriter(store, stem, durable=False) as writer:
                _write(writer, "memory", closing.runs.keying.layout, others)
                (ref,) = writer.finish()
            assert ref.segment is not None
            undo.callback(store.remove, ref.segment)
            refs.append(ref)
        runs = RunCache().open_all(store, refs, closing.runs.keying.layout)
        rows, size = sum(ref.rows for ref in refs), sum(ref.length for ref in refs)
        count = max(tasks.parallelism, -(-rows // PART_ROWS), -(-size // PART_BYTES))
        spans = [
            (first, last, tuple(run.ref for run in runs if _reaches(run, first, last)))
            for first, last in ranges_of(runs, count, INT64_MIN)
        ]
        found = Found()
        for text in tasks.run(_Task(closing, store, stem), spans):
            found.add(text)
    return found


def _reaches(run: Any, first: int, last: int) -> bool:
    return bool(run.rows and run.first[0] <= last and run.last[-1] >= first)


def _write(writer: SegmentWriter, name: str, layout: Any, updates: pa.RecordBatch) -> None:
    per_batch = rows_per_batch(updates.num_rows, updates.nbytes)
    writer.add(name, layout, [updates], _ANY, batch_rows=per_batch)


@dataclass(frozen=True)
class _Task:
    """What a task runs: it gets a range of hashes, and the runs that reach into it."""

    closing: Closing
    store: Store
    stem: str

    def __call__(self, span: tuple[int, int, tuple[RunRef, ...]]) -> str:
        """Look at the updates of a range, and write them."""
        first, last, refs = span
        runs, keying = self.closing.runs, self.closing.runs.rows
        batches = [*self._read(first, last, refs)]
        if not batches:
            return _text()
        distinct = runs.once(pa.concat_batches(batches))
        *row, diff = runs.keying.columns(distinct)
        stated = time_of(distinct)
        rows = keying.arrange(deltas.build(row, stated, diff))
        made = consolidate(keying.layout, rows)
        times, counts = np.unique(stated, return_counts=True)
        twice = taken_away = None
        if made.num_rows < len(stated):
            twice = two_diffs(deltas.build(row, stated, np.ones(len(stated), np.int64)))
        elif (diff_of(made) < 0).any():
            state = self.closing.state
            shard = Shard.open(keying.layout, state.refs, self.store, RunCache(), state.upper)
            taken_away = first_taken_away(keying, shard, made)
        written: tuple[RunRef, ...] = ()
        if twice is None and taken_away is None:
            with SegmentWriter(self.store, self.stem) as writer:
                _write(writer, f"closed {self.closing.lower} {first}", keying.layout, made)
                written = writer.finish()
        hashes = self._hashes(row, diff, stated)
        return _text(written, (times, counts), hashes, twice, taken_away)

    def _read(self, first: int, last: int, refs: Sequence[RunRef]) -> Iterator[pa.RecordBatch]:
        cache, layout = RunCache(), self.closing.runs.keying.layout
        for ref in refs:
            for batch in within(cache.open(self.store, ref, layout), first, last):
                times = time_of(batch)
                due = (times >= self.closing.lower) & (times < self.closing.end)
                if due.any():
                    yield batch if due.all() else batch.filter(pa.array(due))

    def _hashes(
        self, row: Sequence[pa.Array], diff: pa.Array, stated: Int64s
    ) -> list[tuple[int, str]]:
        asked = np.array(self.closing.remembered, np.int64)
        here = np.flatnonzero(np.isin(stated, asked))
        if not len(here):
            return []
        some = pa.array(here)
        hashes = hashes_of([column.take(some) for column in row], diff.take(some))
        times = stated[here]
        return [(int(t), _packed(hashes[times == t])) for t in np.unique(times).tolist()]


def two_diffs(updates: pa.RecordBatch) -> ConflictingStatements | None:
    """Return what is wrong with a delta of rows, each once for every diff: one has two."""
    made = deltas.consolidated(updates)
    twice = np.flatnonzero(diff_of(made) > 1)
    if not len(twice):
        return None
    at = int(twice[0])
    row = tuple(column[at].as_py() for column in deltas.rows_of(made))
    message = f"two diffs are stated for the same data at time {time_of(made)[at]}"
    return ConflictingStatements(message, detail=f"the data is {row!r:.200}")


def _text(
    written: Sequence[RunRef] = (),
    counts: tuple[Int64s, Int64s] | None = None,
    hashes: Sequence[tuple[int, str]] = (),
    twice: ConflictingStatements | None = None,
    taken_away: tuple[int, ConflictingStatements] | None = None,
) -> str:
    """Return what a task sends to the driver."""
    none = np.empty(0, np.int64)
    times, numbers = (none, none) if counts is None else counts
    wrong = None if taken_away is None else (taken_away[0], _told(taken_away[1]))
    return json.dumps(
        {
            "runs": [ref.to_json() for ref in written],
            "times": _packed(times),
            "counts": _packed(numbers),
            "hashes": hashes,
            "two_diffs": None if twice is None else _told(twice),
            "taken_away": wrong,
        }
    )


def _told(error: ConflictingStatements) -> tuple[str, str | None]:
    return error.message, error.detail


def _error(told: Sequence[Any]) -> ConflictingStatements:
    return ConflictingStatements(told[0], detail=told[1])


def _packed(numbers: Int64s) -> str:
    return b64encode(numbers.astype("<i8").tobytes()).decode()


def _numbers(text: str) -> Int64s:
    return np.frombuffer(b64decode(text), "<i8").astype(np.int64)
