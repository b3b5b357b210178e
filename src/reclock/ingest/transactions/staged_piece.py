"""Rows of transactions that tasks have written to a file, and which of them still wait.

A ``StagedPiece`` is a piece of a reading (``dataflow.piece``) whose summary was read: which
transactions its rows belong to. The rows stay where they are. Transactions *go* from it when they
are released, or when their rows turn out to be repetitions; loose rows go with the first release.
When nothing is left, the file is of no use any more.

``record`` is what is durable of it, in the append that binds its positions (``held_store``): the
references, and what has gone.

Cost: the driver has a few numbers for each transaction of a piece. Tests:
tests/ingest/test_transaction_walk.py.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reclock.arrangement.cache import RunCache
from reclock.dataflow import delta as deltas
from reclock.dataflow.changes import Stamped
from reclock.dataflow.piece import Piece
from reclock.dataflow.transaction_runs import LOOSE, SUMMARY, Chosen, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from reclock.arrangement.layout import Int64s
    from reclock.arrangement.store import Store
    from reclock.dataflow.transaction_runs import TransactionRuns
    from reclock.durable.keyed import Json
    from reclock.ingest.transactions.order import Ranking

    Bools = NDArray[np.bool_]


@dataclass(eq=False)
class StagedPiece:
    """A piece, in ``store``, with the number that it is held by."""

    number: int
    piece: Piece
    runs: TransactionRuns
    store: Store
    names: list[str]
    """Of its transactions, by code."""
    summary: pa.RecordBatch
    """The groups of its rows, by transaction and partition (``transaction_runs``)."""
    gone: Bools
    """Which transactions do not wait here any more, by code."""
    has_loose: bool
    """Whether rows wait that belong to no transaction."""
    without: dict[int, Int64s] = field(default_factory=dict)
    """Places that another piece has, by code."""
    _record: Json | None = None

    @classmethod
    def read(
        cls, number: int, piece: Piece, runs: TransactionRuns, store: Store
    ) -> StagedPiece | None:
        """Return a piece with its summary; None if there are no rows."""
        if piece.summary is None:
            return None
        found = [*RunCache().open(store, piece.summary, SUMMARY.layout)]
        whole = deltas.union([SUMMARY.restore(batch) for batch in found])
        order = pa.array(np.lexsort([whole.column(2).to_numpy(), whole.column(0).to_numpy()]))
        summary = whole.take(order)
        named = dict(zip(*(summary.column(at).to_pylist() for at in range(2)), strict=True))
        has_loose = named.pop(LOOSE, "") is None
        names = [named[code] for code in range(len(named))]
        gone = np.zeros(len(names), np.bool_)
        return cls(number, piece, runs, store, names, summary, gone, has_loose)

    @classmethod
    def restored(
        cls, number: int, record: Json, runs: TransactionRuns, store: Store
    ) -> StagedPiece:
        """Return what is durable of a piece, with its summary."""
        made = cls.read(number, Piece.from_text(json.dumps(record["piece"])), runs, store)
        assert made is not None
        bits = np.frombuffer(zlib.decompress(b64decode(record["gone"])), np.uint8)
        made.gone = np.unpackbits(bits, count=len(made.names)).astype(np.bool_)
        made.has_loose = record["loose"]
        return made

    def record(self, released: Bools | None = None) -> Json | None:
        """Return what is durable of it, when some transactions are released; None: nothing."""
        if released is None and self._record is not None:
            return self._record
        gone = self.gone if released is None else self.gone | released
        loose = self.has_loose and released is None
        if gone.all() and not loose:
            return None
        bits = b64encode(zlib.compress(np.packbits(gone).tobytes())).decode()
        made = {"piece": json.loads(self.piece.text()), "gone": bits, "loose": loose}
        if released is None:
            self._record = made
        return made

    # What it has.

    def column(self, at: int) -> Int64s:
        """Return a column of the summary."""
        made: Int64s = self.summary.column(at).to_numpy(zero_copy_only=False).astype(np.int64)
        return made

    @property
    def is_regular(self) -> bool:
        """Whether all rows decode, and those of transactions say their places in them."""
        unplaced = self.column(4)[self.column(0) != LOOSE]
        return not self.piece.errors and not unplaced.any()

    def waiting(self) -> Iterator[tuple[int, str, Int64s, int | None]]:
        """Yield the transactions that wait: code, name, places, greatest collection order."""
        stated = [self.summary.column(at).to_pylist() for at in (0, 3, 5, 6, 7, 8)]
        for code, rows, first, last, data, of_table in zip(*stated, strict=True):
            if code != LOOSE and not self.gone[code]:
                places = unpacked(first, last, rows, data)
                yield code, self.names[code], places, None if of_table < 0 else of_table

    @property
    def loose(self) -> int:
        """How many rows wait that belong to no transaction."""
        return int(self.column(3)[self.column(0) == LOOSE].sum()) if self.has_loose else 0

    @property
    def rows(self) -> int:
        """How many rows wait, about."""
        code, rows = self.column(0), self.column(3)
        here = code != LOOSE
        return self.loose + int(rows[here][~self.gone[code[here]]].sum())

    def which(self, released: Mapping[str, object]) -> Bools:
        """Return which transactions wait here that are released."""
        made: Bools = np.array([name in released for name in self.names], np.bool_) & ~self.gone
        return made

    def leave_out(self, code: int, places: Int64s) -> None:
        """Note places of a transaction that are known from elsewhere."""
        known = self.without.get(code)
        self.without[code] = places if known is None else np.union1d(known, places)

    def go(self, released: Bools) -> None:
        """Forget transactions, and loose rows, that are published."""
        self.gone = self.gone | released
        self.has_loose, self._record = False, None

    @property
    def is_done(self) -> bool:
        """Whether nothing waits here."""
        return bool(self.gone.all()) and not self.has_loose

    # What a tick takes.

    def stamped(
        self, released: Bools, times: Mapping[str, int], ranking: Ranking, first: int
    ) -> list[Stamped]:
        """Return the rows of released transactions at their times; loose ones at the first."""
        codes = np.flatnonzero(released)
        names = [self.names[code] for code in codes.tolist()]
        when = [times[name] for name in names]
        begins = [ranking.begins[name] for name in names]
        whole = self.column(0)
        count = int(self.column(3)[np.isin(whole, codes)].sum())
        count -= sum(len(self.without.get(code, ())) for code in codes.tolist())
        if self.has_loose:
            codes, when, begins = np.append(LOOSE, codes), [first, *when], [0, *begins]
            count += self.loose
        if not count:
            return []
        chosen = Chosen(
            codes.astype(np.int64), np.array(when, np.int64), np.array(begins, np.int64),
            {code: self.without[code] for code in codes.tolist() if code in self.without},
            ranking.loose if self.has_loose else None,
        )  # fmt: skip
        return [Stamped(ref, count=count, chosen=chosen) for ref in self.piece.runs]

    def statements(self) -> tuple[pa.RecordBatch, Int64s]:
        """Read what waits into memory: statements, as they were read, and their codes."""
        keying = self.runs.keying
        found = [
            keying.restore(batch)
            for ref in self.piece.runs
            for batch in RunCache().open(self.store, ref, keying.layout)
        ]
        delta = deltas.union(found)
        code = delta.column(delta.num_columns - 5).to_numpy()
        keep = np.where(code == LOOSE, self.has_loose, ~np.append(self.gone, True)[code])
        place = delta.column(delta.num_columns - 4).fill_null(0).to_numpy(zero_copy_only=False)
        for some, places in self.without.items():
            here = code == some
            keep[here] &= ~np.isin(place[here], places)
        rows = self.runs.restored(delta, pa.array(self.names, pa.string()))
        which = pa.array(keep)
        return rows.filter(which), code[keep]
