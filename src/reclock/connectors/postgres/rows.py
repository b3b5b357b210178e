"""Changes of one table as the input of a source's envelope.

A table with a key becomes records of the envelope ``upsert``, without one of ``none``::

    insert    the row                                    +row
    update    the row; if its key changed, before it     −old row, +new row
              a tombstone of the old key
    delete    a tombstone of the key                     −old row
    truncate  noted: what it takes away is known only    noted
              where the rows are (``ingest.postgres``)

All records of a transaction have the position of its commit record. ``order`` counts all changes
that a process reads, so that the last change of a key counts, in one transaction and across them.

A value that the log leaves out because an update did not touch it (*unchanged*) is taken from the
old row where the log has that; else it is noted, and is filled in from the source's own rows.

Tests: tests/connectors/postgres/test_rows.py; against a server: tests/ingest/postgres.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.connectors.postgres.pgoutput import UNCHANGED
from reclock.connectors.postgres.table import AGAIN
from reclock.connectors.postgres.values import from_texts
from reclock.errors import SourceRegressed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reclock.connectors.format.decoder import Field
    from reclock.connectors.postgres.pgoutput import Change, Tuple
    from reclock.connectors.postgres.table import Mapped, Table

    Values = list[bytes | bool | None]

CANNOT_HOLD: Final = "22003"
"""The code of a value that its type here cannot hold."""


class Unchanged(NamedTuple):
    """The columns of a record that the log left out; ``moved``: its key changed.

    Then the record before it is the tombstone of the key whose row has them.
    """

    columns: tuple[int, ...]
    moved: bool


@dataclass(frozen=True)
class Rows:
    """Records of one table, in order; ``unchanged`` and ``truncated`` by their places."""

    records: pa.RecordBatch
    unchanged: dict[int, Unchanged] = field(default_factory=dict)
    truncated: tuple[tuple[int, int, int], ...] = ()
    """Before which record all rows went, and the position and the order of that."""

    @property
    def is_plain(self) -> bool:
        """Whether the records say everything."""
        return not self.unchanged and not self.truncated


class RowsBuilder:
    """Collects the changes of one table."""

    def __init__(self, table: Table, fields: tuple[Field, ...]) -> None:
        self._table = table
        self._fields = fields
        self._values: list[Tuple] = []
        self._offsets: list[int] = []
        self._orders: list[int] = []
        self._gone: list[bool] = []
        self._unchanged: dict[int, Unchanged] = {}
        self._truncated: list[tuple[int, int, int]] = []
        self.size = 0

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, change: Change, mapped: Mapped, offset: int, order: int) -> None:
        """Take in a change of the transaction whose commit record is at ``offset``."""
        given = change.new
        is_simple = mapped.is_whole and change.old is None and self._table.key
        if is_simple and mapped.identity != "n" and given is not None and UNCHANGED not in given:
            self._append(given, offset, order, gone=False)
            return
        places = mapped.places
        new = None if change.new is None else [change.new[at] for at in places]
        old = None if change.old is None else [change.old[at] for at in places]
        if not self._table.key:
            self._by_content(change, new, old, (offset, order))
            return
        key = self._table.key
        if change.kind != "I" and mapped.identity == "n":
            raise self._no_identity(change)
        moved = False
        if old is not None:
            told = key if change.is_key else range(len(places))
            if new is None:
                self._append(self._only(old, key), offset, order, gone=True)
                return
            for at in told:
                if new[at] is UNCHANGED:
                    new[at] = old[at]
            if [old[at] for at in key] != [new[at] for at in key]:
                moved = True
                self._append(self._only(old, key), offset, order, gone=True)
        if new is None:
            raise self._no_identity(change)
        left = tuple(at for at, value in enumerate(new) if value is UNCHANGED)
        if left:
            self._unchanged[len(self)] = Unchanged(left, moved)
        self._append(new, offset, order, gone=False)

    def truncate(self, offset: int, order: int) -> None:
        """Note that all rows go here."""
        self._truncated.append((len(self), offset, order))

    def _by_content(
        self, change: Change, new: Values | None, old: Values | None, at: tuple[int, int]
    ) -> None:
        if change.kind != "I" and (old is None or change.is_key):
            raise self._no_identity(change)
        if old is not None:
            self._append(old, *at, gone=True)
        if new is not None:
            before = [None] * len(new) if old is None else old
            pairs = zip(new, before, strict=True)
            self._append([b if n is UNCHANGED else n for n, b in pairs], *at, gone=False)

    def _no_identity(self, change: Change) -> SourceRegressed:
        done = "updated" if change.kind == "U" else "deleted"
        message = f"a row of table {self._table.shown} was {done}, and the log does not say which"
        detail = "the replica identity of the table does not name the row"
        hint = f"ALTER TABLE … REPLICA IDENTITY FULL, or give it a primary key; then {AGAIN}"
        return SourceRegressed(message, detail=detail, hint=hint)

    @staticmethod
    def _only(values: Values, key: tuple[int, ...]) -> Values:
        return [value if at in key else None for at, value in enumerate(values)]

    def _append(self, values: Values | Tuple, offset: int, order: int, *, gone: bool) -> None:
        self._values.append(tuple(values))
        self._offsets.append(offset)
        self._orders.append(order)
        self._gone.append(gone)
        self.size += 24 + sum(map(len, filter(None, values)))  # type: ignore[arg-type]

    def finish(self) -> Rows:
        """Return what was collected."""
        faults: dict[int, str] = {}
        for at in self._unchanged:
            self._values[at] = tuple(None if v is UNCHANGED else v for v in self._values[at])
        texts: list[Any] = list(zip(*self._values, strict=True)) or [() for _ in self._fields]
        columns = [
            from_texts(some, one, faults, exact=column.is_unbounded)
            for some, one, column in zip(texts, self._fields, self._table.columns, strict=True)
        ]
        places = Places(
            np.array(self._offsets, np.int64),
            np.array(self._orders, np.int64),
            np.array(self._gone, np.bool_),
        )
        records = records_of(self._table, columns, places, faults)
        return Rows(records, self._unchanged, tuple(self._truncated))


@dataclass(frozen=True)
class Places:
    """Where records are in the log, how they follow one another, and which take a row away."""

    offsets: NDArray[np.int64]
    orders: NDArray[np.int64]
    gone: NDArray[np.bool_]


def records_of(
    table: Table, columns: list[pa.Array], places: Places, faults: dict[int, str]
) -> pa.RecordBatch:
    """Return records of the envelope that a table has, after their places."""
    size = len(places.offsets)
    codes, texts = pa.nulls(size, pa.string()), pa.nulls(size, pa.string())
    if faults:
        said = [faults.get(at) for at in range(size)]
        named = [None if text is None else f"table {table.shown}: {text}" for text in said]
        texts = pa.array(named, pa.string())
        codes = pa.array([None if text is None else CANNOT_HOLD for text in said], pa.string())
    at = [pa.array(np.zeros(size, np.int32)), pa.array(places.offsets)]
    if table.key:
        made = [*at, *columns, pa.array(places.orders), pa.array(places.gone), codes, texts]
        return pa.RecordBatch.from_arrays(made, names=[f"c{at}" for at in range(len(made))])
    if faults:  # a row that cannot be held is its error, which goes with it
        wrong = texts.is_valid()

        columns = [pc.if_else(wrong, pa.scalar(None, c.type), c) for c in columns]
    diffs = pa.array(np.where(places.gone, -1, 1).astype(np.int64))
    made = [*at, *columns, codes, texts, diffs]
    names = [*(f"c{at}" for at in range(len(made) - 1)), "diff"]
    return pa.RecordBatch.from_arrays(made, names=names)
