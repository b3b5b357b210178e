"""Copies of tables at one snapshot: all of them in one job of tasks, or by this process.

Definition. ``copied`` gives for each table either its rows or the pieces that tasks have written;
together they are the tables as the snapshot has them. Where it is worth a job, the pages of all
tables are laid end to end and cut so that each task has about as many rows (``shares``), whatever
their tables: a large table is read by many, many small ones by one. Rows do not pass this process
then.

How far tasks are they say by the name of their session at the server (``snapshot.Copy``), where
``Watched`` looks every now and then: no channel of an engine's own is needed, and people see the
same in ``pg_stat_activity``.

If something goes wrong nothing is kept: pieces that were written are removed.

Tests: tests/ingest/postgres/test_copy.py, test_tables.py.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reclock.connectors.postgres.rows import Rows
from reclock.connectors.postgres.snapshot import END, names_of
from reclock.dataflow.stage import Together
from reclock.errors import Error
from reclock.failpoints import hit
from reclock.ingest.postgres.large import SLICE_BYTES, in_piece
from reclock.ingest.task_reader import TaskReader
from reclock.remap.batch import Range
from reclock.spark.pool import title_of
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from reclock.connectors.postgres.connection import Connection
    from reclock.connectors.postgres.snapshot import Copy
    from reclock.connectors.postgres.table import Table
    from reclock.dataflow.graph import Graph
    from reclock.dataflow.piece import Piece
    from reclock.dataflow.stage import Stager
    from reclock.dataflow.stop import Stop
    from reclock.engine.core import Core
    from reclock.ids import ObjectId
    from reclock.ingest.intake import Counts

STEP_ROWS: Final = 100_000
"""About how many rows are read at once: then it is told how many there were."""

_PAGE_ROWS: Final = 50
"""How many rows a page has in a table that was never analyzed, about."""

_PAGE_BYTES: Final = 8 << 10
"""How many bytes a page has, almost everywhere."""

_RANGES: Final = 140_000
"""PostgreSQL 14: before it, a range costs a pass over the whole table."""

LOOK_SECONDS: Final = 0.5
"""How often it is looked how far tasks are."""


@dataclass(frozen=True)
class Size:
    """About how many rows a table has, and how many pages."""

    rows: int
    pages: int


@dataclass
class Copied:
    """Tables: rows of those that this process has read, and pieces of those that tasks have."""

    tables: dict[ObjectId, tuple[Rows, ...]] = field(default_factory=dict)
    pieces: dict[ObjectId, tuple[Piece, ...]] = field(default_factory=dict)


@dataclass
class Copier:
    """Copies the tables of one source; ``progress`` is told how far it is, for people."""

    core: Core
    name: str
    connection: Connection
    counts: Counts
    most: int
    stop: Stop
    progress: Callable[[str], None]

    def copied(
        self,
        copies: Mapping[ObjectId, Copy],
        readers: Mapping[ObjectId, CopyTasks],
        *,
        streamed: bool = False,
    ) -> Copied:
        """Return all rows of some tables.

        ``streamed``: what this process reads is written to pieces at once, and not held.
        """
        sizes, version = self._measured([copy.table for copy in copies.values()])
        about = {item: sizes[copy.table.oid] for item, copy in copies.items()}
        cut = version >= _RANGES
        if cut:
            copies = {item: _stepped(copy, about[item]) for item, copy in copies.items()}
        total = sum(size.rows for size in about.values())
        pages = sum(size.pages for size in about.values())
        tasks = self.core.engine.reading_tasks(total, pages * _PAGE_BYTES)
        made = Copied()
        try:
            if tasks:
                dealt = shares(about, tasks, cut=cut)
                self._by_tasks(copies, readers, dealt, total, made)
                hit("postgres.copy.table")
                return made
            for number, (item, copy) in enumerate(copies.items()):
                said = f"copying table {copy.table.shown}, {number + 1} of {len(copies)}"
                found = self._here(item, copy, said, about[item].rows)
                if streamed:
                    writer = readers[item].pieces(self.most)
                    made.pieces[item] = ()
                    for batch in slices(rows.records for rows in found):
                        made.pieces[item] += writer(batch)
                else:
                    made.tables[item] = tuple(found)
                hit("postgres.copy.table")
        except BaseException:
            discard(readers, made.pieces)
            raise
        return made

    def _by_tasks(
        self,
        copies: Mapping[ObjectId, Copy],
        readers: Mapping[ObjectId, CopyTasks],
        dealt: Sequence[Sequence[Range]],
        about: int,
        made: Copied,
    ) -> None:
        begun = {item: readers[item].begun(copy, self.most) for item, copy in copies.items()}
        together = Together({str(item): stager for item, stager in begun.items()})
        tables = [copy.table.shown for copy in copies.values()]
        what = f"table {tables[0]}" if len(tables) == 1 else f"{len(tables)} tables"
        label = next(iter(copies.values())).label
        try:
            with Watched(self.connection, label, f"copying {what}", about, self.progress):
                found = self.core.engine.stage(
                    together, dealt, title_of("read", None, [self.name]), stop=self.stop
                )
            for piece in found:
                item = next(i for i in copies if str(i) == piece.covers[0].range.part)
                made.pieces[item] = (*made.pieces.get(item, ()), piece)
                self.counts.rows += piece.rows
                self.counts.bytes += piece.bytes
                self.counts.errors += piece.errors
        finally:
            for item, stager in begun.items():
                readers[item].ended(stager, made.pieces.get(item, ()))

    def _here(self, item: ObjectId, copy: Copy, said: str, about: int) -> Iterator[Rows]:
        done = 0
        for batch in copy.read([Range(str(item), 0, END, Timestamp(0))]):
            done += batch.num_rows
            self.counts.rows += batch.num_rows
            self.counts.bytes += batch.nbytes
            self.counts.errors += errors_in(batch)
            self.progress(f"{said}: {done} of about {max(about, done)} rows")
            zeros = pa.array(np.zeros(batch.num_rows, np.int32))
            yield Rows(batch.set_column(0, batch.schema.names[0], zeros))

    def _measured(self, tables: Sequence[Table]) -> tuple[dict[int, Size], int]:
        """Return about how large tables are, by their numbers, and the version of the server."""
        numbers = ", ".join(str(table.oid) for table in tables)
        session = self.connection.sql()
        try:
            with self.connection.told(), session.cursor() as cursor:
                cursor.execute(
                    "SELECT oid::int8, reltuples::int8, pg_relation_size(oid) / "
                    f"current_setting('block_size')::int8 FROM pg_class WHERE oid IN ({numbers})"
                )
                found = {
                    oid: Size(rows if rows > 0 else pages * _PAGE_ROWS, pages)
                    for oid, rows, pages in cursor.fetchall()
                }
                return {t.oid: found.get(t.oid, Size(0, 0)) for t in tables}, int(
                    session.info.server_version
                )
        finally:
            session.close()


def _stepped(copy: Copy, size: Size) -> Copy:
    step = max(1, size.pages * STEP_ROWS // max(1, size.rows))
    return replace(copy, pages=size.pages, step=step)


def errors_in(records: pa.RecordBatch) -> int:
    """Return how many records have a fault."""
    at = int(records.num_columns) - (3 if records.schema.names[-1] == "diff" else 2)
    codes = records.column(at)
    return len(codes) - int(codes.null_count)


def slices(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in larger batches, of about ``SLICE_BYTES``."""
    some: list[pa.RecordBatch] = []
    for batch in batches:
        some.append(batch)
        if sum(one.nbytes for one in some) >= SLICE_BYTES:
            yield pa.concat_batches(some)
            some = []
    if some:
        yield pa.concat_batches(some)


def discard(
    readers: Mapping[ObjectId, CopyTasks], pieces: Mapping[ObjectId, Sequence[Piece]]
) -> None:
    """Let go of pieces; what nothing names is removed."""
    for item, some in pieces.items():
        readers[item].discard(name for piece in some for name in piece.segments)


def shares(about: Mapping[ObjectId, Size], tasks: int, *, cut: bool) -> list[list[Range]]:
    """Return ranges of pages for each task: the tables, laid end to end, in parts of equal rows.

    ``cut``: tables may be divided.

    >>> from reclock.ids import ObjectId
    >>> tables = {ObjectId("a"): Size(90, 9), ObjectId("b"): Size(10, 1)}
    >>> [[(s.part, s.start, s.stop == END) for s in one] for one in shares(tables, 2, cut=True)]
    [[('a', 0, False)], [('a', 5, True), ('b', 0, True)]]
    """
    total = sum(max(1, size.rows) for size in about.values())
    made: list[list[Range]] = [[] for _ in range(tasks)]
    before = 0
    for item, size in about.items():
        rows, pages = max(1, size.rows), max(1, size.pages)
        start = 0
        for at in range(before * tasks // total, tasks):
            rest = total * (at + 1) // tasks - before  # rows of the table up to the task's end
            whole = at == tasks - 1 or rest >= (rows if cut else rows // 2)
            stop = pages if whole else (rest * pages // rows if cut else 0)
            if stop > start or stop == pages:
                end = END if stop == pages else stop
                made[at].append(Range(str(item), start, end, Timestamp(0)))
                start = stop
            if stop == pages:
                break
        before += rows
    return [share for share in made if share]


class Watched:
    """Looks, in a thread of its own, how far the sessions of a copy are, and tells it."""

    def __init__(
        self,
        connection: Connection,
        label: str,
        said: str,
        about: int,
        tell: Callable[[str], None],
    ) -> None:
        self._connection, self._label = connection, label
        self._said, self._about, self._tell = said, about, tell
        self._seen: dict[tuple[Any, ...], int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reclock-copying", daemon=True)

    def __enter__(self) -> None:
        self._told()
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        session = None
        try:
            while not self._over.wait(LOOK_SECONDS):
                with suppress(Error):  # the copy itself says what is wrong
                    session = session or self._connection.sql()
                    with self._connection.told():
                        self._seen |= names_of(session, self._label)
                    self._told()
        finally:
            if session is not None:
                session.close()

    def _told(self) -> None:
        done = sum(self._seen.values())
        self._tell(f"{self._said}: {done} of about {max(self._about, done)} rows")


class CopyTasks(TaskReader):
    """Has tasks, or this process, write the rows of one table."""

    graph: Graph | None = None
    """Of a table that is not in the catalog yet."""

    @property
    def _graph(self) -> Graph:
        return super()._graph if self.graph is None else self.graph

    def begun(self, copy: Copy, most: int) -> Stager:
        """Return how a copy of the table is read and written, from now on this process's."""
        made = replace(self._copying(most), read=copy, reaches=(copy.table.shown, copy.visit))
        self._begin(made.stem)
        return made

    def ended(self, stager: Stager, pieces: Sequence[Piece]) -> None:
        """Keep what was written, and remove what tasks that failed have left behind."""
        self._live |= {name for piece in pieces for name in piece.segments}
        self._sweep(stager.stem)

    def pieces(self, most: int) -> Writer:
        """Return what writes batches of one reading, here."""
        stager = self._copying(most)
        self._begin(stager.stem)
        return Writer(self.item, stager, self._live)

    def _copying(self, most: int) -> Stager:
        return self._stager(most, whole=False)


@dataclass
class Writer:
    """Writes batches of one table, each as pieces of its own, in this process."""

    item: ObjectId
    stager: Stager
    live: set[str]
    made: list[Piece] = field(default_factory=list)

    def __call__(self, batch: pa.RecordBatch) -> tuple[Piece, ...]:
        """Write a batch."""
        number = len(self.made)
        given = in_piece(self.item, number, batch)
        span = Range(str(self.item), number, number + 1, Timestamp(0))
        pieces = tuple(replace(self.stager, read=lambda _: iter([given])).staged([span]))
        self.live |= {name for piece in pieces for name in piece.segments}
        self.made += pieces
        return pieces
