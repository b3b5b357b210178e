"""The reading of one database: its tables at one snapshot, then its log, ahead of the ticks.

While nothing is bound there is no snapshot yet. A pull makes the slot (one of its name that was
left by an attempt before is replaced), copies every table at the snapshot of the slot, by tasks or
here, and stages all of it as one chunk whose frontier is the slot's consistent point. A crash, or
an error, half way leaves no time bound: the next attempt has a new slot and a new snapshot (P2).

From then on a pull reads the log up to where it ended when the pull began, and stages whole
transactions. An idle log is bound now and then without rows, so that the slot moves on.

Transactions that the server sends before they end, and large ones, are kept in files until their
commit comes (``unfinished``). A large one is written piece by piece (``large``), when everything
before it is bound.

Acknowledged is what is durably bound, and nothing else: so the slot never begins after it, and
after a crash the log from there on is read again and gets its times as if nothing had happened.

Lasting failures are those of ``slot.check`` and of ``assembly``: transactions before the one that
cannot be taken in are bound; then the remap is sealed, and every table has an error. What was read
is staged only after a look whether all of it was sent (``published``): if not, what was staged
before is bound, and nothing else.

Tests: tests/ingest/postgres/test_postgres.py, test_random.py; crashes: test_crash.py.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from reclock.connectors.postgres import slot
from reclock.connectors.postgres.describe import described_again
from reclock.connectors.postgres.pgoutput import Begin, StreamCommit
from reclock.connectors.postgres.published import Marks, Watch
from reclock.connectors.postgres.snapshot import Copy
from reclock.connectors.postgres.stream import Stream
from reclock.connectors.postgres.table import AGAIN, Table
from reclock.connectors.records import Typed
from reclock.dataflow.envelope import input_types
from reclock.dataflow.types import arrow_type
from reclock.engine.taken import Taken
from reclock.errors import Error, SourceRegressed, SourceUnavailable
from reclock.failpoints import hit
from reclock.ingest.connect import Connected
from reclock.ingest.intake import PULL_BYTES, STAGED_BYTES, Intake
from reclock.ingest.postgres.assembly import Assembly, Failing, Relations
from reclock.ingest.postgres.copying import Copied, Copier, CopyTasks, discard, errors_in
from reclock.ingest.postgres.define import fields_of
from reclock.ingest.postgres.large import Large
from reclock.ingest.postgres.own import OwnRow
from reclock.ingest.postgres.resolve import TakenTable
from reclock.ingest.postgres.slots import connection_of
from reclock.ingest.postgres.staging import Chunk, Staging
from reclock.ingest.postgres.unfinished import SPILL_BYTES, Unfinished
from reclock.sql.statement.source import PostgresConnection
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Lsn, Timestamp

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reclock.catalog.item import Source
    from reclock.connectors.postgres.connection import Connection
    from reclock.connectors.postgres.pgoutput import Message
    from reclock.connectors.postgres.table import TableColumn
    from reclock.dataflow.piece import Piece
    from reclock.engine.core import Core
    from reclock.engine.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.ingest.staging import Grid
    from reclock.remap.trace import Remap

PATIENCE: Final = 2.0
"""Seconds to wait for the server to send what its log has."""

BEAT_MS: Final = 10_000
BEAT_BYTES: Final = 16 << 20
"""How long, and for how much log, nothing is bound while no table changes."""


class PostgresIntake(Intake):
    """Reads one database; ``tables`` are the relations that its rows go to."""

    def __init__(
        self,
        core: Core,
        source: Source,
        tables: Sequence[Source],
        state: TimelineState,
        most: int,
    ) -> None:
        remap = state.bindings[source.id].remap
        super().__init__(connected_of(source), core.engine, core.clock, remap, most)
        given = source.statement.connection
        assert isinstance(given, PostgresConnection)
        self._core = core
        self.items = list(tables)
        """The tables as the catalog has them."""
        self._paused = False
        """Whether nothing more may be read: tables are about to be replaced."""
        self._source = source
        self._publication = given.publication
        self._connection = connection_of(source)
        self._slot: str = source.facts["slot"]
        known = source.facts["system"]
        self._system = slot.System(known["id"], known["timeline"], Lsn(0))
        self._tables = {table.id: Table.of(table.facts["table"]) for table in tables}
        self._connecteds = {table.id: connected_of(table) for table in tables}
        self._shapes = {i: (len(t.columns), t.key) for i, t in self._tables.items()}
        self._readers = {
            table.id: CopyTasks(core, table.id, self._connecteds[table.id]) for table in tables
        }
        known_marks = Marks.of(source.facts.get("published"))
        self._watch = Watch(given.publication, list(self._tables.values()), known_marks)
        self._looked = Lsn(0)
        """How far the log was read when it was last looked at what is published."""
        self._pg = Staging(_lsn(remap.latest))
        self._durable = self._acknowledged = self._pg.begin
        self._stream: Stream | None = None
        self._monitor: Any = None
        self._assembly: Assembly | None = None
        self._relations = self._fresh_relations()
        self._failing: Failing | None = None
        self._limit: int | None = None
        """Where the log is not read beyond."""
        self._passed = False
        """Whether what is beyond it was met."""
        self._unfinished: Unfinished | None = None
        self._spilled: int | None = None
        """Where the commit record is of a transaction that turned out to be large."""
        self._large: Large | None = None
        self._beat_ms = core.clock.now_ms()
        self._own = OwnRow(source.id, self._slot, self.connected.types, state)
        self._is_idle = False
        """Whether all that the log had when it was last read is nothing of the tables."""
        self.ended = False
        """Whether the source is gone: nothing may be made for it any more."""
        self.progress: str | None = None
        """How far the copying of tables is, for people."""

    def _fresh_relations(self) -> Relations:
        return Relations({table.oid: (item, table) for item, table in self._tables.items()})

    # What waits.

    @property
    def frontier(self) -> Antichain[Any]:
        """Where reading stands."""
        with self.room:
            return Antichain.of(self._pg.frontier)

    @property
    def staged_rows(self) -> int:
        """How many records wait for a tick."""
        with self.room:
            return self._pg.rows

    @property
    def is_full(self) -> bool:
        """Whether the next pull must wait for a tick."""
        with self.room:
            return self._pg.rows >= 2 * self.most or self._pg.size >= STAGED_BYTES

    @property
    def is_laden(self) -> bool:
        """Whether so much is staged that a tick need not wait for its turn."""
        with self.room:
            return self._pg.rows >= min(100_000, self.most)

    @property
    def is_ready(self) -> bool:
        """Whether a tick has something to take."""
        with self.room:
            return self.failure is not None or not self._pg.is_empty

    def has_more(self, bound: Antichain[Any]) -> bool:
        """Whether there is more than is bound; log that is nothing of the tables is not."""
        with self.room:
            return not self._is_idle and super().has_more(bound)

    # Reading.

    def _pull(self) -> bool:
        if self._paused:
            return False
        if self._core.is_copy:
            message = "this is a copy of a state, and reads nothing"
            raise SourceUnavailable(message)
        if self._pg.frontier == 0:
            self._copy()
            return True
        self._connect()
        self._acknowledge()
        if self._large is not None:
            return self._take_large(self._large)
        now = self._clock.now_ms()
        end = self._end()
        with self.room:
            self.upstream = Antichain.of(max(end, self._pg.frontier))
        return self._read_log(end, now)

    def _give_up(self) -> None:
        """End the sessions; what was read of an open transaction is read again."""
        if self._stream is not None:
            self._stream.close()
        if self._monitor is not None:
            with suppress(Exception):
                self._monitor.close()
        self._stream = self._monitor = self._assembly = None
        if self._unfinished is not None:
            self._unfinished.close()
        if self._large is not None:
            self._large.spill.close()
        self._unfinished = self._large = None

    def _connect(self) -> None:
        if self._stream is not None:
            return
        frontier = self._pg.frontier
        self._look()
        session = self._connection.replication()
        try:
            with self._connection.told():
                slot.check_primary(session, self._connection)
                found = slot.system_of(session)
                state = slot.state_of(session, self._slot)
        finally:
            session.close()
        slot.check(self._slot, self._system, found, state, self._pg.begin or frontier)
        self._check_published(())
        self._relations = replace(self._fresh_relations(), order=self._relations.order)
        self._unfinished = Unfinished(self._relations, self._spilled)
        self._stream = Stream(self._connection, self._slot, self._publication, frontier)

    def _look(self) -> None:
        """Open the session that asks questions, with a server that can answer them."""
        if self._monitor is None:
            self._monitor = self._connection.sql()
            with self._connection.told():
                slot.check_primary(self._monitor, self._connection)

    def _check_published(self, read: Collection[int]) -> None:
        """Refuse to go on unless all of the transactions ``read`` was sent."""
        with self._connection.told():
            self._watch.check(self._monitor, read, self._pg.frontier)

    def _end(self) -> Lsn:
        with self._connection.told(), self._monitor.cursor() as cursor:
            cursor.execute("SELECT pg_current_wal_flush_lsn()::text")
            return Lsn.parse(cursor.fetchone()[0])

    def _acknowledge(self) -> None:
        assert self._stream is not None
        if self._durable > self._acknowledged:
            hit("postgres.acknowledge.before")
            self._stream.acknowledge(self._durable)
            self._acknowledged = self._durable
            hit("postgres.acknowledge.after")

    def _read_log(self, end: Lsn, now: int) -> bool:
        assert self._stream is not None
        if self._assembly is None:
            self._assembly = Assembly(self._relations, self._pg.frontier)
        assembly = self._assembly
        for message in self._stream.read(end, PATIENCE):
            if self._is_beyond(message):
                self._passed = True
                break
            try:
                self._take(assembly, message)
            except SourceRegressed as error:
                self._failing = Failing(assembly.offset, error)
                if not assembly.transactions:
                    raise
                self._give_up()  # what is before it is read again, and staged
                return True
            if self._large is not None:
                break  # it is taken in when what is before it is bound
            if not assembly.is_open and self._is_enough(assembly):
                break
            if assembly.is_open and assembly.size >= SPILL_BYTES:
                self._spilled = assembly.offset
                self._give_up()  # it is read again, into a file
                return True
        if assembly.is_open or (self._unfinished is not None and self._unfinished.is_reading):
            self._is_idle = False
            return True  # the rest of a transaction is still to come
        self._look_again(assembly)
        hit("ingest.read.after")
        return self._take_in(assembly, end, now)

    def _look_again(self, assembly: Assembly) -> None:
        """See that all that the log has had since the last look was sent."""
        assert self._stream is not None
        reached = self._stream.reached
        if reached > self._looked or assembly.read:
            self._check_published(assembly.read)
            self._looked = reached

    def _take_in(self, assembly: Assembly, end: Lsn, now: int) -> bool:
        """Stage whole transactions; return whether there may be more to read at once."""
        assert self._stream is not None
        reached = self._stream.reached
        self._assembly = None
        if assembly.rows:
            whole = reached >= end and self._large is None
            self._stage_rows(assembly, now if whole else None)
            return True
        if self._large is not None:
            self._is_idle = False
            return True
        if self._failing is not None:
            raise self._failing.error
        self._idle(reached, end, now)
        return reached < end and assembly.transactions > 0

    def _is_enough(self, assembly: Assembly) -> bool:
        return assembly.rows >= self.pulled_rows or assembly.size >= PULL_BYTES

    def _is_beyond(self, message: Message) -> bool:
        """Return whether a message begins, or ends, what cannot be taken in."""
        limit = self._limit if self._failing is None else self._failing.lsn
        if limit is None:
            return False
        if isinstance(message, Begin):
            return message.final >= limit
        return isinstance(message, StreamCommit) and message.lsn >= limit

    def _take(self, assembly: Assembly, message: Message) -> None:
        """Take in a message, or have it kept in the file of its transaction."""
        assert self._stream is not None
        assert self._unfinished is not None
        found = self._unfinished.take(message, self._stream.payload)
        if isinstance(found, Large):
            self._large = found
            return
        for one in found:
            assembly.take(one)

    def _take_large(self, large: Large) -> bool:
        """Stage a transaction that was kept in a file; not before all before it is bound."""
        with self.room:
            if not self._pg.is_empty:
                return False
        self._check_published((large.xid,))
        hit("postgres.large.before")
        writers = {item: reader.pieces(self.most) for item, reader in self._readers.items()}
        with self._core.reading() as world:
            try:
                tables, pieces = large.staged(
                    world.of(self._source), lambda item, batch: writers[item](batch)
                )
            except BaseException:
                self._discard({item: tuple(writer.made) for item, writer in writers.items()})
                raise
        for piece in (piece for some in pieces.values() for piece in some):
            self.counts.bytes += piece.bytes
            self.counts.errors += piece.errors
        self.counts.rows += large.rows
        hit("ingest.read.after")
        frontier, now = Lsn(large.commit.end), self._clock.now_ms()
        with self.room:
            self._pg.add(Chunk(frontier, now, tables, pieces, committed_micros=large.commit.micros))
            self._beat_ms = now
        large.spill.close()
        self._large = None
        return True

    def _stage_rows(self, assembly: Assembly, complete_ms: int | None) -> None:
        made = assembly.finish()
        self.counts.rows += assembly.rows
        for rows in made.values():
            self.counts.bytes += rows.records.nbytes
            self.counts.errors += errors_in(rows.records)
        tables = {item: (rows,) for item, rows in made.items()}
        chunk = Chunk(
            Lsn(assembly.frontier), self._clock.now_ms(), tables,
            committed_micros=assembly.micros, complete_ms=complete_ms,
        )  # fmt: skip
        with self.room:
            self._is_idle = False
            self._pg.add(chunk)
            self._beat_ms = self._clock.now_ms()

    def _idle(self, reached: Lsn, end: Lsn, now: int) -> None:
        """Bind the log now and then though no table changes, so that the slot moves on."""
        with self.room:
            self._is_idle = self._pg.is_empty and reached >= end
            if self._is_idle:
                self.complete_ms = now
            behind = reached - self._pg.frontier
            due = now - self._beat_ms >= BEAT_MS or behind >= BEAT_BYTES
            if self._pg.is_empty and behind > 0 and due:
                self._pg.add(Chunk(reached, now, complete_ms=now if reached >= end else None))
                self._beat_ms = now

    def stay(self) -> None:
        """Tell the server that we are there, while there is no room."""
        with self._pulling:
            if self._stream is not None:
                with suppress(Error):
                    self._acknowledge()
                    self._stream.stay()

    # The first copy.

    def _copy(self) -> None:
        self._look()
        there = self._described()
        self._check_wanted()
        with slot.exported(self._connection, self._slot) as begun:
            hit("postgres.slot.made")
            self._check_wanted()
            self._check_published(())
            with self.room:
                self.upstream = Antichain.of(begun.lsn)
            found = self._copied(there, self._readers, begun.snapshot)
        hit("postgres.copy.after")
        now = self._clock.now_ms()
        with self.room:
            self._pg.add(Chunk(begun.lsn, now, found.tables, found.pieces))

    def _copied(
        self,
        tables: Mapping[ObjectId, Table],
        readers: Mapping[ObjectId, CopyTasks],
        snapshot: str,
        *,
        streamed: bool = False,
    ) -> Copied:
        copies = {
            item: Copy(self._connection, table, fields_of(table), snapshot, self._slot)
            for item, table in tables.items()
        }
        copier = Copier(
            self._core, self._source.name, self._connection, self.counts, self.most, self._stop,
            self._tell_progress,
        )  # fmt: skip
        try:
            return copier.copied(copies, readers, streamed=streamed)
        finally:
            self.progress = None

    def _tell_progress(self, said: str) -> None:
        self.progress = said

    def read_to(self, lsn: Lsn) -> None:
        """Stage the log exactly up to a position, and then read no more until ``go_on``."""
        with self._pulling:
            self._limit = lsn
            try:
                self._passed = False
                while self._pg.frontier < lsn and self._large is None and not self._passed:
                    self._connect()
                    if not self._read_log(lsn, self._clock.now_ms()):
                        break
                if self._large is not None:
                    message = f'source "{self._source.name}" reads a large transaction'
                    raise SourceUnavailable(message, hint="try again when it is read")
            finally:
                self._limit = None
                self._give_up()
            self._paused = True
            with self.room:
                if self._pg.frontier < lsn:
                    self._pg.add(Chunk(lsn, self._clock.now_ms()))

    def go_on(self) -> None:
        """Read on."""
        self._paused = False

    def copied_again(
        self,
        tables: Mapping[ObjectId, Table],
        readers: Mapping[ObjectId, CopyTasks],
        snapshot: str,
    ) -> Mapping[ObjectId, tuple[Piece, ...]]:
        """Return the pieces of tables at a snapshot: no rows are held here."""
        return self._copied(tables, readers, snapshot, streamed=True).pieces

    @property
    def connection(self) -> Connection:
        """How to get at the server."""
        return self._connection

    @property
    def publication(self) -> str:
        """The publication whose tables are read."""
        return self._publication

    def _check_wanted(self) -> None:
        if self.ended:
            with suppress(Error):
                slot.drop(self._connection, self._slot)
            message = f'source "{self._source.name}" is gone'
            raise SourceUnavailable(message)

    def _described(self) -> dict[ObjectId, Table]:
        """Return the tables by their names of today, if they are what they were else."""
        found = {}
        for item, table in self._tables.items():
            now = described_again(self._connection, table, self._publication)
            if now is None:
                message = f"table {table.shown} is gone, or not published any more"
                raise SourceRegressed(message, code="42P01", hint=AGAIN)
            there = {column.name: column for column in now.columns}
            same = all(_is_same(column, there.get(column.name)) for column in table.columns)
            if not same or [now.columns[k].name for k in now.key] != [
                table.columns[k].name for k in table.key
            ]:
                message = f"table {table.shown} was changed before it was copied"
                raise SourceRegressed(message, code="42804", hint=AGAIN)
            found[item] = replace(table, schema=now.schema, name=now.name)
        return found

    def _discard(self, pieces: dict[ObjectId, tuple[Piece, ...]]) -> None:
        discard(self._readers, pieces)

    # Binding.

    def take(self, remap: Remap[Any], grid: Grid) -> Taken | None:
        """Return what a tick binds; a lasting failure seals the remap, after all else."""
        with self.room:
            self.settle(remap)
            found = self._pg.take(remap, grid, self.most, self._shapes)
            if self.failure is not None and self._pg.is_empty:
                return self._all_sealed(remap, grid.time, self.failure)
            if found is None:
                return None
            own = self._own.at(found.chunks, found.times[-1])
            return Taken(found.remap, found.updates, own, tables=found.tables)

    def _all_sealed(self, remap: Remap[Any], time: Timestamp, failure: Error) -> Taken:
        sealed = self._sealed(remap, time, failure)
        tables = {
            item: TakenTable(item, *self._shapes[item], failed=connected.failed(failure, time))
            for item, connected in self._connecteds.items()
        }
        return sealed._replace(tables=tables)

    def settle(self, remap: Remap[Any]) -> None:
        """Forget what is durably bound: from now on it may be acknowledged."""
        if remap.latest.is_closed or remap.is_sealed:
            return
        with self.room:
            gone = self._pg.settle(_lsn(remap.latest))
            self._own.settle(gone)
            for chunk in gone:
                if chunk.complete_ms is not None:
                    self.complete_ms = chunk.complete_ms
            self._durable = max(self._durable, self._pg.begin)
            self.room.notify_all()
        for chunk in gone:
            self._discard(dict(chunk.pieces))

    def close(self) -> None:
        """Read no more, and bind no more."""
        super().close()
        for reader in self._readers.values():
            reader.close()

    @property
    def lag_bytes(self) -> int | None:
        """How much of the log is not bound yet; None: not known, as before all is copied."""
        upstream, begin = self.upstream, self._pg.begin  # each only grows, and is read at once
        return max(0, _lsn(upstream) - begin) if upstream is not None and begin else None


def _is_same(column: TableColumn, now: TableColumn | None) -> bool:
    """Return whether a column is what it was; its number may not be known."""
    if now is not None and column.number is None:
        now = replace(now, number=None)
    return now == column


def _lsn(frontier: Antichain[Any]) -> Lsn:
    found = next(iter(frontier), Lsn(0))
    assert isinstance(found, Lsn)
    return found


def connected_of(source: Source) -> Connected:
    """Return what is known of a relation whose records an intake of its own makes."""
    types = tuple(arrow_type(c.column.type) for c in source.columns)
    return Connected(
        _NoConnector(), Typed(types), input_types(source.envelope, types), len(types),
        source.primary_key, source.name,
    )  # fmt: skip


class _NoConnector:
    """Stands where other sources have their connector: a database has an intake of its own."""

    @property
    def reader(self) -> Any:
        """None."""
        return None

    def probe(self, bound: Antichain[Any]) -> Antichain[Any]:
        """Return what is given."""
        return bound

    def verify(self) -> None:
        """Do nothing."""
