"""Pieces of a reading: what a task has made of some positions, and where it cuts.

Definition. A task reads ranges of positions one after the other. It cuts what it reads into
*pieces* of at most so many records, so that a tick can take one without the others::

    piece = the ranges that it covers, the runs that were written, counts

A cut is never within the records of one position. The records of a piece are exactly those of its
ranges. Where a source stops at a record with a fault, the last piece ends before that record, and
says what is wrong with it.

``contiguous`` chooses from the pieces of all tasks those that follow what was read before. Others
lie beyond a record at which the source stops.

Cost: a piece has at most ``PIECE_BYTES`` and one batch in memory.
Tests: tests/dataflow/test_piece.py.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from reclock.arrangement.run import RunRef
from reclock.remap.batch import Range
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    Read = Callable[[Sequence[Range]], Iterator[pa.RecordBatch]]

PIECE_BYTES: Final = 64 << 20
"""About how much a task keeps in memory before it writes."""


class Covered(NamedTuple):
    """A range of positions, and what was read of it."""

    range: Range
    rows: int = 0
    """How many records, also those that were skipped."""
    skipped: int = 0
    kept: int = 0
    """How many of those that were skipped, the last ones, are written down."""


@dataclass(frozen=True)
class Piece:
    """What a task has read and written: runs, and counts.

    The runs have the times of the ranges, which may be still to come. They are records as they
    come in, or, if ``is_rows``, rows as the collection of the source keeps them. ``letters`` is the
    run of the records that were skipped, ``summary`` that of the transactions that rows belong to
    (``transaction_runs``), or of the times of updates (``stated_runs``).
    """

    covers: tuple[Covered, ...]
    runs: tuple[RunRef, ...] = ()
    letters: RunRef | None = None
    bytes: int = 0
    errors: int = 0
    fault: str | None = None
    """What is wrong with the record that the source stops at, after the last range."""
    is_rows: bool = False
    summary: RunRef | None = None

    @property
    def rows(self) -> int:
        """How many records were read."""
        return sum(covered.rows for covered in self.covers)

    @property
    def segments(self) -> frozenset[str]:
        """The files that it is in."""
        others = (self.letters, self.summary)
        refs = (*self.runs, *(ref for ref in others if ref is not None))
        return frozenset(ref.segment for ref in refs if ref.segment is not None)

    def text(self) -> str:
        """Return what a task sends to the driver."""
        letters, summary = (
            None if ref is None else ref.to_json() for ref in (self.letters, self.summary)
        )
        return json.dumps(
            {
                "covers": [[*map(_plain, covered.range), *covered[1:]] for covered in self.covers],
                "runs": [ref.to_json() for ref in self.runs],
                "letters": letters,
                "bytes": self.bytes,
                "errors": self.errors,
                "fault": self.fault,
                "is_rows": self.is_rows,
                "summary": summary,
            }
        )

    @classmethod
    def from_text(cls, text: str) -> Piece:
        """Read what a task has sent."""
        sent = json.loads(text)
        letters, summary = (
            None if ref is None else RunRef.from_json(ref)
            for ref in (sent["letters"], sent["summary"])
        )
        return cls(
            tuple(
                Covered(Range(part, start, stop, Timestamp(time)), *counts)
                for part, start, stop, time, *counts in sent["covers"]
            ),
            tuple(map(RunRef.from_json, sent["runs"])),
            letters, sent["bytes"], sent["errors"], sent["fault"], sent["is_rows"], summary,
        )  # fmt: skip


def _plain(value: int | str) -> int | str:
    return value if isinstance(value, str) else int(value)


class Cut(NamedTuple):
    """Records that become a piece, range by range, and the fault after them."""

    records: tuple[tuple[Range, tuple[pa.RecordBatch, ...]], ...]
    fault: str | None = None


class Cutter:
    """Cuts what is read of spans; ``stops`` is the column in which a fault ends the reading."""

    def __init__(self, most: int, stops: int | None = None) -> None:
        self._most = most
        self._stops = stops
        self._done: list[tuple[Range, tuple[pa.RecordBatch, ...]]] = []
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._size = 0

    def cuts(self, read: Read, ranges: Iterable[Range]) -> Iterator[Cut]:
        """Yield all pieces of what is read of some ranges."""
        for group in _groups(ranges):
            waiting = deque(group)
            rest = waiting.popleft()
            for found in read([rest._replace(stop=group[-1].stop)]):
                batch, fault = self._before_fault(found)
                offsets = batch.column(1).to_numpy()
                while batch.num_rows:
                    here = int(np.searchsorted(offsets[-batch.num_rows :], rest.stop))
                    if not here:
                        self._end(rest, rest.stop)
                        rest = waiting.popleft()
                        continue
                    if self._is_full:
                        rest = self._end(rest, _beyond(self._batches, rest.start))
                        yield self._cut()
                    count = whole_rows(batch.slice(0, here), self._most - self._rows)
                    self._add(batch.slice(0, count))
                    batch = batch.slice(count)
                if fault is not None:
                    at, text = fault
                    while at >= rest.stop:
                        self._end(rest, rest.stop)
                        rest = waiting.popleft()
                    self._end(rest, at)
                    yield self._cut(text)
                    return
            for left in (rest, *waiting):
                self._end(left, left.stop)
        if self._done:
            yield self._cut()

    @property
    def _is_full(self) -> bool:
        return self._rows >= self._most or self._size >= PIECE_BYTES

    def _before_fault(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, tuple[int, str] | None]:
        """Return the records before the first with a fault, its position and what it says."""
        if self._stops is None:
            return batch, None
        codes = batch.column(self._stops)
        if codes.null_count == len(codes):
            return batch, None
        at = int(np.flatnonzero(codes.is_valid().to_numpy(zero_copy_only=False))[0])
        text = batch.column(self._stops + 1)[at].as_py()
        return batch.slice(0, at), (batch.column(1)[at].as_py(), text)

    def _add(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._size += batch.nbytes

    def _end(self, rest: Range, stop: int) -> Range:
        """End a range; return what comes after."""
        if stop > rest.start:
            self._done.append((rest._replace(stop=stop), tuple(self._batches)))
        self._batches = []
        return rest._replace(start=stop)

    def _cut(self, fault: str | None = None) -> Cut:
        made, self._done = tuple(self._done), []
        self._rows = self._size = 0
        return Cut(made, fault)


def _groups(ranges: Iterable[Range]) -> list[list[Range]]:
    """Return ranges that follow one another together: they are read in one go."""
    made: list[list[Range]] = []
    for span in ranges:
        last = made[-1][-1] if made else None
        if last is not None and (last.part, last.stop) == (span.part, span.start):
            made[-1].append(span)
        else:
            made.append([span])
    return made


def _beyond(batches: Sequence[pa.RecordBatch], start: int) -> int:
    """Return the position after the last record; ``start`` if there is none."""
    return int(batches[-1].column(1)[-1].as_py()) + 1 if batches else start


def whole_rows(batch: pa.RecordBatch, most: int) -> int:
    """Return how many rows to take of a batch: ``most``, and what else its last position has."""
    size: int = batch.num_rows
    parts, offsets = batch.column(0), batch.column(1)
    while 0 < most < size and (parts[most], offsets[most]) == (parts[most - 1], offsets[most - 1]):
        most += 1
    return min(most, size)


def contiguous(
    pieces: Iterable[Piece], begun: Mapping[int | str, int]
) -> tuple[list[Piece], list[Piece]]:
    """Return the pieces that follow ``begun`` and one another, in order, and all others."""
    reached = dict(begun)
    found: list[Piece] = []
    others: list[Piece] = []
    for piece in pieces:
        after: dict[int | str, int] = {}
        follows = True
        for part, start, stop, _ in (covered.range for covered in piece.covers):
            follows = follows and after.get(part, reached.get(part, 0)) == start
            after[part] = stop
        (found if follows else others).append(piece)
        if follows:
            reached |= after
    return found, others
