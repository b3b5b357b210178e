"""The reading of a source that brings its times: statements wait until a time is closed.

Times are the sender's (``statements``), or the numbers of its transactions (``transactions``). What
is read is kept, as statements, until they close a time. Then a tick of the source's own pace
(``own``) publishes, in one append::

    its rows        the updates of the closed times, at these times
    what waits      the statements about later times: the collection TEMP of the source
    a binding       the last closed time, to the positions that were read by then

so what is published at t, what waits at t, and the positions that t is bound to, are always of
one moment: a process that begins with these three goes on as the first would have (P2).

Tests: tests/coordinator/source/test_materialize.py, test_consistency.py; by chance:
test_statements.py, test_transactions.py.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reclock.coordinator.arrangements import FIRST
from reclock.coordinator.source.intake import STAGED_BYTES
from reclock.coordinator.source.own import OwnIntake
from reclock.coordinator.source.staging import Taken
from reclock.coordinator.source.statements import Statements
from reclock.coordinator.source.taken_away import check_taken_away
from reclock.coordinator.source.transactions import Transactions
from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import collection_of, temp_of
from reclock.dataflow.scan import repeated
from reclock.errors import ConflictingStatements, SourceStopped
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from reclock.coordinator.core import Core
    from reclock.coordinator.item import Source
    from reclock.coordinator.source.connect import Connected
    from reclock.coordinator.source.staging import Chunk
    from reclock.coordinator.source.waiting import Offer, Waiting
    from reclock.coordinator.timeline import TimelineState
    from reclock.errors import Error
    from reclock.remap.trace import Remap

MOST_BYTES: Final = 4 * STAGED_BYTES
"""How much may wait, in memory; reading stops there."""

_WHOLE: Final = 1 << 62


class StatedIntake(OwnIntake):
    """Reads one source whose records bring their times."""

    def __init__(
        self, connected: Connected, core: Core, state: TimelineState, source: Source, most: int
    ) -> None:
        super().__init__(connected, core, state, source, most)
        self._frontier = state.bindings[source.id].remap.latest
        self._offer: Offer | None = None
        self._complete_ms: int | None = None
        self.statements: Waiting = waiting_of(connected, state, source)

    @property
    def upper(self) -> Timestamp:
        """The first time that is not published."""
        return self.statements.upper

    @property
    def latest(self) -> int | None:
        """The last time that is spoken of and not published; None if none is."""
        return self.statements.latest

    @property
    def pulled_rows(self) -> int:
        """A pull takes whole messages: a part of one must not be bound."""
        return _WHOLE

    @property
    def frontier(self) -> Antichain[Any]:
        """Where reading stands."""
        with self.room:
            return self._frontier

    @property
    def is_full(self) -> bool:
        """Whether no more can wait."""
        with self.room:
            return self.statements.size >= MOST_BYTES

    @property
    def is_laden(self) -> bool:
        """Whether so much waits that a tick need not wait for its turn."""
        with self.room:
            return self.statements.size >= STAGED_BYTES // 8

    def _stage(self, chunk: Chunk) -> None:
        try:
            for batch in chunk.records:
                columns = batch.columns[2 : 2 + len(self.connected.types)]
                names = [f"c{i}" for i in range(len(columns))]
                rows = pa.RecordBatch.from_arrays(columns, names=names)
                self.statements.add(rows, partial(self._place, batch))
        except ConflictingStatements as error:
            raise self._conflict(error) from error
        self._frontier = chunk.frontier
        self._complete_ms = chunk.complete_ms

    def _place(self, records: pa.RecordBatch, at: int) -> str:
        """Say where a record is from."""
        part, offset = (records.column(n)[at].as_py() for n in range(2))
        return f"{self.connected.decode.whose} {part}, offset {offset}"

    def _conflict(self, error: ConflictingStatements) -> SourceStopped:
        message = f'source "{self._source.name}" contradicts itself: {error.message}'
        hint = "drop the source, and create it anew when its sender is mended"
        return SourceStopped(message, code=error.code, detail=error.detail, hint=hint)

    def waits(self, now_ms: int) -> str | None:
        """Say what it waits for, for a person; None if all that was stated is published."""
        with self.room:
            count, limit = self.statements.waiting, self.limit(now_ms)
            waits, faults = self.statements.waiting_for(), self.statements.faults
            if waits is None and limit is not None and self.statements.stated > limit:
                waits = f"times from {limit} on are too far ahead of the clock"
            said = [] if waits is None else [waits, *([f"{count} updates wait"] if count else [])]
            if faults:
                others = [f"{len(faults) - 1} more records are wrong"] if len(faults) > 1 else []
                said = [faults[0][1], *others, *said]
            if self.is_full:
                most = f"{MOST_BYTES >> 20} MiB"
                said.append(f"no more than {most} may, and nothing is read until these are fewer")
            return "; ".join(said) or None

    @property
    def faults(self) -> list[tuple[str, str]]:
        """The records that do not decode, and are not published yet: code and text."""
        with self.room:
            return self.statements.faults

    def closable(self, state: TimelineState, now_ms: int) -> Timestamp | None:
        """Return the last time that is complete now; None if no other is than before."""
        with self.room:
            self.settle_own(state)
            self._offer = None
            if self.failure is None:
                try:
                    offer = self.statements.offer(self.limit(now_ms), self.most)
                    self._check(state, offer)
                    self._offer = offer
                except ConflictingStatements as error:
                    self.failure = self._conflict(error)
            if self._offer is not None:
                return self._offer.upper.back()
            return state.upper if self.failure is not None else None

    def _check(self, state: TimelineState, offer: Offer | None) -> None:
        """Refuse updates that take away what is not there; rows of transactions are no updates."""
        if offer is not None and offer.closed is not None and not self._source.is_transactional:
            name = collection_of(self._source.id)
            keying = state.shape.graph.arrangements[name].keying
            check_taken_away(keying, state.traces[name], offer.closed)

    def take_own(self, state: TimelineState, time: Timestamp) -> Taken:
        """Return what a tick publishes that closes ``time``, which ``closable`` gave."""
        with self.room:
            remap: Remap[Any] = state.bindings[self._source.id].remap
            offer = self._offer
            if offer is None:
                assert self.failure is not None
                return self._failed(remap, time, self.failure)
            frontier = Antichain() if offer.complete else self._frontier
            changes = remap.changes(time, frontier)
            return Taken(remap.bound(time, frontier), changes, offer.closed, offer.waiting)

    def _failed(self, remap: Remap[Any], time: Timestamp, failure: Error) -> Taken:
        """Return the end of a source: an error row, and nothing more for ever."""
        sealed = self._sealed(remap, time, failure)
        assert sealed.changes is not None
        row = self.statements.taken_in(deltas.rows_of(sealed.changes))
        return sealed._replace(changes=deltas.build(row, *sealed.changes.columns[-2:]))

    def settle_own(self, state: TimelineState) -> None:
        """Forget what is durably published."""
        with self.room:
            if state.upper > max(self.statements.upper, FIRST):
                self.statements.settle(state.upper, self._offer)
                self._offer = None
            if self.statements.waiting_for() is None:
                self.complete_ms = self._complete_ms
            self.room.notify_all()


def waiting_of(connected: Connected, state: TimelineState, source: Source) -> Waiting:
    """Return what of a source waits, as it is durable."""
    if source.is_transactional:
        return transactions_of(connected, state, source)
    begun = state.upper if state.upper > FIRST else Timestamp(0)
    return Statements(begun, connected.width, _durable(state, source))


def transactions_of(connected: Connected, state: TimelineState, source: Source) -> Transactions:
    """Return the transactions of a source that wait, as they are durable."""
    return Transactions(
        state.upper if state.upper > FIRST else Timestamp(0),
        connected.decode.types,
        source.primary_key,
        _durable(state, source),
        strict=source.is_strict,
        base=source.facts["counter"]["base"],
    )


def _durable(state: TimelineState, source: Source) -> list[pa.RecordBatch]:
    """Return what waited when the last time was published."""
    name = collection_of(temp_of(source.id))
    if name not in state.arrangements.runs:
        return []
    keying = state.shape.graph.arrangements[name].keying
    found = state.traces[name].snapshot(state.upper.back())
    return [repeated(keying, batch) for batch in found]
