"""The intake of a source whose bindings its user supplies: ``RECLOCK USING``.

Definition. With R the remap that the rows of the user's relation are (``remap.supplied``), the
source has at each time t the records whose positions are not at or beyond R(t), as its envelope
says. A time is closed when two things are there::

    bindings    the relation is complete for it (``given``)
    data        everything before R(t) has been read

so bindings ahead of the data hold the source, and data ahead of the bindings waits upstream:
nothing is read before a binding asks for it. Reading goes as far as one tick can publish, and at
least to the next bound time, so that no part waits for another for ever. Large readings are done by
tasks, and write the times that are planned with the records (``timed``).

Rows that cannot be a remap end the source, with an error that names the two that contradict each
other: nothing more is published (P9). Data that cannot be read ends it after what is complete.
What is bound is durable, and the same after a restart, whatever becomes of the relation (P2). When
the relation has ended, the source is complete where its last row says.

Tests: tests/ingest/test_using.py.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reclock.connectors.stamp import stamp
from reclock.dataflow import delta as deltas
from reclock.engine.taken import Taken
from reclock.errors import InvalidValue, SourceStopped
from reclock.ingest.binding_relation import Given
from reclock.ingest.intake import LADEN_ROWS, STAGED_BYTES
from reclock.ingest.source_clocked import OwnIntake
from reclock.ingest.staging import bound, taken_of
from reclock.ingest.timed import Plan
from reclock.remap.batch import NOT_BOUND, ranges
from reclock.remap.supplied import steps_of
from reclock.time.antichain import Antichain
from reclock.time.position import offsets_of
from reclock.time.timestamp import INT64_MAX, Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from reclock.catalog.item import Source
    from reclock.change.update import Update
    from reclock.dataflow.piece import Piece
    from reclock.engine.core import Core
    from reclock.engine.timeline import TimelineState
    from reclock.ingest.connect import Connected
    from reclock.ingest.staging import Chunk
    from reclock.remap.batch import Range
    from reclock.remap.supplied import SuppliedBinding
    from reclock.remap.trace import Binding, Remap

MOST_TIMES: Final = 1_000
"""How many bound times one tick closes: each is a binding to keep."""


class SuppliedIntake(OwnIntake):
    """Reads one source as far as the relation ``source.using`` binds it."""

    def __init__(
        self, connected: Connected, core: Core, state: TimelineState, source: Source, most: int
    ) -> None:
        super().__init__(connected, core, state, source, most)
        assert source.using is not None
        self._core = core
        self._given = Given(source.using)
        self._remap: Remap[Any] = state.bindings[source.id].remap
        self._upper = state.upper
        self._frontier = self._remap.latest
        self._wanted = self._frontier
        self._batches: list[pa.RecordBatch] = []
        self._letters: list[pa.RecordBatch] = []
        self._pieces: list[Piece] = []
        self._rows: list[SuppliedBinding] = []
        self._steps: list[Binding[Any]] = []
        self._published = self._rows
        self._planned = 0
        self._is_newer = False
        self._ended = self._is_refused = self._fails = False
        self._last: Timestamp | None = None
        self._snapshot = False  # which times there are is not ours to say

    @property
    def upper(self) -> Timestamp:
        """The first time that is not published."""
        return self._upper

    @property
    def latest(self) -> int | None:
        """The last time that is bound and not published; None if none is."""
        return self._rows[-1].timestamp if self._rows else None

    @property
    def frontier(self) -> Antichain[Any]:
        """Where reading stands."""
        with self.room:
            return self._frontier

    @property
    def is_full(self) -> bool:
        """Reading stops where bindings do: there is always room."""
        return False

    @property
    def is_laden(self) -> bool:
        """Whether so much was read that a tick need not wait for its turn."""
        with self.room:
            rows = sum(len(batch) for batch in self._batches)
            rows += sum(piece.rows for piece in self._pieces)
            return rows >= min(LADEN_ROWS, self.most)

    @property
    def is_behind(self) -> bool:
        """Whether there is more to read that bindings ask for."""
        return bool(self._wanted != self._frontier)

    def _end_of(self, begun: Antichain[Any], upstream: Antichain[Any]) -> Antichain[Any]:
        """Return how far to read: what is bound next, as far as it is there."""
        try:
            with self._core.reading() as world:
                news = self._given.look(world)
            with self.room:
                if news or self._is_newer:
                    self._rows = self._given.ordered(self._remap)
                    self._is_newer = False
                    self._ended = self._given.ended
                    self._plan()
                    if not self._is_as_planned():
                        self._read_again()
                        return begun
        except InvalidValue as error:
            self._is_refused = True
            raise self._refused(error) from error
        with self.room:
            there, so_far = offsets_of(upstream), offsets_of(begun)
            wanted = {p: min(to, there.get(p, 0)) for p, to in self._reach().items()}
            parts = {p: max(to, wanted.get(p, 0)) for p, to in so_far.items()}
            parts |= {p: to for p, to in wanted.items() if to and p not in so_far}
            self._wanted = begun if parts == so_far else type(next(iter(begun))).frontier(parts)
            return self._wanted

    def _plan(self) -> None:
        """Look at the next times that are bound, and note before which time that is all."""
        self._steps = [*steps_of(self._remap, self._rows, MOST_TIMES)]
        times = groupby(self._rows, key=attrgetter("timestamp"))
        self._planned = next((time for time, _ in islice(times, MOST_TIMES, None)), INT64_MAX)

    def _plan_of(self) -> Plan:
        with self.room:
            return Plan.of(self._remap.latest, self._steps)

    def _is_as_planned(self) -> bool:
        """Return whether what tasks have read has the times that it would get now."""
        plan = self._plan_of()
        return all(plan.has(piece, self._remap.latest) for piece in self._pieces)

    def _read_again(self) -> None:
        """Forget all that was read and is not bound."""
        assert self.tasks is not None
        self.tasks.discard(name for piece in self._pieces for name in piece.segments)
        self._batches, self._letters, self._pieces = [], [], []
        self._frontier = self._wanted = self._remap.latest

    def _reach(self) -> Mapping[int | str, int]:
        """Return the offsets to read to: those of the next bound time, and as many as fit."""
        most = STAGED_BYTES if self.connected.parts_have_names else self.most
        bound, to = offsets_of(self._remap.latest), offsets_of(self._remap.latest)
        for number, step in enumerate(self._steps):
            next_to = offsets_of(step.frontier)
            if number and sum(next_to.values()) - sum(bound.values()) > most:
                break
            to = next_to
        return to

    @staticmethod
    def _refused(error: InvalidValue) -> SourceStopped:
        hint = "mend the bindings, drop the source and create it again"
        return SourceStopped(error.message, code=error.code, detail=error.detail, hint=hint)

    def _stage(self, chunk: Chunk) -> None:
        self._batches.extend(batch for batch in chunk.records if batch.num_rows)
        self._letters.extend(chunk.letters)
        self._pieces.extend(chunk.pieces)
        self._frontier = chunk.frontier

    def waits(self, now_ms: int) -> str | None:
        """Say what it waits for, for a person; None if all that there is, is published."""
        with self.room:
            limit = self.limit(now_ms)
            there = {} if self.upstream is None else offsets_of(self.upstream)
            for step in self._steps:
                if limit is not None and step.time >= limit:
                    break
                for part, to in offsets_of(step.frontier).items():
                    if there.get(part, 0) < to:
                        ends = f"it ends at {there.get(part, 0)}"
                        return f"time {step.time} needs partition {part} up to {to}; {ends}"
            if limit is not None and self._rows and self._rows[-1].timestamp > limit:
                return f"times from {limit} on are too far ahead of the clock"
            bound = offsets_of(self._frontier)
            if any(to > bound.get(part, 0) for part, to in there.items()):
                return f"no bindings are complete from time {self._upper} on"
            return None

    def _complete(self, now_ms: int) -> tuple[int, bool]:
        """Return the first time that is not complete now, and whether all there will be are."""
        last = self._rows[-1].timestamp if self._rows else 0
        whole = max(last, int(self._upper))
        lacking = (s.time for s in self._steps if not s.frontier.precedes(self._frontier))
        end = min(
            whole + 1 if self._ended else last,
            self._planned,
            int(next(lacking, INT64_MAX)),
            INT64_MAX if (limit := self.limit(now_ms)) is None else limit,
        )
        return end, self._ended and end > whole

    def closable(self, state: TimelineState, now_ms: int) -> Timestamp | None:
        """Return the last time that is complete now; None if no other is than before."""
        with self.room:
            self.settle_own(state)
            end, complete = self._complete(now_ms)
            self._last = Timestamp(end - 1) if complete else None
            closes = end > state.upper and not self._is_refused
            self._fails = self.failure is not None and not closes
            if self._fails:
                return state.upper
            return Timestamp(end - 1) if closes else None

    def take_own(self, state: TimelineState, time: Timestamp) -> Taken:
        """Return what a tick publishes that closes ``time``, which ``closable`` gave."""
        with self.room:
            if self._fails:
                assert self.failure is not None
                return self._sealed(self._remap, time, self.failure)
            self._published = self._rows
            after, updates = self._remap, _nothing()
            for step in self._steps:
                if step.time <= time:
                    after, updates = bound(after, updates, step.time, step.frontier)
            if after.upper.less_equal(time):
                after, updates = bound(after, updates, time, after.latest)
            if time == self._last:
                after = after.extended([], Antichain())
            spans = ranges(after, offsets_of(after.latest), self._remap.latest)
            named = [span._replace(part=str(span.part)) for span in spans]
            skipped = _stamped(self._letters, named, 0)
            found = [taken_of(piece, state.upper, time) for piece in self._pieces]
            return Taken(
                after,
                updates,
                _stamped(self._batches, spans, 2),
                letters=skipped,
                runs=tuple(run for runs, _ in found for run in runs),
                skipped=tuple(each for _, some in found for each in some),
            )

    def settle_own(self, state: TimelineState) -> None:
        """Forget what is durably published."""
        with self.room:
            remap = state.bindings[self._source.id].remap
            self._upper = state.upper
            if remap.latest != self._remap.latest:
                to = offsets_of(remap.latest)
                self._batches = [b for b in (_beyond(b, to) for b in self._batches) if b.num_rows]
                by_name: dict[int | str, int] = {str(part): offset for part, offset in to.items()}
                left = (_beyond(b, by_name) for b in self._letters)
                self._letters = [b for b in left if b.num_rows]
                self._drop_bound(to)
            if remap is not self._remap:
                self._remap = remap
                # Rows that came since the tick looked were checked against what it had yet to bind.
                self._is_newer |= self._rows is not self._published
                if not remap.is_sealed:
                    upper = int(remap.upper.element())
                    at = bisect_left(self._rows, upper, key=attrgetter("timestamp"))
                    self._rows = self._published = self._rows[at:]
                    self._plan()
            self.room.notify_all()

    def _drop_bound(self, bound: Mapping[int | str, int]) -> None:
        """Remove the files of what is bound."""

        def waits(piece: Piece) -> bool:
            ranges = (covered.range for covered in piece.covers)
            return any(span.stop > bound.get(span.part, 0) for span in ranges)

        done = [piece for piece in self._pieces if not waits(piece)]
        self._pieces = [piece for piece in self._pieces if waits(piece)]
        if self.tasks is not None:
            self.tasks.discard(name for piece in done for name in piece.segments)


def _nothing() -> list[Update[Any, Timestamp]]:
    return []


def _stamped(
    batches: Iterable[pa.RecordBatch], spans: Sequence[Range], places: int
) -> pa.RecordBatch | None:
    """Return the records of spans, as a delta, at their times; without the first columns."""
    made = []
    for batch in batches:
        parts = batch.column(0).to_numpy(zero_copy_only=False)
        times = stamp(spans, parts, batch.column(1).to_numpy())
        there = times != NOT_BOUND
        if there.any():
            some = batch.filter(pa.array(there))
            ones = np.ones(some.num_rows, np.int64)
            made.append(deltas.build(some.columns[places:], times[there], ones))
    return deltas.union(made) if made else None


def _beyond(batch: pa.RecordBatch, bound: Mapping[int | str, int]) -> pa.RecordBatch:
    """Return the records at or beyond what is bound."""
    parts = batch.column(0).to_numpy(zero_copy_only=False)
    keep = np.ones(batch.num_rows, np.bool_)
    offsets = batch.column(1).to_numpy()
    for part in np.unique(parts):
        here = parts == part
        keep[here] = offsets[here] >= bound.get(part, 0)
    return batch.filter(pa.array(keep))
