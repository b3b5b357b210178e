"""Staging of a database: transactions that have no time yet, in order, bound by a tick.

Definition. As ``ingest.staging``, with rows of several tables in a chunk: the frontier of a chunk
is the end of a transaction, and all tables are bound by the one remap, so that a transaction has
one time wherever its rows are (P1, P4). ``settle`` forgets what is durably bound.

Tests: tests/ingest/postgres/test_postgres.py.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reclock.connectors.stamp import stamp
from reclock.dataflow.changes import Stamped
from reclock.errors import Corrupt
from reclock.ingest.postgres.resolve import Bound, TakenTable
from reclock.ingest.staging import bound as bound_to
from reclock.remap.batch import NOT_BOUND, ranges
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Lsn, Timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.arrangement.layout import Int64s
    from reclock.change.update import Update
    from reclock.connectors.postgres.rows import Rows
    from reclock.dataflow.piece import Piece
    from reclock.ids import ObjectId
    from reclock.ingest.staging import Grid
    from reclock.remap.batch import Range
    from reclock.remap.trace import Remap


@dataclass(frozen=True)
class Chunk:
    """Whole transactions: rows of each table, or pieces that tasks have written."""

    frontier: Lsn
    seen_ms: int
    tables: Mapping[ObjectId, tuple[Rows, ...]] = field(default_factory=dict)
    pieces: Mapping[ObjectId, tuple[Piece, ...]] = field(default_factory=dict)
    committed_micros: int | None = None
    complete_ms: int | None = None

    @property
    def rows(self) -> int:
        """How many records there are."""
        here: int = sum(one.records.num_rows for some in self.tables.values() for one in some)
        return here + sum(piece.rows for some in self.pieces.values() for piece in some)

    @property
    def size(self) -> int:
        """Their size in memory, about."""
        size: int = sum(one.records.nbytes for some in self.tables.values() for one in some)
        return size


@dataclass(frozen=True)
class Bindable:
    """What a tick takes: chunks, and the remap after them."""

    chunks: tuple[Chunk, ...]
    remap: Remap[Any]
    updates: list[Update[Any, Timestamp]]
    tables: Mapping[ObjectId, TakenTable]
    times: tuple[Timestamp, ...]
    """Of each chunk."""


class Staging:
    """The chunks of one database; its user holds the intake's lock."""

    def __init__(self, begin: Lsn) -> None:
        self._chunks: deque[Chunk] = deque()
        self.begin = begin
        self.rows = 0
        self.size = 0

    @property
    def frontier(self) -> Lsn:
        """Where reading goes on."""
        return self._chunks[-1].frontier if self._chunks else self.begin

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._chunks

    def add(self, chunk: Chunk) -> None:
        """Stage what follows the frontier."""
        self._chunks.append(chunk)
        self.rows += chunk.rows
        self.size += chunk.size

    def settle(self, bound: Lsn) -> list[Chunk]:
        """Forget what is bound, and return it."""
        gone = []
        while self._chunks and self._chunks[0].frontier <= bound:
            gone.append(self._chunks.popleft())
            self.begin = gone[-1].frontier
            self.rows -= gone[-1].rows
            self.size -= gone[-1].size
        if self.begin != bound:
            message = "what was read of a database does not begin where it is bound"
            detail = f"it begins at {self.begin}, the log before {bound} is bound"
            raise Corrupt(message, detail=detail)
        return gone

    def take(
        self,
        remap: Remap[Any],
        grid: Grid,
        most: int,
        shapes: Mapping[ObjectId, tuple[int, tuple[int, ...]]],
    ) -> Bindable | None:
        """Return what a tick binds: chunks of ``most`` records at most, but one at least.

        A chunk in files is taken alone.
        """
        taken: list[Chunk] = []
        times: list[Timestamp] = []
        after, rows = remap, 0
        updates: list[Update[Any, Timestamp]] = []
        for chunk in self._chunks:
            mark = grid.of(chunk.seen_ms)
            if mark is None or (taken and rows + chunk.rows > most):
                break
            if taken and (chunk.pieces or taken[-1].pieces):
                break  # what truncations take of pieces is known only when they are bound
            if times and mark > times[-1]:
                frontier = Antichain.of(taken[-1].frontier)
                after, updates = bound_to(after, updates, times[-1], frontier)
            times.append(max(mark, times[-1]) if times else mark)
            taken.append(chunk)
            rows += chunk.rows
        if not taken:
            return None
        after, updates = bound_to(after, updates, times[-1], Antichain.of(taken[-1].frontier))
        spans = ranges(after, [0], remap.latest)
        tables = {
            item: _table(TakenTable(item, *shape), list(zip(taken, times, strict=True)), spans)
            for item, shape in shapes.items()
            if any(item in chunk.tables or item in chunk.pieces for chunk in taken)
        }
        return Bindable(tuple(taken), after, updates, tables, tuple(times))


def _table(
    table: TakenTable, chunks: Sequence[tuple[Chunk, Timestamp]], spans: Sequence[Range]
) -> TakenTable:
    """Return what chunks, each with its time, bring to a table."""
    bound: list[Bound] = []
    runs: list[Stamped] = []
    for chunk, time in chunks:
        for piece in chunk.pieces.get(table.item, ()):
            runs += [Stamped.at(run, time, is_rows=piece.is_rows) for run in piece.runs]
        for rows in chunk.tables.get(table.item, ()):
            stamped = _times(spans, rows.records.column(1).to_numpy())
            cuts = _times(spans, np.array([at for _, at, _ in rows.truncated], np.int64))
            bound.append(Bound(rows, stamped, tuple(Timestamp(cut) for cut in cuts.tolist())))
    return replace(table, bound=tuple(bound), runs=tuple(runs))


def _times(spans: Sequence[Range], offsets: Int64s) -> Int64s:
    times = stamp(spans, np.zeros(len(offsets), np.int32), offsets)
    if (times == NOT_BOUND).any():
        message = "a change was read that no binding covers"
        raise Corrupt(message)
    return times
