"""Updates of CDCv2 that tasks have written to files, and what of their times still waits.

A ``StagedTimes`` is a piece of a reading (``dataflow.piece``) whose summary was read: how many
updates it has of each time. The updates stay where they are until a tick closes their times
(``dataflow.closing``). Times before the upper have gone from it; when the last has, the file is of
no use any more.

``StagedUpdates`` are the pieces of one source. The same update may be in several, so the numbers
of a time are a *bound*: no more updates can be there, each counted once. Where closing has counted
them, the bound is lowered by what was too much, so that nothing is counted again before more comes.

What waits in files is durable by ``held``, in the append that binds its positions: the references
of the piece. What has gone from it is what is before the upper.

Cost: a few numbers for each time of a piece. Tests: tests/ingest/test_stated_walk.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reclock.arrangement.cache import RunCache
from reclock.arrangement.layout import time_of
from reclock.dataflow.closing import hashes_of
from reclock.dataflow.piece import Piece
from reclock.dataflow.stated_runs import SUMMARY, Summary

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reclock.arrangement.layout import Int64s
    from reclock.arrangement.store import Store
    from reclock.dataflow.stated_runs import StatedRuns
    from reclock.durable.keyed import Json
    from reclock.ingest.cdcv2.closed_times import ClosedTimes


@dataclass(eq=False)
class StagedTimes:
    """A piece, in ``store``, with the number that it is held by; its times that wait, in order."""

    number: int
    piece: Piece
    runs: StatedRuns
    store: Store
    times: Int64s
    rows: Int64s
    """How many updates of each time were read."""
    updates: Int64s
    """How many of them are distinct."""

    @classmethod
    def read(
        cls, number: int, piece: Piece, runs: StatedRuns, store: Store
    ) -> tuple[StagedTimes, Summary]:
        """Return a piece with its summary, which says more than its times."""
        assert piece.summary is not None
        found = Summary.of(RunCache().open(store, piece.summary, SUMMARY.layout), runs.rows.types)
        made = cls(number, piece, runs, store, found.times, found.rows, found.updates)
        return made, found

    @classmethod
    def restored(cls, number: int, record: Json, runs: StatedRuns, store: Store) -> StagedTimes:
        """Return what is durable of a piece, with its times."""
        return cls.read(number, Piece.from_text(json.dumps(record["piece"])), runs, store)[0]

    @property
    def record(self) -> Json:
        """What is durable of it."""
        return {"piece": json.loads(self.piece.text())}

    def forget(self, upper: int) -> None:
        """Forget the times before ``upper``."""
        keep = self.times >= upper
        if not keep.all():
            self.times, self.rows, self.updates = (
                some[keep] for some in (self.times, self.rows, self.updates)
            )

    def check_late(self, upper: int, closed: ClosedTimes) -> None:
        """Refuse updates of complete times that these do not have; they are read if need be."""
        known = (self.times < upper) & (self.times >= closed.floor)
        some = np.array([t for t in self.times[known].tolist() if closed.is_checked(t)], np.int64)
        passed = (self.times < upper) & ~np.isin(self.times, some)
        closed.unchecked += int(self.updates[passed].sum())
        if not len(some):
            return
        keying = self.runs.keying
        for ref in self.piece.runs:
            for batch in RunCache().open(self.store, ref, keying.layout):
                found = batch.filter(pa.array(np.isin(time_of(batch), some)))
                *row, diff = keying.columns(found)
                hashes = hashes_of(row, diff)
                times = time_of(found)
                for at, (time, known) in enumerate(
                    zip(times.tolist(), hashes.tolist(), strict=True)
                ):
                    closed.check_update(time, known, tuple(c[at].as_py() for c in row))


@dataclass
class StagedUpdates:
    """The pieces of one source that wait, in the order in which they were read."""

    pieces: list[StagedTimes] = field(default_factory=list)
    spent: list[str] = field(default_factory=list)
    """Files of which nothing waits any more."""
    _excess: dict[int, int] = field(default_factory=dict)
    """By how much the bound of a time is known to be too much."""

    def add(self, piece: StagedTimes, upper: int) -> None:
        """Take in a piece."""
        piece.forget(upper)
        if len(piece.times):
            self.pieces.append(piece)
        else:
            self.spent += piece.piece.segments

    @property
    def waiting(self) -> int:
        """How many updates wait, however often each came."""
        return sum(int(piece.rows.sum()) for piece in self.pieces)

    @property
    def latest(self) -> int:
        """The last time; −1 if there is none."""
        return max((int(piece.times[-1]) for piece in self.pieces), default=-1)

    @property
    def read(self) -> Iterator[tuple[Int64s, Int64s]]:
        """The times of each piece, and how many updates of each were read."""
        return ((piece.times, piece.rows) for piece in self.pieces)

    def bounds(self, end: int) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield times before ``end``, and by how much each raises the bound of its updates."""
        for piece in self.pieces:
            here = int(np.searchsorted(piece.times, min(end, 1 << 62)))
            yield piece.times[:here], piece.updates[:here]
        some = sorted(time for time in self._excess if time < end)
        if some:
            yield np.array(some, np.int64), np.array([-self._excess[t] for t in some], np.int64)

    def concerned(self, end: int) -> tuple[StagedTimes, ...]:
        """Return the pieces that have times before ``end``."""
        return tuple(piece for piece in self.pieces if piece.times[0] < end)

    def rows_before(self, end: int) -> int:
        """Return how many distinct updates, at most, wait at times before ``end``."""
        return sum(int(counts.sum()) for _, counts in self.bounds(end))

    def lower(self, excess: Mapping[int, int]) -> None:
        """Note by how much bounds were too much, in all that there was of a time."""
        for time, much in excess.items():
            self._excess[time] = self._excess.get(time, 0) + much

    def held(self, upper: int) -> dict[int, Json]:
        """Return what is durable of the pieces when times before ``upper`` are closed."""
        return {p.number: p.record for p in self.pieces if p.times[-1] >= upper}

    def unknown(self, known: Collection[StagedTimes]) -> Iterable[StagedTimes]:
        """Return the pieces that an offer did not know."""
        return [piece for piece in self.pieces if piece not in known]

    def settle(self, upper: int) -> None:
        """Forget what is published."""
        for piece in self.pieces:
            piece.forget(upper)
        self.spent += (
            name for piece in self.pieces if not len(piece.times) for name in piece.piece.segments
        )
        self.pieces = [piece for piece in self.pieces if len(piece.times)]
        self._excess = {time: much for time, much in self._excess.items() if time >= upper}
