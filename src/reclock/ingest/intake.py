"""The reading of one source: from what is bound, ahead, into a bounded staging area.

``pull`` is one step of it: ask where the source ends, read from where reading stands, decode,
``verify`` that it still was the same source, stage. A long way is read in one go, over many pulls:
the reader stays where it is between them. A pull stages no more than there is room for; the caller
waits for room (``pump``), or has the tick make some.

Two kinds of failure (P9). ``SourceUnavailable``, and whatever is not known: nothing is lost, the
next pull begins again where staging ends. ``SourceRegressed``, ``SourceStopped``: lasting. The tick
that takes it binds nothing more, for ever: the remap is *sealed*, and the source gets an error row,
which readers of the source, and of views over it, are told. Others go on.

The snapshot of an upsert source, all that is there when it is first read, is bound at one
time: nothing is taken before it is whole. Of every key only the last record is kept meanwhile,
so memory is that of the keys; what tasks have read of it is in files.

One thread pulls at a time, while ticks take and settle. Tests: tests/ingest/test_intake.py,
test_sources.py; on a real broker: test_kafka.py.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from time import thread_time
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reclock.connectors import letters
from reclock.dataflow.piece import whole_rows
from reclock.dataflow.snapshot import LastOfEach
from reclock.engine.interrupt import Interrupt
from reclock.engine.taken import Taken
from reclock.errors import (
    Error,
    Interrupted,
    PositionsLost,
    SourceRegressed,
    SourceStopped,
    SourceUnavailable,
)
from reclock.failpoints import hit
from reclock.ingest.staging import Chunk, Staging
from reclock.ingest.task_reader import ranges_between
from reclock.remap.batch import Range
from reclock.time.antichain import Antichain
from reclock.time.position import offsets_of
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from reclock.clock import Clock
    from reclock.engine.engine import Engine
    from reclock.ingest.connect import Connected
    from reclock.ingest.staging import Grid
    from reclock.ingest.task_reader import TaskReader
    from reclock.ingest.timed import Plan
    from reclock.remap.trace import Remap

PULL_ROWS: Final = 131_072
PULL_BYTES: Final = 32 << 20
"""How much a pull stages before it lets a tick see it."""

LADEN_ROWS: Final = 100_000
"""How many records are worth a tick of their own."""

STAGED_BYTES: Final = 256 << 20
"""How much may wait for a tick."""


@dataclass
class Counts:
    """What this process has read of a source."""

    rows: int = 0
    bytes: int = 0
    errors: int = 0


class Intake:
    """Reads one source; ``remap`` is where its bindings stand when it begins."""

    def __init__(
        self, connected: Connected, engine: Engine, clock: Clock, remap: Remap[Any], most: int
    ) -> None:
        self.connected = connected
        self._engine = engine
        self.most = most
        """How many records one tick takes."""
        self.counts = Counts()
        self.upstream: Antichain[Any] | None = None
        """Where the source ended when it was last asked."""
        self.complete_ms: int | None = None
        """When everything that there was, was bound."""
        self.stall: Error | None = None
        """Why nothing can be read at the moment."""
        self.failure: Error | None = None
        """Why nothing more will ever be read."""
        self.tasks: TaskReader | None = None
        """Who reads where there is much; None: only this process can."""
        self.room = threading.Condition()
        """Guards all of this; told when there is room again."""
        self._stop = Interrupt()
        self._clock = clock
        self._staging = Staging(remap.latest)
        self._pulling = threading.Lock()
        self._reading: _Reading | None = None
        self._snapshot = connected.upserts and not remap.bindings

    @property
    def pulled_rows(self) -> int:
        """How many records a pull stages at most."""
        return min(PULL_ROWS, self.most)

    @property
    def frontier(self) -> Antichain[Any]:
        """Where reading stands."""
        with self.room:
            return self._staging.frontier

    @property
    def staged_rows(self) -> int:
        """How many records wait for a tick."""
        with self.room:
            return 0 if self._snapshot else self._staging.rows

    @property
    def is_full(self) -> bool:
        """Whether the next pull must wait for a tick."""
        with self.room:
            return not self._snapshot and (
                self._staging.rows >= 2 * self.most or self._staging.size >= STAGED_BYTES
            )

    @property
    def is_laden(self) -> bool:
        """Whether so much is staged that a tick need not wait for its turn."""
        with self.room:
            return not self._snapshot and self._staging.rows >= min(LADEN_ROWS, self.most)

    @property
    def is_ready(self) -> bool:
        """Whether a tick has something to take."""
        with self.room:
            return self.failure is not None or not (self._snapshot or self._staging.is_empty)

    def has_more(self, bound: Antichain[Any]) -> bool:
        """Whether there is more than is bound."""
        return self.upstream != bound

    def pull(self) -> bool:
        """Read on; return whether there may be more to read at once."""
        with self._pulling:
            if self.failure is not None or self.is_full:
                return False
            stall = failure = None
            more = False
            try:
                more = self._pull()
            except (SourceRegressed, SourceStopped) as error:
                failure = error
            except Exception as error:  # nothing of it was staged: the next pull tries again
                stall = as_error(error)
            with self.room:
                self.stall, self.failure = stall, failure
            if stall is not None or failure is not None:
                self._give_up()
            return more

    def stay(self) -> None:
        """Keep what is under way while there is no room; most sources need nothing for it."""

    def end(self) -> None:
        """Have a pull under way end soon, in whatever thread: what it reads is of no use."""
        self._stop.set(Interrupted("the source is read no more"))

    def rest(self) -> None:
        """Read no more for now; what is staged stays."""
        with self._pulling:
            self._give_up()

    def close(self) -> None:
        """Read no more, and bind no more."""
        with self._pulling:
            self._give_up()
            if self.tasks is not None:
                self.tasks.close()

    def _give_up(self) -> None:
        """End the reading under way: a thread fetches ahead for it."""
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    def _pull(self) -> bool:
        begun = self.frontier
        if self._reading is None:
            now = self._clock.now_ms()
            upstream = self.connected.source.probe(begun)
            with self.room:
                self.upstream = upstream
            end = self._end_of(begun, upstream)
            if end != begun and self._read_by_tasks(begun, end, now):
                return True
            if end == begun:
                with self.room:
                    self._snapshot = self._snapshot and not self._compact(whole=True)
                    if self._staging.is_empty and upstream == begun:
                        self.complete_ms = now
                return False
            self._reading = _Reading(begun, end, now, self._read)
        reading = self._reading
        with self._still_there(begun):
            clock = thread_time()
            records = reading.some(self.pulled_rows)
            seconds = thread_time() - clock
        hit("ingest.read.after")
        self.connected.source.verify()
        if reading.finished:
            self._reading = None
        self._count(records)
        rows, size = sum(map(len, records)), sum(batch.nbytes for batch in records)
        skipped: tuple[pa.RecordBatch, ...] = ()
        if self.connected.skips:
            records, skipped = letters.parted(records, self.connected.decode.whose)
        with self.room:
            complete = reading.probed_ms if reading.finished else None
            self._stage(Chunk(records, reading.frontier, self._clock.now_ms(), complete, skipped))
            if self._snapshot:
                self._snapshot = not self._compact(whole=reading.finished)
        self._engine.note_read(rows, size, seconds)
        self._weigh(begun, rows, size)
        return True

    def _weigh(self, begun: Antichain[Any], rows: int, size: int) -> None:
        """Note how much was read from ``begun`` on; leave the rest to tasks, if it is much."""
        if self.tasks is None:
            return
        reached = self.frontier
        passed = ranges_between(begun, reached)
        self.tasks.note(rows, sum(span.stop - span.start for span in passed), size)
        if self._reading is not None and self.tasks.reads(self._reading.rest):
            self._give_up()

    def _read_by_tasks(self, begun: Antichain[Any], end: Antichain[Any], now_ms: int) -> bool:
        """Have tasks read what there is, if it is much."""
        if self.tasks is None:
            return False
        with self._still_there(begun):
            found = self.tasks.read(
                begun, end, now_ms, self.most, self._room, plan=self._plan_of(), stop=self._stop
            )
        if found is None:
            return False
        with self.tasks.undone(found.segments):
            hit("ingest.read.after")
            self.connected.source.verify()
        for piece in found.pieces:
            self.counts.rows += piece.rows
            self.counts.bytes += piece.bytes
            self.counts.errors += piece.errors
        with self.room:
            for chunk in found.chunks:
                self._stage(chunk)
            if self._snapshot:
                complete = any(chunk.complete_ms is not None for chunk in found.chunks)
                self._snapshot = not self._compact(whole=complete)
        if found.stopped is not None:
            raise found.stopped
        return True

    @property
    def _room(self) -> int | None:
        """How many records there is room for; None: as many as there are."""
        with self.room:
            return None if self._snapshot else min(self.most, 2 * self.most - self._staging.rows)

    def _plan_of(self) -> Plan | None:
        """Return the times that records will get; None: they are not known yet."""
        return None

    @contextmanager
    def _still_there(self, begun: Antichain[Any]) -> Iterator[None]:
        """Have positions that are gone when they are read be what the source says of them."""
        try:
            yield
        except PositionsLost as error:
            self.connected.source.probe(begun)  # says so too, if it is so
            raise SourceUnavailable(error.message, detail=error.detail) from error

    def _end_of(self, begun: Antichain[Any], upstream: Antichain[Any]) -> Antichain[Any]:
        """Return how far to read on from ``begun``: all that there is."""
        return upstream

    def _stage(self, chunk: Chunk) -> None:
        """Keep what was read until a tick takes it."""
        self._staging.add(chunk)

    def _read(self, ranges: list[Range]) -> Generator[pa.RecordBatch, None, None]:
        connected = self.connected
        if connected.paced:
            yield from connected.read(ranges)
            return
        for batch in connected.read(ranges):
            stopped = connected.stopped(batch)
            if stopped is not None:
                yield batch.slice(0, stopped[0])
                raise stopped[1]
            yield batch

    def _count(self, records: tuple[pa.RecordBatch, ...]) -> None:
        for batch in records:
            self.counts.rows += batch.num_rows
            self.counts.bytes += batch.nbytes
            for at in self.connected.faults_at:
                self.counts.errors += batch.num_rows - batch.column(at).null_count

    def _compact(self, *, whole: bool) -> bool:
        """Keep the last record of every key of the snapshot, now and then; say if it is whole.

        Then it is one chunk: no tick may take a part of it.
        """
        batches = self._staging.batches
        grown = len(batches) > 1 and self._staging.rows >= 2 * batches[0].num_rows
        if grown or (whole and not self._staging.is_empty):
            last = LastOfEach(self.connected.key_at, self.connected.order_at)
            self._staging.whole(last(batches))
        return whole

    def take(self, remap: Remap[Any], grid: Grid) -> Taken | None:
        """Return what a tick binds; a lasting failure seals the remap, after all else."""
        with self.room:
            if self._snapshot:
                taken = None
            else:
                self.settle(remap)
                taken = self._staging.take(remap, grid, self.most)
            waits = not (self._snapshot or self._staging.is_empty)
            if self.failure is not None and not waits:
                taken = self._sealed(remap, grid.time, self.failure)
            return taken

    def settle(self, remap: Remap[Any]) -> None:
        """Forget what is durably bound."""
        with self.room:
            last = self._staging.settle(remap.latest)
            if last is not None and last.complete_ms is not None:
                self.complete_ms = last.complete_ms
            done, self._staging.bound = self._staging.bound, []
            self.room.notify_all()
        if done and self.tasks is not None:
            self.tasks.discard(done)

    def _sealed(self, remap: Remap[Any], time: Timestamp, failure: Error) -> Taken:
        updates = remap.changes(time, remap.latest)
        sealed = remap.extended(updates, Antichain())
        return Taken(sealed, updates, self.connected.failed(failure, time))


class _Reading:
    """One way through a source, from where reading stood to where the source ended."""

    def __init__(
        self,
        begin: Antichain[Any],
        end: Antichain[Any],
        probed_ms: int,
        read: Callable[[list[Range]], Generator[pa.RecordBatch, None, None]],
    ) -> None:
        self._end = end
        self._offsets = offsets_of(begin)
        self._position = type(next(iter(end), next(iter(begin))))
        self.probed_ms = probed_ms
        self.finished = False
        self._rest: pa.RecordBatch | None = None
        self._failure: Error | None = None
        stops = offsets_of(end)
        spans = [
            Range(part, self._offsets.get(part, 0), stop, Timestamp(0))
            for part, stop in stops.items()
            if stop > self._offsets.get(part, 0)
        ]
        self._offsets |= {part: self._offsets.get(part, 0) for part in stops}
        self._batches = read(spans)

    @property
    def frontier(self) -> Antichain[Any]:
        """What was passed so far."""
        return self._end if self.finished else self._position.frontier(self._offsets)

    @property
    def rest(self) -> list[Range]:
        """What was not passed yet."""
        return ranges_between(self.frontier, self._end)

    def close(self) -> None:
        """End it, wherever it is."""
        self._batches.close()

    def some(self, most: int) -> tuple[pa.RecordBatch, ...]:
        """Read on: about ``most`` records, or as many as fill a pull.

        A failure after some records is told when they were taken.
        """
        if self._failure is not None:
            raise self._failure
        found: list[pa.RecordBatch] = []
        rows = size = 0
        while rows < most and size < PULL_BYTES:
            try:
                batch = self._rest if self._rest is not None else next(self._batches)
            except StopIteration:
                self.finished = True
                break
            except Error as error:
                if not found:
                    raise
                self._failure = error
                break
            piece = batch.slice(0, whole_rows(batch, most - rows))
            self._rest = batch.slice(len(piece)) if len(piece) < len(batch) else None
            found.append(piece)
            rows += len(piece)
            size += piece.nbytes
            self._pass(piece)
        return tuple(found)

    def _pass(self, batch: pa.RecordBatch) -> None:
        """Note the last offset of every part: within a part records come in order."""
        last = pa.table({"part": batch.column(0), "offset": batch.column(1)}).group_by("part")
        passed = last.aggregate([("offset", "max")])
        for row in passed.to_pylist():
            self._offsets[row["part"]] = row["offset_max"] + 1


def as_error(error: Exception) -> Error:
    """Return what keeps a source from being read, as something that can be shown."""
    if isinstance(error, Error):
        return error
    message = f"a source cannot be read: {error}"
    return SourceUnavailable(message, detail=f"it raised {type(error).__name__}")
