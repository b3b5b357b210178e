"""Batches of what waits for its transaction: rows, and what is said of transactions.

A ``Part`` is some statements of the envelope ``transactions``, each marked with the code of its
transaction in the ledger, or as *loose* if it belongs to none. ``Columns`` knows where everything
is in them, and makes of the parts what a tick publishes.

A row that is released out of turn must not overtake an older one of its key that waits: ``blocked``
are the transactions that would. Which of two rows is older, and what becomes of one that was passed
before it came, is ``order``, ``passed``.

Cost: vectorised over what waits. Tests: tests/ingest/test_transactions.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.arrangement.column import canonical
from reclock.connectors.transactions import END
from reclock.dataflow import delta as deltas
from reclock.dataflow.envelope import DEBEZIUM, TRANSACTIONS, envelope_columns, envelope_fields
from reclock.ingest.waiting import concat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from reclock.dataflow.delta import Types
    from reclock.ingest.transactions.ledger import Done

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]

DONE: Final = "DONE"
LOOSE: Final = -1
"""The code of rows that belong to no transaction."""

_POSITION: Final = "position_1"
_LAST: Final = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Part:
    """Some statements, and of each the code of its transaction."""

    rows: pa.RecordBatch
    codes: Int64s
    mentions: bool = False

    @property
    def size(self) -> int:
        """In bytes; what is said of transactions does not count: rows are read to make it less."""
        return 0 if self.mentions else self.rows.nbytes

    @property
    def loose(self) -> Bools:
        """Which statements belong to no transaction."""
        made: Bools = self.codes == LOOSE
        return made

    def filter(self, keep: Bools) -> Part:
        """Return some of it."""
        return Part(self.rows.filter(pa.array(keep)), self.codes[keep], self.mentions)

    def released(self, codes: Int64s) -> Bools:
        """Return which statements go when the transactions with these codes are released."""
        made: Bools = np.isin(self.codes, codes) | self.loose
        return made


def joined(parts: Sequence[Part]) -> list[Part]:
    """Return few parts: what waits long is not looked at piece by piece."""
    made = []
    for mentions in (True, False):
        own = [part for part in parts if part.mentions == mentions]
        rows = concat([part.rows for part in own])
        if rows is not None:
            made.append(Part(rows, np.concatenate([part.codes for part in own]), mentions))
    return made


def looked_up(found: Part | None, codes: Int64s, values: Mapping[int, int], loose: int) -> Int64s:
    """Return the value of each row's transaction, by its code; that of loose rows is given."""
    if found is None:
        return np.empty(0, np.int64)
    made: Int64s = np.full(len(found.codes), loose, np.int64)
    if len(codes):
        of = np.array([values[code] for code in codes.tolist()], np.int64)
        at = np.minimum(np.searchsorted(codes, found.codes), len(codes) - 1)
        made = np.where(found.loose, loose, of[at])
    return made


@dataclass(frozen=True)
class Columns:
    """Statements about rows of these types, with a key or (empty) without."""

    row: Types
    key: tuple[int, ...] = ()

    def of(self, rows: pa.RecordBatch) -> Mapping[str, pa.Array]:
        """Return what statements say in addition to the columns of the row, by name."""
        return envelope_columns(TRANSACTIONS, self.row, rows)

    @property
    def names(self) -> list[str]:
        """The names of the columns that statements have in addition to those of the row."""
        return [f.name for f in envelope_fields(TRANSACTIONS, self.row)]

    def numbered(self, rows: pa.RecordBatch, numbers: Sequence[int | None]) -> pa.RecordBatch:
        """Return statements with these numbers of their transactions."""
        at = len(self.row) + self.names.index("number")
        return rows.set_column(at, rows.schema.names[at], pa.array(numbers, pa.int64()))

    def in_order(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, ...]:
        """Return of stored statements those of transactions, as they came, rows, and keys."""
        said = self.of(rows)
        data = said["status"].is_null()
        number = said["number"].fill_null(0).to_numpy()
        ends = [status == END for status in said["status"].to_pylist()]
        order = pa.array(np.lexsort([said["order"].fill_null(0).to_numpy(), ends, number]))
        mentions = rows.take(order).filter(pc.invert(data).take(order))
        passed = pc.and_(data, said["number"].is_valid())
        names = self.nothing.schema.names
        return (
            mentions,
            rows.filter(pc.and_not(data, passed)),
            rows.filter(passed).rename_columns(names),
        )

    @property
    def nothing(self) -> pa.RecordBatch:
        """No statements."""
        return self.statements(0, {})

    def done(self, some: Sequence[Done]) -> pa.RecordBatch:
        """Return released transactions as statements, to be remembered."""
        given = {
            "order": [0] * len(some), "transaction": [d.id for d in some],
            "status": [DONE] * len(some), "number": [d.number for d in some],
            "count": [d.rows for d in some],
        }  # fmt: skip
        return self.statements(len(some), given)

    def statements(
        self, size: int, given: Mapping[str, object], row: Mapping[int, pa.Array] | None = None
    ) -> pa.RecordBatch:
        """Return statements that have these columns alone, by name; those of the row, by place."""
        columns = [(row or {}).get(at, pa.nulls(size, kind)) for at, kind in enumerate(self.row)]
        columns += [
            pa.array(given[f.name], f.type) if f.name in given else pa.nulls(size, f.type)
            for f in envelope_fields(TRANSACTIONS, self.row)
        ]
        return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])

    def taken_in(self, columns: Sequence[pa.Array], *, strict: bool) -> list[pa.Array]:
        """Return of the columns of statements those of the envelope debezium.

        Released out of turn, rows are not in the order of their database's log.
        """
        width, names, made = len(self.row), self.names, []
        for f in envelope_fields(DEBEZIUM, self.row):
            column = columns[width + names.index(f.name)]
            if f.name == _POSITION and not strict:
                column = pa.nulls(len(column), f.type)
            made.append(column)
        return [*columns[:width], *made]

    def released(self, parts: Sequence[Part], codes: Int64s) -> Part | None:
        """Return the rows that go when transactions with these codes are released."""
        made = []
        for part in parts:
            which = part.released(codes)
            which &= self.of(part.rows)["status"].is_null().to_numpy(zero_copy_only=False)
            made.append(part.filter(which))
        rows = concat([part.rows for part in made])
        if rows is None or not rows.num_rows:
            return None
        return Part(rows, np.concatenate([part.codes for part in made]))

    def closed(
        self, found: Part, order: Int64s, when: Int64s, *, strict: bool
    ) -> pa.RecordBatch | None:
        """Return the delta of released rows, at these times.

        They get the ``order`` of their changes. Loose rows are placed in the database's log by
        themselves: what is known of one kind makes no repetition of the other.
        """
        columns = self.taken_in(found.rows.columns, strict=strict)
        names = [f.name for f in envelope_fields(DEBEZIUM, self.row)]
        at = {name: len(self.row) + names.index(name) for name in ("order", "partition")}
        columns[at["order"]] = pa.array(order)
        if found.loose.any():
            partition = columns[at["partition"]]
            own = pc.subtract(pa.scalar(-1, pa.int32()), partition)
            columns[at["partition"]] = pc.if_else(pa.array(found.loose), own, partition)
        return deltas.build(columns, when, np.ones(len(when), np.int64))

    def blocked(
        self, parts: Sequence[Part], complete: set[int], numbers: Mapping[int, int]
    ) -> set[int]:
        """Return the codes of transactions with a row whose key has an earlier row that waits.

        ``numbers`` are theirs; of those that nothing is said of yet, they will be greater.
        """
        keys, codes = [], []
        width = len(self.row)
        for part in (part for part in parts if not part.mentions):
            said = self.of(part.rows)
            old = said["has_before"].fill_null(False).to_numpy(zero_copy_only=False)
            for which, begin in ((~part.loose, 0), (~part.loose & old, width)):
                here = pa.array(np.flatnonzero(which))
                row = [canonical(part.rows.column(begin + at).take(here)) for at in self.key]
                keys.append(deltas.key_hash(row, len(here)))
                codes.append(part.codes[which])
        if not codes:
            return set()
        key, code = np.concatenate(keys), np.concatenate(codes)
        known, of = np.unique(code, return_inverse=True)
        number = np.array([numbers.get(c, _LAST) for c in known.tolist()], np.int64)[of]
        by = np.lexsort([number, key])
        same = key[by][1:] == key[by][:-1]
        pairs = np.stack([code[by][:-1][same], code[by][1:][same]], axis=1)
        follows = {(first, then) for first, then in np.unique(pairs, axis=0).tolist()}
        found = set(code.tolist()) - complete
        while more := {then for first, then in follows if first in found} - found:
            found |= more
        return found
