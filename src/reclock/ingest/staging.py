"""Staging: records that were read and have no time yet; bounded, in order, bound by a tick.

Definition. A *chunk* is records that follow what was staged before, and the frontier of
positions that is passed with it. Chunks wait in the order in which they were read. A tick
that closes T takes some of them, from the front, and binds each to the time of its *mark*::

    mark(chunk) = when it was read, rounded up to the interval      (at most T)

so data that waited for a slow tick keeps distinct times, as if ticks had been quick. With an
interval of its own, a source is bound only on the points of that grid. The times of records come
only from the bindings, by ``stamp`` (P1, P2).

What is taken stays until its bindings are known to be durable: ``settle`` forgets exactly the
chunks that a durable remap covers. A tick that failed, or whose outcome is unknown, takes again
what the remap says is still to be taken. Only records that were read are bound, and a crash loses
only the work of reading (P2, P5).

Tests: tests/ingest/test_sources.py; at random: test_source_walk.py; through
kill -9: test_kafka_crash.py.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reclock.connectors.stamp import stamp
from reclock.dataflow import delta as deltas
from reclock.dataflow.changes import Stamped
from reclock.engine.taken import Skipped, Taken
from reclock.errors import Corrupt
from reclock.remap.batch import NOT_BOUND, ranges
from reclock.time.position import offsets_of
from reclock.time.timestamp import Timestamp, round_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from reclock.arrangement.layout import Int64s
    from reclock.change.update import Update
    from reclock.dataflow.piece import Piece
    from reclock.dataflow.stop import Stop
    from reclock.dataflow.work import Effort
    from reclock.remap.batch import Range
    from reclock.remap.trace import Remap
    from reclock.time.antichain import Antichain


@dataclass(frozen=True)
class Chunk:
    """Records (``part, offset, …``), the frontier after them, and when they were read.

    ``complete_ms`` is when the source ended at that frontier; None if there is more. ``letters``
    are the records among them that were skipped.
    """

    records: tuple[pa.RecordBatch, ...]
    frontier: Antichain[Any]
    seen_ms: int
    complete_ms: int | None = None
    letters: tuple[pa.RecordBatch, ...] = ()
    pieces: tuple[Piece, ...] = ()
    """What tasks have read instead, and written (``task_reader``)."""

    @property
    def rows(self) -> int:
        """How many records there are."""
        read = sum(len(batch) for batch in (*self.records, *self.letters))
        return read + sum(piece.rows for piece in self.pieces)

    @property
    def size(self) -> int:
        """Their size in memory, about."""
        return sum(batch.nbytes for batch in (*self.records, *self.letters))


@dataclass(frozen=True)
class Grid:
    """The times that a tick may bind: those of ``[upper, time]``.

    ``interval`` is that of the marks. An ``own`` one is the source's: its marks are kept, and
    wait for their time. In a timeline without a clock everything is bound at ``time``.
    """

    upper: Timestamp
    time: Timestamp
    interval: int
    own: bool = False
    clock: bool = True

    def of(self, seen_ms: int) -> Timestamp | None:
        """Return when to bind what was read at ``seen_ms``; None: not yet.

        >>> grid = Grid(Timestamp(1_500), Timestamp(2_200), 1_000)
        >>> grid.of(1_300), grid.of(2_100), grid.of(100)
        (Timestamp(2000), Timestamp(2200), Timestamp(1500))
        >>> own = Grid(Timestamp(1_500), Timestamp(2_200), 1_000, own=True)
        >>> own.of(100), own.of(2_100)
        (Timestamp(2000), None)
        """
        if not self.clock:
            return self.time
        if self.own:  # a point of its grid that is still to come, or none
            mark = round_up(max(seen_ms, self.upper), self.interval)
            return mark if mark <= self.time else None
        return max(self.upper, min(round_up(seen_ms, self.interval), self.time))


class Staging:
    """The chunks of one source; its user holds the intake's lock."""

    def __init__(self, begin: Antichain[Any]) -> None:
        self._chunks: deque[Chunk] = deque()
        self._begin = begin
        self.rows = 0
        self.size = 0
        self.bound: list[str] = []
        """Files whose runs a durable tick has bound: they are no longer needed."""

    @property
    def frontier(self) -> Antichain[Any]:
        """Where reading goes on."""
        return self._chunks[-1].frontier if self._chunks else self._begin

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._chunks

    def add(self, chunk: Chunk) -> None:
        """Stage what follows the frontier."""
        self._chunks.append(chunk)
        self.rows += chunk.rows
        self.size += chunk.size

    def settle(self, bound: Antichain[Any]) -> Chunk | None:
        """Forget what is bound; return the last chunk of it, if any is."""
        last = None
        while self._chunks and self._chunks[0].frontier.precedes(bound):
            last = self._chunks.popleft()
            self.bound += (name for piece in last.pieces for name in piece.segments)
            self._begin = last.frontier
            self.rows -= last.rows
            self.size -= last.size
        if self._begin != bound:
            message = "what was read of a source does not begin where it is bound"
            detail = f"it begins at {self._begin}, positions up to {bound} are bound"
            raise Corrupt(message, detail=detail)
        return last

    def whole(self, made: tuple[pa.RecordBatch, ...]) -> None:
        """Put other records in the place of all that waits: they stand for the same."""
        last = self._chunks[-1]
        letters = tuple(batch for chunk in self._chunks for batch in chunk.letters)
        pieces = tuple(piece for chunk in self._chunks for piece in chunk.pieces)
        self._chunks.clear()
        self.rows = self.size = 0
        self.add(Chunk(made, last.frontier, last.seen_ms, last.complete_ms, letters, pieces))

    @property
    def batches(self) -> list[pa.RecordBatch]:
        """All records that wait, in order."""
        return [batch for chunk in self._chunks for batch in chunk.records]

    def take(self, remap: Remap[Any], grid: Grid, most: int) -> Taken | None:
        """Return what a tick binds: chunks of ``most`` records at most, but one at least.

        Records are stamped later, without the lock (``Taken.look``). Everything is still there
        afterwards; ``settle`` comes when it is durable.
        """
        taken: list[Chunk] = []
        after, rows = remap, 0
        updates: list[Update[Any, Timestamp]] = []
        time: Timestamp | None = None
        runs: list[Stamped] = []
        gone: list[Skipped] = []
        for chunk in self._chunks:
            mark = grid.of(chunk.seen_ms)
            if mark is None or (taken and rows + chunk.rows > most):
                break
            if time is not None and mark > time:
                after, updates = bound(after, updates, time, taken[-1].frontier)
            time = mark if time is None else max(time, mark)
            for piece in chunk.pieces:
                runs += [Stamped.at(run, time, is_rows=piece.is_rows) for run in piece.runs]
                gone += skipped_at(piece, time)
            taken.append(chunk)
            rows += chunk.rows
        if time is None:
            return None
        after, updates = bound(after, updates, time, taken[-1].frontier)
        records = [batch for chunk in taken for batch in chunk.records if batch.num_rows]
        skipped = [batch for chunk in taken for batch in chunk.letters]
        found = Taken(after, updates, None, runs=tuple(runs), skipped=tuple(gone))

        def look(effort: Effort, stop: Stop) -> Taken:
            del effort, stop
            return found._replace(
                changes=_stamped(records, after, remap.latest),
                letters=stamped_letters(skipped, after, remap.latest),
            )

        return found._replace(look=look) if records or skipped else found


def skipped_at(piece: Piece, time: Timestamp) -> list[Skipped]:
    """Return what was skipped of a piece that is bound to a time."""
    if piece.letters is None:
        return []
    return [Skipped(time, some, piece.letters) for some in piece.covers if some.skipped]


def taken_of(
    piece: Piece, first: Timestamp, last: Timestamp
) -> tuple[list[Stamped], list[Skipped]]:
    """Return what a piece whose ranges have their times brings at some of them."""
    some = [covered for covered in piece.covers if first <= covered.range.time <= last]
    if not some:
        return [], []
    whole, count = len(some) == len(piece.covers), sum(c.rows - c.skipped for c in some)
    times = None if whole else (first, last)
    skipped = [Skipped(c.range.time, c, piece.letters) for c in some
               if c.skipped and piece.letters is not None]  # fmt: skip
    return [Stamped(run, times, count, piece.is_rows) for run in piece.runs], skipped


def bound(
    remap: Remap[Any],
    updates: list[Update[Any, Timestamp]],
    time: Timestamp,
    frontier: Antichain[Any],
) -> tuple[Remap[Any], list[Update[Any, Timestamp]]]:
    """Return a remap bound further, and all that this appends after ``updates``."""
    more = remap.changes(time, frontier)
    return remap.bound(time, frontier), [*updates, *more]


def stamped_letters(
    skipped: Sequence[pa.RecordBatch], remap: Remap[Any], start: Antichain[Any]
) -> pa.RecordBatch | None:
    """Return records that were skipped as a delta, with the times that they are bound to."""
    if not skipped:
        return None
    bound = [r._replace(part=str(r.part)) for r in ranges(remap, offsets_of(remap.latest), start)]
    made = [
        deltas.build(batch.columns, _times(bound, batch, remap), np.ones(len(batch), np.int64))
        for batch in skipped
    ]
    return deltas.union(made)


def _times(bound: Sequence[Range], batch: pa.RecordBatch, remap: Remap[Any]) -> Int64s:
    """Return the time of every record."""
    names = batch.column(0).to_numpy(zero_copy_only=False)
    times = stamp(bound, names, batch.column(1).to_numpy())
    if (times == NOT_BOUND).any():
        message = "a record was read that no binding covers"
        raise Corrupt(message, detail=f"positions up to {remap.latest} are bound")
    return times


def _stamped(
    records: Sequence[pa.RecordBatch], remap: Remap[Any], start: Antichain[Any]
) -> pa.RecordBatch | None:
    """Return records as a delta: without their places, with the times that these are bound to."""
    if not records:
        return None
    bound = ranges(remap, offsets_of(remap.latest), start)
    made = []
    for batch in records:
        times = _times(bound, batch, remap)
        columns = batch.columns[2:]
        diff: Any = np.ones(batch.num_rows, np.int64)
        if batch.schema.names[-1] == "diff":
            diff = columns.pop()
        made.append(deltas.build(columns, times, diff))
    return deltas.union(made)
