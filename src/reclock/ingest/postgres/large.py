"""A transaction that does not fit the memory, from its messages in a file to runs in the store.

The messages (``spill``) are read again in order. The rows of a table are made in slices, and each
slice is written to the store as a piece, as tasks do with what they copy: the tick that binds the
transaction has references. All pieces are at one time, so

* only the last truncation of a table counts, and what was before it in the transaction is left out;
  what it takes of the rows before the transaction is found by the tick (``resolve``);
* a value that the log left out is that of an earlier slice, or of the row here before the
  transaction. Rows of earlier slices are kept in a file (``_Overlay``), of tables that need them.

So everything before the transaction must be bound when this begins: the intake sees to it.

Cost: three passes over the file at most; memory is that of a slice of each table.
Tests: tests/ingest/postgres/test_large.py.
"""

from __future__ import annotations

import pickle
import sqlite3
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reclock.connectors.postgres.pgoutput import Change, Relation, Truncate
from reclock.connectors.postgres.rows import Rows, RowsBuilder
from reclock.ingest.postgres.define import fields_of
from reclock.ingest.postgres.resolve import GONE, PLACES, TakenTable, filled, looked_up

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reclock.connectors.postgres.pgoutput import Commit
    from reclock.connectors.postgres.spill import Spill
    from reclock.connectors.postgres.table import Mapped, Table
    from reclock.dataflow.piece import Piece
    from reclock.engine.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.ingest.postgres.assembly import Relations
    from reclock.ingest.postgres.resolve import Key

    Write = Callable[[ObjectId, pa.RecordBatch], tuple[Piece, ...]]

SLICE_ROWS: Final = 65_536
SLICE_BYTES: Final = 16 << 20


@dataclass
class Large:
    """A transaction in a file that is complete; ``relations`` is what its session has said."""

    spill: Spill
    commit: Commit
    relations: Relations
    xid: int
    rows: int = 0

    def staged(
        self, state: TimelineState, write: Write
    ) -> tuple[dict[ObjectId, tuple[Rows, ...]], dict[ObjectId, tuple[Piece, ...]]]:
        """Return what truncations are noted of each table, and its pieces."""
        cuts, partly = self.spill.survey()
        makers: dict[int, _Maker] = {}
        for place, message in enumerate(self.spill.messages()):
            if isinstance(message, Relation):
                self.relations.note(message)
            elif isinstance(message, Change):
                if place < cuts.get(message.relation, 0):
                    continue
                found = self.relations.found(message.relation)
                if found is None:
                    continue
                item, table, mapped = found
                if message.relation not in makers:
                    overlay = _Overlay() if message.relation in partly else None
                    makers[message.relation] = _Maker(item, table, overlay, state, write)
                self.rows += 1
                self.relations.order += 1
                makers[message.relation].add(message, mapped, self.commit.lsn, self.relations.order)
            elif isinstance(message, Truncate):
                for relation in message.relations:
                    found = self.relations.found(relation)
                    if found is None or cuts[relation] != place:
                        continue
                    item, table, _ = found
                    overlay = _Overlay() if relation in partly else None
                    self.rows += 1
                    self.relations.order += 1
                    maker = _Maker(item, table, overlay, state, write)
                    maker.truncate(self.commit.lsn, self.relations.order)
                    makers[relation] = maker
        for maker in makers.values():
            maker.write()
        emptied: dict[ObjectId, tuple[Rows, ...]] = {
            m.item: (m.emptied,) for m in makers.values() if m.emptied is not None
        }
        return emptied, {m.item: tuple(m.pieces) for m in makers.values() if m.pieces}


class _Maker:
    """Makes pieces of the changes of one table."""

    def __init__(
        self,
        item: ObjectId,
        table: Table,
        overlay: _Overlay | None,
        state: TimelineState,
        write: Write,
    ) -> None:
        self.item = item
        self.pieces: list[Piece] = []
        self.emptied: Rows | None = None
        self._table = table
        self._overlay = overlay
        self._state = state
        self._write = write
        self._builder = self._fresh()

    def _fresh(self) -> RowsBuilder:
        return RowsBuilder(self._table, fields_of(self._table))

    def add(self, change: Change, mapped: Mapped, offset: int, order: int) -> None:
        """Take in a change."""
        self._builder.add(change, mapped, offset, order)
        if len(self._builder) >= SLICE_ROWS or self._builder.size >= SLICE_BYTES:
            self.write()

    def truncate(self, offset: int, order: int) -> None:
        """Note that all rows go before the first change."""
        builder = self._fresh()
        builder.truncate(offset, order)
        self.emptied = builder.finish()

    def write(self) -> None:
        """Make a piece of what there is."""
        if not len(self._builder):
            return
        records = self._builder.finish()
        self._builder = self._fresh()
        batch = records.records
        if self._overlay is not None:
            columns = self._overlay.filled(self._table.key, records, self._before)
            batch = pa.RecordBatch.from_arrays(
                [*batch.columns[:PLACES], *columns], names=batch.schema.names
            )
        self.pieces += self._write(self.item, batch)

    def _before(self, keys: set[Key]) -> Mapping[Key, list[Any] | None]:
        """Return the rows of keys before the transaction."""
        if self.emptied is not None:
            return {}
        table = TakenTable(self.item, len(self._table.columns), self._table.key)
        return looked_up(self._state, table, keys)


class _Overlay:
    """The rows that a transaction has made so far, by key, in a file without a name."""

    def __init__(self) -> None:
        self._file = sqlite3.connect("")
        self._file.execute("CREATE TABLE made (key TEXT PRIMARY KEY, line BLOB) WITHOUT ROWID")

    def filled(
        self, key: tuple[int, ...], rows: Rows, before: Callable[[set[Key]], Mapping[Key, Any]]
    ) -> list[pa.Array]:
        """Return the columns of some records, filled in, and remember the rows that they make."""
        columns: list[pa.Array] = rows.records.columns[PLACES:]
        if rows.unchanged:
            columns = filled(key, columns, rows.unchanged, partial(self._known, before))
        lists = [column.to_pylist() for column in columns]
        codes, gone = lists[-2], lists[GONE]
        self._file.executemany(
            "INSERT OR REPLACE INTO made VALUES (?, ?)",
            (
                (
                    repr(tuple(lists[k][n] for k in key)),
                    None if gone[n] or codes[n] else _line(lists, n),
                )
                for n in range(len(codes))
            ),
        )
        return columns

    def _known(
        self, before: Callable[[set[Key]], Mapping[Key, Any]], keys: set[Key]
    ) -> dict[Key, list[Any] | None]:
        found: dict[Key, list[Any] | None] = {}
        for one in keys:
            row = self._file.execute("SELECT line FROM made WHERE key = ?", (repr(one),)).fetchone()
            if row is not None:
                found[one] = None if row[0] is None else pickle.loads(row[0])
        rest = keys - found.keys()
        return {**before(rest), **found} if rest else found


def _line(lists: list[list[Any]], at: int) -> bytes:
    return pickle.dumps([values[at] for values in lists])


def in_piece(item: ObjectId, number: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return records as those of one position of their own, which the times do not depend on."""
    size, names = batch.num_rows, batch.schema.names
    part = pa.array([str(item)] * size, pa.string())
    offsets = pa.array(np.full(size, number, np.int64))
    return batch.set_column(0, names[0], part).set_column(1, names[1], offsets)
