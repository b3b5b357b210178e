"""The reading of a source that brings its times: statements wait until a time is closed.

Times are the sender's (``statements``), or the numbers of its transactions (``transactions``). What
is read is kept, as statements, until they close a time. Then a tick of the source's own pace
(``own``) publishes, in one append::

    its rows        the updates of the closed times, at these times
    what waits      the statements about later times: the collection TEMP of the source, and
                    what tasks have read, which stays in files (``staged_rows``, ``staged_times``)
    a binding       the last closed time, to the positions that were read by then

so what is published at t, what waits at t, and the positions that t is bound to, are always of
one moment: a process that begins with these three goes on as the first would have (P2).

Updates of the sender's times that are in files are looked at in tasks before they are published,
without the lock (``_look``): a contradiction among them ends the source as one in memory does.

Tests: tests/ingest/test_materialize.py, test_consistency.py; by chance:
test_statements.py, test_transactions.py.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from reclock.connectors.kafka.consistent import topic_of
from reclock.connectors.transactions import TransactionsDecode
from reclock.dataflow import delta as deltas
from reclock.dataflow.closing import Closing
from reclock.dataflow.graph import collection_of, input_of, temp_of
from reclock.dataflow.job.errand import Kept
from reclock.dataflow.scan import repeated
from reclock.dataflow.stated_runs import StatedRuns
from reclock.dataflow.taken_away import check_taken_away
from reclock.dataflow.transaction_runs import TransactionRuns
from reclock.engine.taken import TakeAgain, Taken
from reclock.errors import ConflictingStatements, Error, SourceStopped
from reclock.ingest.cdcv2.offer import Unseen
from reclock.ingest.cdcv2.staged_times import StagedTimes
from reclock.ingest.cdcv2.statements import Statements
from reclock.ingest.intake import LADEN_ROWS, STAGED_BYTES
from reclock.ingest.source_clocked import OwnIntake
from reclock.ingest.task_reader import ranges_between
from reclock.ingest.transactions.staged_piece import StagedPiece
from reclock.ingest.transactions.transactions import Transactions
from reclock.spark.pool import title_of
from reclock.time.antichain import Antichain
from reclock.time.position import offsets_of

if TYPE_CHECKING:
    from reclock.catalog.item import Source
    from reclock.dataflow.piece import Piece
    from reclock.dataflow.stop import Stop
    from reclock.dataflow.work import Effort
    from reclock.durable.keyed import Json
    from reclock.engine.core import Core
    from reclock.engine.timeline import TimelineState
    from reclock.ingest.connect import Connected
    from reclock.ingest.staging import Chunk
    from reclock.ingest.waiting import Offer, Waiting
    from reclock.remap.trace import Remap
    from reclock.time.timestamp import Timestamp

MOST_BYTES: Final = 4 * STAGED_BYTES
"""How much may wait, in memory; reading stops there."""

_WHOLE: Final = 1 << 62

LOG: Final = logging.getLogger("reclock.source")


class StatedIntake(OwnIntake):
    """Reads one source whose records bring their times."""

    def __init__(
        self, connected: Connected, core: Core, state: TimelineState, source: Source, most: int
    ) -> None:
        super().__init__(connected, core, state, source, most)
        self._segments = core.segments
        self._frontier = state.bindings[source.id].remap.latest
        self._offer: Offer | None = None
        self._offered = self._frontier
        """What was read when the offer was made."""
        self._takes: list[tuple[Antichain[Any], Offer]] = []
        """What ticks took since one is known to be durable, and up to where each binds."""
        self._written: list[str] = []
        """Files of updates that were looked at for ticks since then."""
        self._number = 1 + max(_held(state, source), default=0)
        """Of the next piece that tasks read."""
        self._for_tasks = self._was_said = False
        self._complete_ms: int | None = None
        self._told_unchecked = False
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
        """Whether no more can wait; in files, only what a tick can publish is too much."""
        with self.room:
            return self.is_stuck or self.statements.backlog >= 2 * self.most

    @property
    def is_stuck(self) -> bool:
        """Whether memory is full of what waits."""
        with self.room:
            return self.statements.size >= MOST_BYTES

    @property
    def is_laden(self) -> bool:
        """Whether so much waits that a tick need not wait for its turn."""
        with self.room:
            laden = self.statements.size >= STAGED_BYTES // 8
            return laden or self.statements.backlog >= min(LADEN_ROWS, self.most)

    def _end_of(self, begun: Antichain[Any], upstream: Antichain[Any]) -> Antichain[Any]:
        """Return how far to read: of much, what is said of transactions and rows by turns.

        Tasks read the rows, this process what is said of them, which is little.
        """
        self._for_tasks = False
        if self.tasks is None:
            return upstream
        decode, ranges = self.connected.decode, ranges_between(begun, upstream)
        if not isinstance(decode, TransactionsDecode):
            self._for_tasks = self.tasks.reads(ranges)
            return upstream
        rows = [span for span in ranges if topic_of(str(span.part)) == decode.topic]
        if not rows or not self.tasks.reads(rows):
            return upstream
        said = [span for span in ranges if span not in rows]
        self._was_said = bool(said) and not self._was_said
        self._for_tasks = not self._was_said
        stops = {span.part: span.stop for span in (rows if self._for_tasks else said)}
        found: Antichain[Any] = type(next(iter(upstream))).frontier(offsets_of(begun) | stops)
        return found

    def _read_by_tasks(self, begun: Antichain[Any], end: Antichain[Any], now_ms: int) -> bool:
        return self._for_tasks and super()._read_by_tasks(begun, end, now_ms)

    def _stage(self, chunk: Chunk) -> None:
        for piece in chunk.pieces:
            self._stage_piece(piece)
        try:
            for batch in chunk.records:
                self._add(batch)
        except ConflictingStatements as error:
            raise self._conflict(error) from error
        self._frontier = chunk.frontier
        self._complete_ms = chunk.complete_ms if chunk.frontier == self.upstream else None
        self._tell_unchecked()

    def _weigh(self, begun: Antichain[Any], rows: int, size: int) -> None:
        """Weigh updates; what is said of transactions is the driver's, however much it is."""
        if rows and isinstance(self.statements, Statements):
            super()._weigh(begun, rows, size)

    def _add(self, batch: pa.RecordBatch) -> None:
        columns = batch.columns[2 : 2 + len(self.connected.types)]
        names = [f"c{i}" for i in range(len(columns))]
        rows = pa.RecordBatch.from_arrays(columns, names=names)
        self.statements.add(rows, partial(self._place, batch))

    def _stage_piece(self, piece: Piece) -> None:
        assert self.tasks is not None
        if piece.summary is None:
            self.tasks.discard(piece.segments)
            return
        if isinstance(self.statements, Statements):
            self._stage_times(piece, self.statements)
        else:
            assert isinstance(self.statements, Transactions)
            runs = self.tasks.transactions
            assert runs is not None
            made = StagedPiece.read(self._number, piece, runs, self._segments)
            assert made is not None
            self.statements.add_piece(made)
        self._number += 1
        self._discard()

    def _stage_times(self, piece: Piece, statements: Statements) -> None:
        """Take in what tasks have read of updates: what is none, and the times of the others."""
        assert self.tasks is not None
        runs = self.tasks.stated
        assert runs is not None
        made, found = StagedTimes.read(self._number, piece, runs, self._segments)
        parts, offsets = found.places
        try:
            if found.said.num_rows:
                statements.add(
                    found.said, lambda at: self._placed(parts[at].as_py(), offsets[at].as_py())
                )
            try:
                statements.add_piece(made)
            except ConflictingStatements as error:
                raise self._told_again(piece, error) from error
        except ConflictingStatements as error:
            raise self._conflict(error) from error

    def _told_again(self, piece: Piece, error: ConflictingStatements) -> ConflictingStatements:
        """Return what is wrong with a piece and where: its records are read once more."""
        try:
            for batch in self.connected.read([covered.range for covered in piece.covers]):
                self._add(batch)
        except ConflictingStatements as found:
            return found
        except Error:
            pass  # what is wrong is known, but not where
        return error

    def _discard(self) -> None:
        """Remove the files of which nothing waits any more."""
        if self.tasks is not None:
            staged = self.statements.staged
            spent, staged.spent = staged.spent, []
            self.tasks.discard(spent)

    def _place(self, records: pa.RecordBatch, at: int) -> str:
        """Say where a record is from."""
        part, offset = (records.column(n)[at].as_py() for n in range(2))
        return self._placed(part, offset)

    def _placed(self, part: int | str, offset: int) -> str:
        return f"{self.connected.decode.whose} {part}, offset {offset}"

    def _conflict(self, error: ConflictingStatements) -> SourceStopped:
        message = f'source "{self._source.name}" contradicts itself: {error.message}'
        hint = "drop the source, and create it again when its sender is mended"
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
            if self.is_stuck:
                most = f"{MOST_BYTES >> 20} MiB"
                said.append(f"no more than {most} may, and nothing is read until these are fewer")
            return "; ".join(said) or None

    def unchecked(self) -> str | None:
        """Say, for a person, how much came too late to be compared; None if nothing did."""
        with self.room:
            some = self.statements
            updates, counts = some.unchecked if isinstance(some, Statements) else (0, 0)
        late = [
            f"{n} late {what}{'' if n == 1 else 's'}"
            for n, what in ((updates, "update"), (counts, "count"))
            if n
        ]
        if not late:
            return None
        were = "was" if updates + counts == 1 else "were"
        return (
            f"{' and '.join(late)} {were} left out unchecked: complete times so old or large are "
            "not remembered"
        )

    def _tell_unchecked(self) -> None:
        """Log the first of these."""
        said = self.unchecked()
        if said is not None and not self._told_unchecked:
            self._told_unchecked = True
            LOG.warning('source "%s": %s', self._source.name, said)

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
                    self._offer, self._offered = offer, self._frontier
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
            frontier = Antichain() if offer.complete else self._offered
            changes = remap.changes(time, frontier)
            taken = Taken(remap.bound(time, frontier), changes, None)
            if isinstance(offer, Unseen):
                return taken._replace(look=partial(self._look, state, taken, (frontier, offer)))
            return self._noted(taken, frontier, offer)

    def _noted(self, taken: Taken, frontier: Antichain[Any], offer: Offer) -> Taken:
        """Return what a tick publishes, and note it."""
        others = [t for t in self._takes if (t[0], t[1].upper) != (frontier, offer.upper)]
        self._takes = [*others, (frontier, offer)]
        return taken._replace(
            changes=offer.closed, waiting=offer.waiting, runs=offer.runs, held=offer.held
        )

    def _look(
        self,
        state: TimelineState,
        taken: Taken,
        offered: tuple[Antichain[Any], Unseen],
        effort: Effort,
        stop: Stop,
    ) -> Taken:
        """Return what a tick publishes of updates in files, which tasks look at now."""
        frontier, offer = offered
        assert self.tasks is not None
        assert isinstance(self.statements, Statements)
        runs = offer.concerned[0].runs
        closing = Closing(
            runs,
            tuple(ref for piece in offer.concerned for ref in piece.piece.runs),
            offer.lower,
            min(offer.end, _WHOLE),
            Kept.of(state.traces[collection_of(self._source.id)]),
            offer.remembered,
        )
        others = None if offer.others is None else runs.updates(*offer.others)
        title = title_of("close", offer.upper.back(), [self._source.name])
        tasks = self._engine.tasks(offer.rows, title, effort=effort, stop=stop)
        found = self.tasks.close_times(tasks, closing, others)
        with self.room, self.tasks.undone(found.segments):
            try:
                seen = self.statements.seen(offer, found)
            except ConflictingStatements as error:
                self.failure = self._conflict(error)
                raise TakeAgain from error
            if seen is None:
                raise TakeAgain
            self._written += found.segments
            return self._noted(taken, frontier, seen)

    def _failed(self, remap: Remap[Any], time: Timestamp, failure: Error) -> Taken:
        """Return the end of a source: an error row, and nothing more for ever."""
        sealed = self._sealed(remap, time, failure)
        assert sealed.changes is not None
        row = self.statements.taken_in(deltas.rows_of(sealed.changes))
        return sealed._replace(changes=deltas.build(row, *sealed.changes.columns[-2:]), held={})

    def settle_own(self, state: TimelineState) -> None:
        """Forget what is durably published."""
        with self.room:
            if state.upper > self.statements.upper:
                self.statements.settle(state.upper, self._durable(state))
                self._tell_unchecked()
                self._offer, self._takes = None, []
                self.statements.staged.spent += self._written
                self._written = []
                self._discard()
            if self.statements.waiting_for() is None:
                self.complete_ms = self._complete_ms
            self.room.notify_all()

    def _durable(self, state: TimelineState) -> Offer | None:
        """Return the offer that is published: not always the last, if an append's end was unknown.

        Two offers with the same upper and positions are of the same statements.
        """
        remap: Remap[Any] = state.bindings[self._source.id].remap
        published: Offer | None = None
        for frontier, offer in self._takes:
            is_bound = frontier == remap.latest or (offer.complete and remap.is_sealed)
            if is_bound and offer.upper == state.upper:
                published = offer
        return published


def _held(state: TimelineState, source: Source) -> dict[int, Json]:
    """Return what waits in files, as it is durable."""
    held = state.bindings[source.id].held
    return {} if held is None else held.records()


def waiting_of(connected: Connected, state: TimelineState, source: Source) -> Waiting:
    """Return what of a source waits, as it is durable."""
    if source.is_transactional:
        return transactions_of(connected, state, source)
    runs = StatedRuns(state.shape.graph.keying(collection_of(source.id)))
    held = (
        StagedTimes.restored(number, record, runs, state.segments)
        for number, record in _held(state, source).items()
    )
    return Statements(state.upper, connected.width, _durable(state, source), held)


def transactions_of(connected: Connected, state: TimelineState, source: Source) -> Transactions:
    """Return the transactions of a source that wait, as they are durable."""
    entry = state.shape.graph.keying(input_of(source.id))
    runs = TransactionRuns(connected.decode.types, entry)
    return Transactions(
        state.upper,
        connected.decode.types,
        source.primary_key,
        _durable(state, source),
        [
            StagedPiece.restored(number, record, runs, state.segments)
            for number, record in _held(state, source).items()
        ],
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
