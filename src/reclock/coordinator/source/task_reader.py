"""Much to read of a topic is read by Spark tasks, into files that a tick binds by reference.

A reading in the driver yields records; this one yields a chunk without any: its runs are in the
store, in the layout of the source's input, and have no time yet. Only plain sources are read so:
those whose records get their times from the system, and are not needed in the driver for anything
else (skipped ones become dead letters, and one that stops is looked for record by record).

Files are this process's until the tick that bound them is published; then ``discard`` removes
them. Those of a process before, which crashed, are removed when the first ones are written.

Tests: tests/coordinator/source/test_task_reader.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from reclock.arrangement.segment import stem_of
from reclock.connectors.kafka.source import KafkaSource
from reclock.coordinator.source.staging import Chunk
from reclock.dataflow.graph import input_of
from reclock.dataflow.stage import SLICE, Stager
from reclock.remap.batch import Range
from reclock.time.position import offsets_of
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.arrangement.run import RunRef
    from reclock.coordinator.core import Core
    from reclock.coordinator.source.connect import Connected
    from reclock.dataflow.stage import Staged
    from reclock.ids import ObjectId
    from reclock.time.antichain import Antichain

_WHOLE: Final = frozenset({"report", "inline"})
"""What is done with bad records where all records may stay where they are read."""


@dataclass
class TaskReader:
    """Reads one source in tasks."""

    core: Core
    item: ObjectId
    connected: Connected
    _begun: bool = field(default=False)

    @classmethod
    def of(cls, core: Core, item: ObjectId, connected: Connected) -> TaskReader | None:
        """Return who reads a source in tasks; None if only the driver can."""
        plain = isinstance(connected.source, KafkaSource) and connected.on_error in _WHOLE
        return cls(core, item, connected) if plain else None

    def read(
        self, begun: Antichain[Any], end: Antichain[Any], now_ms: int
    ) -> tuple[Chunk, Staged] | None:
        """Return a chunk of what is between two frontiers; None if the driver reads it."""
        starts, stops = offsets_of(begun), offsets_of(end)
        rest = {
            part: (starts.get(part, 0), stop)
            for part, stop in stops.items()
            if stop > starts.get(part, 0)
        }
        engine = self.core.engine
        tasks = engine.reading_tasks(sum(stop - start for start, stop in rest.values()))
        if not tasks:
            return None
        most = max(1, tasks * SLICE // len(rest))
        ranges = [
            Range(part, start, min(stop, start + most), Timestamp(0))
            for part, (start, stop) in rest.items()
        ]
        self._begin()
        staged = engine.stage(self._stager(), ranges, f"reading {self.connected.name}")
        reached = {**starts, **{r.part: r.stop for r in ranges}}
        whole = all(r.stop == stops[r.part] for r in ranges)
        frontier = end if whole else type(next(iter(end))).frontier(
            {part: reached.get(part, 0) for part in stops | starts}
        )  # fmt: skip
        seen = self.core.clock.now_ms()
        chunk = Chunk((), frontier, seen, now_ms if whole else None, runs=staged.runs)
        return chunk, staged

    def discard(self, runs: Iterable[RunRef]) -> None:
        """Remove the files of runs that are bound."""
        for segment in {run.segment for run in runs} - {None}:
            assert segment is not None
            self.core.segments.remove(segment)

    def close(self) -> None:
        """Remove all files of this source: nothing will bind them any more."""
        if self._begun:
            self._remove_files()
            self.core.in_flight.discard(self._stem)
            self._begun = False

    def _remove_files(self) -> None:
        for name in self.core.segments.names():
            if stem_of(name) == self._stem:
                self.core.segments.remove(name)

    @property
    def _stem(self) -> str:
        return f"staged-{self.item}"

    def _begin(self) -> None:
        """Make the files of this source this process's."""
        if not self._begun:
            self._remove_files()
            self.core.in_flight.add(self._stem)
            self._begun = True

    def _stager(self) -> Stager:
        graph = self.core.world.of(self.core.world.catalog[self.item]).shape.graph
        keying = graph.keying(input_of(self.item))
        read, faults = self.connected.read, self.connected.faults_at
        return Stager(read, keying, self.core.segments, self._stem, faults)
