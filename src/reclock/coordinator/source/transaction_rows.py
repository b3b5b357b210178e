"""Batches of what waits for its transaction: rows, and what is said of transactions.

A ``Part`` is some statements of the envelope ``transactions``, each marked with the code of its
transaction in the ledger, or as *loose* if it belongs to none. ``Columns`` knows where everything
is in them, and makes of the parts what a tick publishes.

A row that is released out of turn must not overtake an older one of its key: ``blocked`` are the
transactions that would. Rows of a key are in one partition, in their order, so whatever is older
has been read before.

Cost: vectorised over what waits. Tests: tests/coordinator/source/test_transactions.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.connectors.transactions import END
from reclock.coordinator.source.waiting import concat
from reclock.dataflow import delta as deltas
from reclock.dataflow.envelope import DEBEZIUM, TRANSACTIONS, envelope_columns, envelope_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from reclock.coordinator.source.ledger import Done
    from reclock.dataflow.delta import Types

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]

DONE: Final = "DONE"
LOOSE: Final = -1
"""The code of rows that belong to no transaction."""

_POSITION: Final = "position_1"


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


@dataclass(frozen=True)
class Columns:
    """Statements about rows of these types, with a key or (empty) without."""

    row: Types
    key: tuple[int, ...] = ()

    def of(self, rows: pa.RecordBatch) -> Mapping[str, pa.Array]:
        """Return what statements say beside the columns of the row, by name."""
        return envelope_columns(TRANSACTIONS, self.row, rows)

    @property
    def _names(self) -> list[str]:
        return [f.name for f in envelope_fields(TRANSACTIONS, self.row)]

    def numbered(self, rows: pa.RecordBatch, numbers: Sequence[int | None]) -> pa.RecordBatch:
        """Return statements with these numbers of their transactions."""
        at = len(self.row) + self._names.index("number")
        return rows.set_column(at, rows.schema.names[at], pa.array(numbers, pa.int64()))

    def in_order(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return of stored statements those of transactions, as they came, and rows."""
        said = self.of(rows)
        data = said["status"].is_null()
        number = said["number"].fill_null(0).to_numpy()
        ends = [status == END for status in said["status"].to_pylist()]
        order = pa.array(np.lexsort([said["order"].fill_null(0).to_numpy(), ends, number]))
        mentions = rows.take(order).filter(pc.invert(data).take(order))
        return mentions, rows.filter(data)

    def done(self, some: Sequence[Done]) -> pa.RecordBatch:
        """Return released transactions as statements, to be remembered."""
        given = {
            "order": [0] * len(some), "transaction": [d.id for d in some],
            "status": [DONE] * len(some), "number": [d.number for d in some],
            "count": [d.rows for d in some],
        }  # fmt: skip
        columns = [pa.nulls(len(some), kind) for kind in self.row]
        columns += [
            pa.array(given[f.name], f.type) if f.name in given else pa.nulls(len(some), f.type)
            for f in envelope_fields(TRANSACTIONS, self.row)
        ]
        return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])

    def taken_in(self, columns: Sequence[pa.Array], *, strict: bool) -> list[pa.Array]:
        """Return of the columns of statements those of the envelope debezium.

        Released out of turn, rows are not in the order of their database's log.
        """
        width, names, made = len(self.row), self._names, []
        for f in envelope_fields(DEBEZIUM, self.row):
            column = columns[width + names.index(f.name)]
            if f.name == _POSITION and not strict:
                column = pa.nulls(len(column), f.type)
            made.append(column)
        return [*columns[:width], *made]

    def closed(
        self, parts: Sequence[Part], times: Mapping[int, int], first: int, *, strict: bool
    ) -> pa.RecordBatch | None:
        """Return the delta of released rows, by codes; loose ones are at the time ``first``."""
        codes = np.array(sorted(times), np.int64)
        at_times = np.array([times[code] for code in codes.tolist()], np.int64)
        made = []
        for part in parts:
            which = part.released(codes)
            which &= self.of(part.rows)["status"].is_null().to_numpy(zero_copy_only=False)
            if not which.any():
                continue
            found = part.filter(which)
            when = np.full(len(found.codes), first, np.int64)
            if len(codes):
                at = np.minimum(np.searchsorted(codes, found.codes), len(codes) - 1)
                when = np.where(found.loose, first, at_times[at])
            columns = self.taken_in(found.rows.columns, strict=strict)
            made.append(deltas.build(columns, when, np.ones(len(when), np.int64)))
        return deltas.union(made) if made else None

    def blocked(self, parts: Sequence[Part], complete: set[int]) -> set[int]:
        """Return the codes of transactions with a row whose key has an earlier row that waits."""
        keys, partitions, orders, codes = [], [], [], []
        width = len(self.row)
        for part in (part for part in parts if not part.mentions):
            said = self.of(part.rows)
            old = said["has_before"].fill_null(False).to_numpy(zero_copy_only=False)
            for which, begin in ((~part.loose, 0), (~part.loose & old, width)):
                here = pa.array(np.flatnonzero(which))
                row = [part.rows.column(begin + at).take(here) for at in self.key]
                keys.append(deltas.key_hash(row, len(here)))
                partitions.append(said["partition"].take(here).to_numpy(zero_copy_only=False))
                orders.append(said["order"].take(here).to_numpy())
                codes.append(part.codes[which])
        if not codes:
            return set()
        key, partition, order, code = map(np.concatenate, (keys, partitions, orders, codes))
        by = np.lexsort([order, partition, key])
        same = (key[by][1:] == key[by][:-1]) & (partition[by][1:] == partition[by][:-1])
        pairs = np.stack([code[by][:-1][same], code[by][1:][same]], axis=1)
        follows = {(first, then) for first, then in np.unique(pairs, axis=0).tolist()}
        found = set(code.tolist()) - complete
        while more := {then for first, then in follows if first in found} - found:
            found |= more
        return found
