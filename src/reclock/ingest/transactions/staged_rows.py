"""Rows of transactions that wait in files, and are released by reference.

Tasks have read them (``staged_piece``); the ledger knows them like others. A release takes their
runs as they are, with the times and ranks of what is meant (``transaction_runs.Chosen``), if rows
are *orderly*, as a connector writes them:

* every row of the transactions says its place;
* in each partition loose rows come before those of the transactions.

Else what the pieces concerned have is read into memory, and goes on as if it had been read there
(``unstaged``); so does a piece with records that do not decode.

What waits in files is durable by ``held``, in the append that binds its positions. Only
transactions that are released in their order can wait so.

Tests: tests/ingest/test_transaction_walk.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reclock.ingest.transactions.order import Loose, Ranking
from reclock.ingest.transactions.rows import LOOSE, Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reclock.dataflow.changes import Stamped
    from reclock.durable.keyed import Json
    from reclock.ingest.transactions.ledger import Ledger, Open
    from reclock.ingest.transactions.rows import Columns, Int64s
    from reclock.ingest.transactions.staged_piece import Bools, StagedPiece


class Going(NamedTuple):
    """What goes with a release: of which pieces which transactions, and pieces that have gone."""

    pieces: tuple[tuple[StagedPiece, Bools], ...]
    left: tuple[StagedPiece, ...]


@dataclass
class StagedRows:
    """The pieces of one source that wait, in the order in which they were read."""

    columns: Columns
    ledger: Ledger
    pieces: list[StagedPiece] = field(default_factory=list)
    spent: list[str] = field(default_factory=list)
    """Files of which nothing waits any more."""
    _left: list[StagedPiece] = field(default_factory=list)
    """Those that were read into memory, and may still be held."""

    def add(self, piece: StagedPiece) -> None:
        """Note the rows of a piece that is regular."""
        repeated = np.zeros(len(piece.names), np.bool_)
        for code, name, places, of_table in piece.waiting():
            new = self.ledger.arrive_all(name, places, of_table)
            if new is None:
                repeated[code] = True
            elif not new.all():
                piece.leave_out(code, places[~new])
        piece.gone |= repeated
        if piece.is_done:
            self.spent += piece.piece.segments
        else:
            self.pieces.append(piece)

    @property
    def loose(self) -> int:
        """How many rows belong to no transaction."""
        return sum(piece.loose for piece in self.pieces)

    @property
    def rows(self) -> int:
        """How many rows wait in files, about."""
        return sum(piece.rows for piece in self.pieces)

    def concerned(self, released: Sequence[Open]) -> list[tuple[StagedPiece, Bools]]:
        """Return the pieces that a release takes something of, and what."""
        names = {entry.id: entry for entry in released}
        found = [(piece, piece.which(names)) for piece in self.pieces]
        return [(piece, which) for piece, which in found if which.any() or piece.has_loose]

    # How rows are ranked.

    def ranking(
        self,
        released: Sequence[Open],
        concerned: Sequence[tuple[StagedPiece, Bools]],
        found: Part | None,
    ) -> Ranking | None:
        """Return the ranks of a release, of pieces and of rows in memory; None: not orderly."""
        if any(entry.unplaced for entry in released):
            return None
        last: dict[int, int] = {}
        bounds = []
        for piece, _ in concerned:
            if piece.has_loose:
                for partition, first, end in _loose_in(piece):
                    last[partition] = max(last.get(partition, -1), end)
                    bounds.append(Loose(first, end, partition, partition))
        if found is not None and found.loose.any():
            offsets, partitions = self.places(found)
            for at in np.flatnonzero(found.loose).tolist():
                part, end = int(partitions[at]), int(offsets[at])
                last[part] = max(last.get(part, -1), end)
                bounds.append(Loose(end, end, part, part))
        if last and not self._follow(last, concerned, found):
            return None
        stated = ((e.id, e.places.first or 0, e.places.last or 0) for e in released if e.arrived)
        return Ranking.of(stated, Loose.around(bounds))

    def _follow(
        self,
        last: Mapping[int, int],
        concerned: Sequence[tuple[StagedPiece, Bools]],
        found: Part | None,
    ) -> bool:
        """Return whether released rows come after the last loose ones of their partitions."""
        for piece, which in concerned:
            code, partition, first = (piece.column(at) for at in (0, 2, 9))
            goes = np.append(which, False)[code]  # the last is that of loose rows
            for part, begin in zip(partition[goes].tolist(), first[goes].tolist(), strict=True):
                if begin < last.get(part, -1):
                    return False
        if found is None:
            return True
        offset, partition = (some[~found.loose] for some in self.places(found))
        stated = zip(partition.tolist(), offset.tolist(), strict=True)
        return all(begin > last.get(part, -1) for part, begin in stated)

    def places(self, found: Part) -> tuple[Int64s, Int64s]:
        """Return the offsets and partitions of rows; those of the consistency topic have −1."""
        said = self.columns.of(found.rows)
        offset = said["order"].to_numpy(zero_copy_only=False).astype(np.int64)
        return offset, said["partition"].fill_null(-1).to_numpy().astype(np.int64)

    def ranks(self, ranking: Ranking, released: Iterable[Open], found: Part) -> Int64s:
        """Return the ranks of released rows in memory."""
        offset, partition = self.places(found)
        codes = {entry.code: ranking.begins.get(entry.id, 0) for entry in released}
        known = np.array(sorted(codes), np.int64)
        made: Int64s = ranking.loose.ranks(offset, partition)
        if len(known):
            begins = np.array([codes[code] for code in known.tolist()], np.int64)
            at = np.minimum(np.searchsorted(known, found.codes), len(known) - 1)
            place = self.columns.of(found.rows)["total_order"].fill_null(0).to_numpy()
            made = np.where(found.loose, made, begins[at] + place)
        return made

    # What goes.

    def stamped(
        self,
        concerned: Sequence[tuple[StagedPiece, Bools]],
        times: Mapping[str, int],
        ranking: Ranking,
        first: int,
    ) -> tuple[Stamped, ...]:
        """Return released rows, by reference; loose ones at the first time."""
        return tuple(
            run for piece, which in concerned for run in piece.stamped(which, times, ranking, first)
        )

    def unstaged(self, concerned: Sequence[tuple[StagedPiece, Bools]]) -> Iterator[Part]:
        """Read all that waits in some pieces into memory."""
        for piece, _ in concerned:
            rows, code = piece.statements()
            codes = [
                LOOSE if gone else self.ledger.code(name)
                for name, gone in zip(piece.names, piece.gone.tolist(), strict=True)
            ]
            yield Part(rows, np.array([*codes, LOOSE], np.int64)[code])
            self.pieces.remove(piece)
            self._left.append(piece)

    def going(self, concerned: Sequence[tuple[StagedPiece, Bools]]) -> Going:
        """Return what has gone when a release is durable."""
        return Going(tuple(concerned), tuple(self._left))

    def held(self, going: Going) -> dict[int, Json]:
        """Return what is durable of the pieces when a release is."""
        goes = {piece.number: which for piece, which in going.pieces}
        found = {piece.number: piece.record(goes.get(piece.number)) for piece in self.pieces}
        return {number: record for number, record in found.items() if record is not None}

    def settle(self, going: Going) -> None:
        """Forget what has gone."""
        for piece, which in going.pieces:
            piece.go(which)
        done = [piece for piece in self.pieces if piece.is_done]
        self.pieces = [piece for piece in self.pieces if not piece.is_done]
        self._left = [piece for piece in self._left if piece not in going.left]
        self.spent += (name for piece in (*done, *going.left) for name in piece.piece.segments)


def _loose_in(piece: StagedPiece) -> Iterator[tuple[int, int, int]]:
    """Yield the partitions that a piece has loose rows of, with the first and the last offset."""
    code, partition, first, last = (piece.column(at) for at in (0, 2, 9, 10))
    here = code == LOOSE
    yield from zip(*(c[here].tolist() for c in (partition, first, last)), strict=True)
