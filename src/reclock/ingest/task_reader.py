"""Large readings of a source: Spark tasks read into files that a tick binds by reference.

A reading in the driver yields records; this one yields chunks without any: their runs are in the
store, in the layout of the source's input, and have no time yet. The driver knows which positions
were read, how many records there are, and how many have a fault; of a source that stops at such a
record, where that is (``dataflow.piece``).

Every source that gets its times from the system can be read so, whatever its records come from, one
whose times its user supplies (``timed``), one whose rows come in transactions, in their order
(``staged_rows``), and one whose records bring their times (``staged_times``). A file must be the
same one where a task runs: tasks compare it with what was probed here. Where they have another, or
none, at its path, this process reads, as long as it lives.

Files are this process's until the tick that bound them is published; then ``discard`` removes
those that no arrangement has adopted (``dataflow.stage``). Those of a process before, which
crashed, are removed when the first ones are written. Each reading has a stem of its own: it is in
flight as long as one of its files waits.

Tests: tests/ingest/test_task_reader.py; at random: test_source_walk.py,
test_task_walk.py.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from reclock.arrangement.segment import stem_of
from reclock.connectors.cdcv2 import Cdcv2Decode
from reclock.connectors.files.source import FileSource
from reclock.connectors.kafka.consistent import ConsistentReader
from reclock.connectors.kafka.source import KafkaReader
from reclock.connectors.transactions import TransactionsDecode
from reclock.dataflow.closing import close
from reclock.dataflow.graph import collection_of, input_of
from reclock.dataflow.piece import contiguous
from reclock.dataflow.snapshot import LastOfEach
from reclock.dataflow.stage import Skipping, Stager
from reclock.dataflow.stated_runs import StatedRuns
from reclock.dataflow.steps.faults import rows_steps
from reclock.dataflow.transaction_runs import TransactionRuns
from reclock.engine.dead_letters import MOST_BYTES, MOST_LETTERS
from reclock.errors import SourceRegressed, SourceUnavailable
from reclock.ingest.shares import records_of, shares
from reclock.ingest.staging import Chunk
from reclock.remap.batch import Range
from reclock.spark.pool import title_of
from reclock.time.position import offsets_of
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from reclock.connectors.reading import Reading
    from reclock.dataflow import closing
    from reclock.dataflow.graph import Graph
    from reclock.dataflow.job.tasks import Tasks
    from reclock.dataflow.piece import Piece
    from reclock.dataflow.stop import Stop
    from reclock.engine.core import Core
    from reclock.errors import SourceStopped
    from reclock.ids import ObjectId
    from reclock.ingest.connect import Connected
    from reclock.ingest.timed import Plan
    from reclock.time.antichain import Antichain

LOG: Final = logging.getLogger("reclock.source")
LOG.addHandler(logging.NullHandler())

_NUMBERS: Final = count()
"""Tell the readers of this process apart."""


@dataclass(frozen=True)
class Found:
    """What tasks have read: chunks that follow one another, and at what the source stops."""

    chunks: tuple[Chunk, ...]
    stopped: SourceStopped | None

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """What the chunks consist of."""
        return tuple(piece for chunk in self.chunks for piece in chunk.pieces)

    @property
    def segments(self) -> frozenset[str]:
        """The files that it is in."""
        return frozenset().union(*(piece.segments for piece in self.pieces))


@dataclass
class TaskReader:
    """Reads one source in tasks."""

    core: Core
    item: ObjectId
    connected: Connected
    _begun: bool = field(default=False)
    _is_apart: bool = field(default=False)
    """Whether tasks have other files than this process."""
    _live: set[str] = field(default_factory=set)
    """The files that wait, or are bound by a tick that is not published yet."""
    _readings: int = field(default=0)
    _rows: int = field(default=0)
    _positions: int = field(default=0)
    _bytes: int = field(default=0)
    """How many records were read, of how many positions, and of how many bytes once decoded."""
    _number: int = field(default_factory=lambda: next(_NUMBERS))

    def read(
        self,
        begun: Antichain[Any],
        end: Antichain[Any],
        now_ms: int,
        most: int,
        room: int | None,
        *,
        plan: Plan | None = None,
        stop: Stop | None = None,
    ) -> Found | None:
        """Return chunks of what is between two frontiers; None if the driver reads it.

        A chunk has at most ``most`` records, all of them ``room``, about; None: it is a snapshot.
        The times of records are those of a ``plan``, or none yet. Raises what ``stop`` does.
        """
        rest = ranges_between(begun, end)
        grain, tasks = self._grain, self._tasks_for(rest)
        if not tasks:
            return None
        records = records_of(rest, grain)
        most_records = records if room is None else max(1, room // self._weight)
        dealt = shares(rest, grain, tasks, most_records)
        if plan is not None:
            dealt = [[timed for span in share for timed in plan.timed(span)] for share in dealt]
        pieces = self.staged(self._stager(most, whole=room is None), dealt, stop)
        return None if pieces is None else self._found(pieces, begun, end, now_ms)

    def reads(self, ranges: Sequence[Range]) -> bool:
        """Return whether tasks should read ranges, and not the driver."""
        return bool(self._tasks_for(ranges))

    def _tasks_for(self, ranges: Sequence[Range]) -> int:
        """Return how many tasks should read ranges; 0: the driver reads."""
        if self._is_apart or not ranges:
            return 0
        records = records_of(ranges, self._grain) * self._weight
        return self.core.engine.reading_tasks(records, self._size_of(ranges, records))

    def _size_of(self, ranges: Sequence[Range], records: int) -> int:
        """Return how many bytes so many records have, about; those of a broker once some were read.

        Positions of most files are bytes.
        """
        if self._rows:
            return records * self._bytes // self._rows
        return sum(span.stop - span.start for span in ranges if self._grain(span.part) != 1)

    def note(self, rows: int, positions: int, size: int) -> None:
        """Take note of what the driver has read: how many rows, of how many positions, bytes."""
        self._rows += rows
        self._positions += positions
        self._bytes += size

    @property
    def _weight(self) -> int:
        """How many rows a position has, on average of those that were read."""
        return max(1, self._rows // self._positions) if self._positions else 1

    def _grain(self, part: int | str) -> int | None:
        """Return how many positions a record has: as many as those that were read, on average."""
        told = self.connected.source.reader.grain(part)
        if told is None or told == 1 or not self._rows:
            return told
        return max(1, self._positions // self._rows)

    def staged(
        self, stager: Stager, dealt: Sequence[Sequence[Range]], stop: Stop | None = None
    ) -> list[Piece] | None:
        """Have tasks read; None if they have other files than this process."""
        self._begin(stager.stem)
        title = title_of("read", None, [self.connected.name])
        try:
            pieces = [*self.core.engine.stage(stager, dealt, title, stop=stop)]
            self._live |= {name for piece in pieces for name in piece.segments}
            for piece in pieces:
                spans = (covered.range for covered in piece.covers)
                self.note(piece.rows, sum(span.stop - span.start for span in spans), piece.bytes)
            return pieces
        except (SourceUnavailable, SourceRegressed) as error:
            if not isinstance(self.connected.source, FileSource):
                raise
            self.connected.source.verify()  # what is wrong with the files here, if something is
            self._is_apart = True
            text = 'Spark\'s tasks do not have the files of source "%s": the driver reads them (%s)'
            LOG.warning(text, self.connected.name, error.message)
            return None
        finally:
            self._sweep(stager.stem)

    def close_times(
        self, tasks: Tasks, wanted: closing.Closing, others: pa.RecordBatch | None
    ) -> closing.Found:
        """Look at the updates of some times; what is written of them is this process's."""
        stem = self._stem()
        self._begin(stem)
        try:
            found = close(tasks, wanted, others, self.core.segments, stem)
            self._live |= found.segments
            return found
        finally:
            self._sweep(stem)

    @contextmanager
    def undone(self, segments: Iterable[str]) -> Iterator[None]:
        """Remove files that were written if something goes wrong with what is in them."""
        try:
            yield
        except BaseException:
            self.discard(segments)
            raise

    def _found(
        self, pieces: Sequence[Piece], begun: Antichain[Any], end: Antichain[Any], now_ms: int
    ) -> Found:
        """Return pieces as chunks, each with the frontier after it."""
        starts, stops = offsets_of(begun), offsets_of(end)
        kept, others = contiguous(pieces, starts)
        self.discard(name for piece in others for name in piece.segments)
        position = type(next(iter(end)))
        reached = {part: starts.get(part, 0) for part in starts | stops}
        seen = self.core.clock.now_ms()
        chunks: list[Chunk] = []
        for piece in (piece for piece in kept if piece.covers):
            reached |= {covered.range.part: covered.range.stop for covered in piece.covers}
            chunks.append(Chunk((), position.frontier(reached), seen, pieces=(piece,)))
        if chunks and all(reached[part] == stop for part, stop in stops.items()):
            chunks[-1] = replace(chunks[-1], frontier=end, complete_ms=now_ms)
        fault = next((piece.fault for piece in pieces if piece.fault is not None), None)
        stopped = None if fault is None else self.connected.stopped_by(fault)
        return Found(tuple(chunks), stopped)

    def discard(self, segments: Iterable[str]) -> None:
        """Let go of files that wait no more; those that nothing names are removed."""
        gone = set(segments)
        named = self.core.named() if gone else set()
        for segment in gone:
            self._live.discard(segment)
            if segment not in named:
                self.core.segments.remove(segment)
        waited_for = set(map(stem_of, self._live))
        for stem in set(map(stem_of, gone)) - waited_for:
            self.core.in_flight.discard(stem)

    def _sweep(self, stem: str) -> None:
        """Remove what tasks of a reading have left behind that failed."""
        for name in self.core.segments.names():
            if stem_of(name) == stem and name not in self._live:
                self.core.segments.remove(name)
        if stem not in map(stem_of, self._live):
            self.core.in_flight.discard(stem)

    def close(self) -> None:
        """Let go of all files: nothing will bind them any more.

        A tick whose end is not known may have bound some. The garbage collection, which knows
        the durable state, removes the others.
        """
        self.core.in_flight.difference_update(map(stem_of, self._live))
        self._live.clear()

    @property
    def _family(self) -> str:
        return f"staged-{self.item}."

    def _begin(self, stem: str) -> None:
        """Make the files of a reading this process's; the first removes those of others."""
        self.core.in_flight.add(stem)
        if self._begun:
            return
        self._begun = True
        named = self.core.named()
        for name in self.core.segments.names():
            there = stem_of(name)
            left = there.startswith(self._family) and there not in self.core.in_flight
            if left and name not in named:
                self.core.segments.remove(name)

    def _stem(self) -> str:
        """Return how the names of new files begin."""
        self._readings += 1
        return f"{self._family}{self._number}.{self._readings}"

    def _stager(self, most: int, *, whole: bool) -> Stager:
        graph = self._graph
        connected = self.connected
        is_plain = bool(rows_steps(graph, self.item))
        skipping = Skipping(connected.decode.whose, MOST_LETTERS, MOST_BYTES)
        return Stager(
            self._reading,
            graph.keying(input_of(self.item)),
            self.core.segments,
            self._stem(),
            connected.faults_at,
            most,
            stops=connected.code_at if connected.on_error == "stop" else None,
            skipping=skipping if connected.skips else None,
            last=LastOfEach(connected.key_at, connected.order_at) if whole else None,
            rows=graph.keying(collection_of(self.item)) if is_plain else None,
            reaches=self._reaches,
            transactions=self.transactions,
            stated=self.stated,
        )

    @property
    def _graph(self) -> Graph:
        """The graph that has the source."""
        return self.core.world.of(self.core.world.catalog[self.item]).shape.graph

    @property
    def stated(self) -> StatedRuns | None:
        """How updates are staged that bring their times; None: they bring none."""
        if not isinstance(self.connected.decode, Cdcv2Decode):
            return None
        graph = self._graph
        return StatedRuns(graph.keying(collection_of(self.item)))

    @property
    def transactions(self) -> TransactionRuns | None:
        """How rows of transactions are staged; None: it has none."""
        decode = self.connected.decode
        if not isinstance(decode, TransactionsDecode):
            return None
        graph = self._graph
        return TransactionRuns(decode.types, graph.keying(input_of(self.item)))

    @property
    def _reaches(self) -> tuple[str, Callable[[], object]] | None:
        """What tasks must reach to read."""
        reader = self.connected.source.reader
        if isinstance(reader, ConsistentReader):
            reader = reader.rows
        if not isinstance(reader, KafkaReader):
            return None
        return f"the brokers of {self.connected.name}", reader.visit

    @property
    def _reading(self) -> Reading:
        source, reading = self.connected.source, self.connected.read
        if isinstance(source, FileSource):
            return replace(reading, reader=source.elsewhere)
        return reading


def ranges_between(begun: Antichain[Any], end: Antichain[Any]) -> list[Range]:
    """Return what is between two frontiers, a range for each part."""
    starts = offsets_of(begun)
    return [
        Range(part, starts.get(part, 0), stop, Timestamp(0))
        for part, stop in offsets_of(end).items()
        if stop > starts.get(part, 0)
    ]
