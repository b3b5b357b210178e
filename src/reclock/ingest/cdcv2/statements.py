"""The statements of a source about unpublished times, and the times that they close.

Definition. A *statement* is a row of the envelope ``materialize``: an update of a time, or how
many updates each time of an interval has. It concerns times up to its *last* one. Statements
come in any order, and again; at an upper U ::

    closable   the first time t ≥ U that is not covered without a gap, or whose counted
               updates are not all here, each counted once however often it came
    closed     the updates of the times in [U, closable), each once
    waiting    the statements whose last time is at or beyond closable

An ``Offer`` (``waiting``) is that of one moment. A restarted process that reads what waits, and
goes on where reading stood, makes the same offers (P2).

A record that does not decode, a *fault*, is of the first time that is open when it comes, or when
the tick that is under way is published: it is published with it, and told at once (``faults``).

Updates that tasks have read wait in files (``staged_times``). What is to be published of them is
looked at in tasks first: an offer of such times is ``Unseen``, and ``seen`` makes it one that can
be published, or none.

Statements that cannot both be true raise ``ConflictingStatements`` when the time is closed that
they are about: nothing of it is published; at once, if it is complete (``closed_times``).
``change.cdcv2.reader`` says the same of open times, message by message, in plain Python.

Cost: an offer looks at all that waits, vectorised; what was published leaves nothing behind (P5).

Tests: tests/ingest/test_statements.py.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.change.cdcv2.coverage import END, Coverage
from reclock.change.cdcv2.message import Progress
from reclock.dataflow import delta as deltas
from reclock.dataflow.changes import Stamped
from reclock.dataflow.closing import hashes_of, two_diffs
from reclock.errors import ConflictingStatements
from reclock.ingest.cdcv2.closed_times import ClosedTimes
from reclock.ingest.cdcv2.offer import Closing, Unseen, summed
from reclock.ingest.cdcv2.staged_times import StagedUpdates
from reclock.ingest.waiting import changed, concat, faults_of
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from reclock.dataflow.closing import Found
    from reclock.ingest.cdcv2.closed_times import News
    from reclock.ingest.cdcv2.staged_times import StagedTimes
    from reclock.ingest.waiting import Offer, Where

    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]

_TIME, _DIFF, _LOWER, _UPPER, _COUNTS, _CODE, _MESSAGE = range(7)
"""Where the columns of a statement are, after those of the row."""

_ODD: Final = 0x9E3779B97F4A7C15
"""Spreads times over all hashes."""

_NEVER: Final = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class _Part:
    """Some statements, and of each the last time that it is about."""

    rows: pa.RecordBatch
    last: Int64s
    updates: Bools
    """Which are updates, or faults."""

    def filter(self, keep: Bools) -> _Part:
        mask = pa.array(keep)
        return _Part(self.rows.filter(mask), self.last[keep], self.updates[keep])

    @property
    def times(self) -> Int64s:
        """The times of the updates."""
        code = self.rows.column(self.rows.num_columns - 2)
        made: Int64s = self.last[self.updates & code.is_null().to_numpy(zero_copy_only=False)]
        return made


class Statements:
    """The statements about times from ``upper`` on; ``width`` is that of the row."""

    def __init__(
        self,
        upper: Timestamp,
        width: int,
        durable: Iterable[pa.RecordBatch] = (),
        held: Iterable[StagedTimes] = (),
    ) -> None:
        self.upper = upper
        self._closed = ClosedTimes(int(upper))
        self._wrong: ConflictingStatements | None = None
        self._width = width
        self._stated = Coverage(int(upper))
        self._kept: list[_Part] = []  # of which there is a durable copy
        self._fresh: list[_Part] = []
        self.size = 0
        """Of all that waits in memory, in bytes."""
        self.staged = StagedUpdates()
        """What waits in files."""
        self._filled_to: int | None = None
        for piece in held:
            self.staged.add(piece, int(upper))
        # What is remembered comes first: what waits is checked by it, in whichever batch it lies.
        for rows in [self._restored(batch) for batch in durable]:
            try:
                if (part := self._noted(rows)) is not None:
                    self._kept.append(part)
            except ConflictingStatements as error:  # is told with the next offer: this source ends
                self._wrong = error

    def _restored(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return durable statements without those that are what is remembered."""
        code, message = (rows.column(self._width + at) for at in (_CODE, _MESSAGE))
        own = pc.and_(message.is_valid(), code.is_null())
        known = rows.filter(own).columns[self._width :]
        columns = (known[at].to_pylist() for at in (_LOWER, _COUNTS, _MESSAGE))
        self._closed.restore(zip(*columns, strict=True))
        return rows.filter(pc.invert(own))

    def add(self, rows: pa.RecordBatch, where: Where | None = None) -> None:
        """Take statements in, ``where`` says from; repetitions of what is published say nothing."""
        self._filled_to = None
        if (part := self._noted(rows, where)) is not None:
            self._fresh.append(part)

    def add_piece(self, piece: StagedTimes) -> None:
        """Take updates in that tasks have read."""
        self._filled_to = None
        piece.check_late(int(self.upper), self._closed)
        self.staged.add(piece, int(self.upper))

    def offer(self, limit: int | None, most: int) -> Offer | None:
        """Return what can be published of the times before ``limit``; None if there is none.

        About ``most`` updates, but one time at the least.
        """
        if self._wrong is not None:
            raise self._wrong
        end = self._stated.end if limit is None else min(self._stated.end, limit)
        if end <= self.upper:
            return None
        parts = [*self._kept, *self._fresh]
        due = [p.filter((p.last < end) & p.updates) for p in parts]
        found = concat([p.rows for p in due if p.rows.num_rows])
        bounds = self._bounds(found, end)
        end = self._filled(bounds, end, most)
        if end > self.upper and self.staged.concerned(end):
            return self._unseen(found, bounds, end)
        closed = None
        if found is not None and end > self.upper:
            closed = found.filter(pa.array(self._times(found) < end))
            if not self._are_distinct(closed):
                closed = self._distinct(closed)
                end = self._filled(self._counted(closed), end, most)  # what came twice is not two
                closed = closed.filter(pa.array(self._times(closed) < end))
                self._check_diffs(closed)
            self._check_counts(closed)
        if end <= self.upper:
            return None
        upper = self._finite(end)
        news = self._closed.news(*self._hashed(closed))
        waiting = self._waiting(end, upper, news)
        published, fresh = self._published(closed), len(self._fresh)
        held, pieces = self.staged.held(end), frozenset(self.staged.pieces)
        complete = end == END
        return Closing(upper, complete, published, waiting, fresh, news, pieces, held=held)

    def _unseen(
        self, found: pa.RecordBatch | None, bounds: tuple[Int64s, Int64s], end: int
    ) -> Unseen:
        """Return an offer of times before ``end``, some of whose updates are in files."""
        upper, faults, others = self._finite(end), None, None
        if found is not None:
            found = found.filter(pa.array(self._times(found) < end))
            wrong = found.column(self._width + _CODE).is_valid()
            faults = self._distinct(found.filter(wrong))
            some = found.filter(pc.invert(wrong))
            if some.num_rows:
                row, diff = some.columns[: self._width], some.column(self._width + _DIFF)
                others = (row, diff, self._times(some))
        here = bounds[0] < end
        times, most = (numbers[here].tolist() for numbers in bounds)
        counts = {t: n for t, n in sorted(self._stated.counts.items()) if t < end}
        return Unseen(
            upper, end == END, self._published(faults), None, len(self._fresh),
            self._closed.news_of(()), frozenset(self.staged.pieces),
            lower=int(self.upper), end=end, concerned=self.staged.concerned(end), others=others,
            bounds=dict(zip(times, most, strict=True)), counts=counts,
            remembered=self._closed.remembering(counts.items()),
            gone=tuple(p.rows.filter(pa.array(p.last < end)) for p in self._kept),
            come=tuple(p.rows.filter(pa.array(p.last >= end)) for p in self._fresh),
            held=self.staged.held(end),
        )  # fmt: skip

    def seen(self, offer: Unseen, found: Found) -> Offer | None:
        """Return an offer that can be published, by what was found of its updates.

        None: not so, as updates came twice; what is known now is noted. What cannot be true is
        raised.
        """
        if offer.lower != self.upper:
            return None
        self._filled_to = None
        lacking = [t for t, count in offer.counts.items() if found.counts.get(t, 0) < count]
        if lacking:
            exact = ((t, most - found.counts.get(t, 0)) for t, most in offer.bounds.items())
            self.staged.lower({time: much for time, much in exact if much})
            return None
        if found.two_diffs is not None:
            raise found.two_diffs
        for time, count in sorted(found.counts.items()):
            self._check_count(time, count, offer.counts.get(time, 0))
        if found.taken_away is not None:
            raise found.taken_away
        news = self._closed.counted(offer.counts.items(), found.hashes)
        schema = (*offer.gone, *offer.come)[0].schema  # progress was said
        waiting = changed(
            [*offer.gone, self._remembered(schema, news.gone)],
            [*offer.come, self._remembered(schema, news.come)],
            int(offer.upper) - 1,
        )
        runs = tuple(Stamped(ref, is_rows=True) for ref in found.refs)
        return Closing(
            offer.upper, offer.complete, offer.closed, waiting, offer.fresh, news, offer.pieces,
            runs=runs, held=offer.held,
        )  # fmt: skip

    def settle(self, upper: Timestamp, offer: Offer | None) -> None:
        """Forget what is published before ``upper``; an offer that is durable was that."""
        if upper <= self.upper:
            return
        self._filled_to = None
        published = offer if isinstance(offer, Closing) and offer.upper == upper else None
        known = 0 if published is None else published.fresh
        kept, fresh = [*self._kept, *self._fresh[:known]], self._fresh[known:]
        self.upper = upper
        fresh = [self._delayed(part) for part in fresh]
        if published is not None:
            self._closed.settle(published.news)
            self._check_fresh(fresh, self.staged.unknown(published.pieces))
        else:  # what was published is not known here
            before = self._closed
            self._closed = ClosedTimes(
                int(upper), unchecked=before.unchecked, uncounted=before.uncounted
            )
        self._stated.forget(int(upper))
        self.staged.settle(int(upper))
        self._kept = [p for p in (p.filter(p.last >= upper) for p in kept) if len(p.last)]
        self._fresh = [p for p in (p.filter(p.last >= upper) for p in fresh) if len(p.last)]
        self.size = sum(p.rows.nbytes for p in (*self._kept, *self._fresh))

    def _delayed(self, part: _Part) -> _Part:
        """Return statements with their faults dated again: the time that was open is published."""
        code = part.rows.column(self._width + _CODE)
        fault = code.is_valid().to_numpy(zero_copy_only=False)
        if not (fault & (part.last < self.upper)).any():
            return part
        last = np.where(fault, np.maximum(part.last, int(self.upper)), part.last)
        return _Part(self._dated(part.rows, last), last, part.updates)

    def _check_fresh(self, parts: Iterable[_Part], pieces: Iterable[StagedTimes]) -> None:
        """Note what came after an offer, and is not true since this is published."""
        try:
            for part in parts:
                self._check_late(part.rows, part.last, part.updates)
            for piece in pieces:
                piece.check_late(int(self.upper), self._closed)
        except ConflictingStatements as error:
            self._wrong = error

    def taken_in(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Return of the columns of statements those of the envelope none."""
        return [*columns[: self._width], *columns[-2:]]

    @property
    def waiting(self) -> int:
        """How many updates wait."""
        return sum(len(p.times) for p in (*self._kept, *self._fresh)) + self.staged.waiting

    @property
    def backlog(self) -> int:
        """How many updates wait in files at times that can be closed."""
        if not self.staged.pieces:
            return 0
        if self._filled_to is None:
            end = self._stated.end
            due = [p.filter((p.last < end) & p.updates) for p in (*self._kept, *self._fresh)]
            found = concat([p.rows for p in due if p.rows.num_rows])
            self._filled_to = self._filled(self._bounds(found, end), end, _NEVER)
        return self.staged.rows_before(self._filled_to)

    @property
    def faults(self) -> list[tuple[str, str]]:
        """The records that do not decode, and are not published yet."""
        parts = (*self._kept, *self._fresh)
        return faults_of((p.rows.column(-2), p.rows.column(-1)) for p in parts)

    @property
    def unchecked(self) -> tuple[int, int]:
        """How many updates, and counts, of complete times came too late to be compared."""
        return self._closed.unchecked, self._closed.uncounted

    @property
    def stated(self) -> int:
        """Up to where progress is stated without a gap."""
        return self._stated.end

    @property
    def latest(self) -> int | None:
        """The last time that is spoken of, short of all times; None if none is."""
        last = [int(p.last[p.last < _NEVER].max(initial=-1)) for p in (*self._kept, *self._fresh)]
        found = max([self.staged.latest, *last])
        return None if found < 0 else found

    def waiting_for(self) -> str | None:
        """Say, for a person, what the next time lacks to be closed; None if nothing is open."""
        stated, waits = self._stated, self.waiting
        if stated.end == stated.upper:
            if not waits and stated.later is None:
                return None
            later = "" if stated.later is None else f"; it is stated from {stated.later} on"
            return f"no progress is stated for time {stated.upper}{later}"
        parts = [(p.times, np.ones(len(p.times), np.int64)) for p in (*self._kept, *self._fresh)]
        times, counts = summed([*parts, *self.staged.read])
        arrived = dict(zip(times.tolist(), counts.tolist(), strict=True))
        for time in sorted(stated.counts):
            if (missing := stated.counts[time] - arrived.get(time, 0)) > 0:
                return f"time {time} lacks {missing} of {stated.counts[time]} updates"
        return None

    def _check_late(
        self, rows: pa.RecordBatch, last: Int64s, updates: Bools, where: Where | None = None
    ) -> None:
        """Refuse updates of complete times that these do not have."""
        self._closed.unchecked += int((updates & (last < self._closed.floor)).sum())
        late = np.flatnonzero(updates & (last < self.upper) & (last >= self._closed.floor))
        some = rows.take(pa.array(late))
        if not len(late):
            return
        times, hashes = self._hashed(some)
        for n, (time, known) in enumerate(zip(times.tolist(), hashes.tolist(), strict=True)):
            with _told(where, int(late[n])):
                data = tuple(column[n].as_py() for column in some.columns[: self._width])
                self._closed.check_update(time, known, data)

    def _hashed(self, rows: pa.RecordBatch | None) -> tuple[Int64s, Int64s]:
        """Return the times and the hashes of updates; faults are none."""
        if rows is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        rows = rows.filter(rows.column(self._width + _CODE).is_null())
        diff = rows.column(self._width + _DIFF)
        return self._times(rows), hashes_of(rows.columns[: self._width], diff)

    def _noted(self, rows: pa.RecordBatch, where: Where | None = None) -> _Part | None:
        """Return statements with what they are about, progress being noted."""
        stated = rows.columns[self._width :]
        upper, lower, code = stated[_UPPER], stated[_LOWER], stated[_CODE]
        progress = lower.is_valid().to_numpy(zero_copy_only=False)
        last = stated[_TIME].fill_null(int(self.upper)).to_numpy().copy()
        if code.null_count < len(code):  # a fault is of the first time that is still open
            rows = self._dated(rows, last)
        for at in np.flatnonzero(progress).tolist():
            begin, end, counts = lower[at].as_py(), upper[at].as_py(), stated[_COUNTS][at].as_py()
            last[at] = _NEVER if end is None else end - 1
            said = _progress(begin, end, counts)
            with _told(where, at):
                known = {int(time): count for time, count in said.counts}
                before = int(self.upper) if end is None else min(end, int(self.upper))
                self._closed.check_counts(begin, before, known)
                self._stated.note(said)
        part = _Part(rows, last, ~progress)
        self._check_late(rows, last, part.updates, where)
        part = part.filter(last >= self.upper) if (last < self.upper).any() else part
        if not len(part.last):
            return None
        self.size += part.rows.nbytes
        return part

    def _dated(self, rows: pa.RecordBatch, last: Int64s) -> pa.RecordBatch:
        names = rows.schema.names
        progress = rows.column(self._width + _LOWER).is_valid()
        dated = pa.array(last, mask=progress.to_numpy(zero_copy_only=False))
        return rows.set_column(self._width + _TIME, names[self._width + _TIME], dated)

    def _times(self, rows: pa.RecordBatch) -> Int64s:
        times: Int64s = rows.column(self._width + _TIME).to_numpy(zero_copy_only=False)
        return times

    def _counted(self, rows: pa.RecordBatch | None) -> tuple[Int64s, Int64s]:
        """Return the times of updates in memory, and how many there are of each."""
        if rows is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        stated = rows.column(self._width + _CODE).is_null().to_numpy(zero_copy_only=False)
        times, arrived = np.unique(self._times(rows)[stated], return_counts=True)
        return times, arrived.astype(np.int64)

    def _bounds(self, rows: pa.RecordBatch | None, end: int) -> tuple[Int64s, Int64s]:
        """Return the times of updates before ``end``, and how many there are at most of each."""
        return summed([self._counted(rows), *self.staged.bounds(end)])

    def _filled(self, bounds: tuple[Int64s, Int64s], end: int, most: int) -> int:
        """Return how far up to ``end`` no time lacks updates, or there are too many."""
        counted = np.array(sorted(t for t in self._stated.counts if t < end), np.int64)
        wanted = np.array([self._stated.counts[t] for t in counted.tolist()], np.int64)
        times, arrived = bounds
        there = np.zeros(len(counted), np.int64)
        if len(times):
            at = np.minimum(np.searchsorted(times, counted), len(times) - 1)
            there = np.where(times[at] == counted, arrived[at], 0)
        lacking = np.flatnonzero(there < wanted)
        if len(lacking):
            end = int(counted[lacking[0]])
        beyond = np.flatnonzero(np.cumsum(wanted) > most)
        if len(beyond) and beyond[0] > 0:
            end = min(end, int(counted[beyond[0]]))
        return end

    def _finite(self, end: int) -> Timestamp:
        """Return an upper that is a time: after the last update, if there are no more."""
        if end < END:
            return Timestamp(end)
        return Timestamp(max([int(self.upper) + 1, *(t + 1 for t in self._stated.counts)]))

    def _are_distinct(self, rows: pa.RecordBatch) -> bool:
        """Return whether no two updates can be of the same data and time."""
        columns = [*rows.columns[: self._width], *rows.columns[-2:]]
        times = self._times(rows).astype(np.uint64) * np.uint64(_ODD)
        hashes = np.sort(deltas.key_hash(columns, rows.num_rows).view(np.uint64) ^ times)
        return not bool((hashes[1:] == hashes[:-1]).any())

    def _distinct(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return every update once."""
        of = [*range(self._width), self._width + _DIFF, self._width + _CODE, self._width + _MESSAGE]
        stated = rows.select(of).columns
        ones = np.ones(rows.num_rows, np.int64)
        made = deltas.consolidated(deltas.build(stated, self._times(rows), ones))
        columns = dict(zip(of, deltas.rows_of(made), strict=True))
        columns[self._width + _TIME] = made.column(made.num_columns - 2)
        whole = [
            columns.get(at, pa.nulls(made.num_rows, kind))
            for at, kind in enumerate(rows.schema.types)
        ]
        return pa.RecordBatch.from_arrays(whole, schema=rows.schema)

    def _check_counts(self, rows: pa.RecordBatch) -> None:
        """Refuse updates that are not counted."""
        times, arrived = self._counted(rows)
        for time, count in zip(times.tolist(), arrived.tolist(), strict=True):
            self._check_count(time, count, self._stated.counts.get(time, 0))

    @staticmethod
    def _check_count(time: int, count: int, wanted: int) -> None:
        if count > wanted:
            message = f"more updates are stated for time {time} than are counted"
            raise ConflictingStatements(message, detail=f"{count} updates, counted {wanted}")

    def _check_diffs(self, rows: pa.RecordBatch) -> None:
        """Refuse two updates of which only one can be true."""
        data = rows.filter(rows.column(self._width + _CODE).is_null())
        ones = np.ones(data.num_rows, np.int64)
        wrong = two_diffs(deltas.build(data.columns[: self._width], self._times(data), ones))
        if wrong is not None:
            raise wrong

    def _published(self, rows: pa.RecordBatch | None) -> pa.RecordBatch | None:
        """Return the delta of closed updates."""
        if rows is None or not rows.num_rows:
            return None
        stated = rows.columns[self._width :]
        columns = self.taken_in(rows.columns)
        return deltas.build(columns, self._times(rows), stated[_DIFF].fill_null(1))

    def _waiting(self, end: int, upper: Timestamp, news: News) -> pa.RecordBatch | None:
        """Return how the durable copy of what waits changes when times before ``end`` go."""
        gone = [p.rows.filter(pa.array(p.last < end)) for p in self._kept]
        come = [p.rows.filter(pa.array(p.last >= end)) for p in self._fresh]
        some = next((p.rows.schema for p in (*self._kept, *self._fresh)), None)
        if some is not None:  # nothing can be closed if nothing was said
            gone.append(self._remembered(some, news.gone))
            come.append(self._remembered(some, news.come))
        return changed(gone, come, int(upper) - 1)

    def _remembered(
        self, schema: pa.Schema, records: Sequence[tuple[int, str, str]]
    ) -> pa.RecordBatch:
        """Return what is remembered as statements."""
        times, counts, messages = zip(*records, strict=True) if records else ((), (), ())
        given = {
            _LOWER: times, _UPPER: [time + 1 for time in times],
            _COUNTS: counts, _MESSAGE: messages,
        }  # fmt: skip
        columns = [
            pa.array(given.get(at - self._width, [None] * len(records)), kind)
            for at, kind in enumerate(schema.types)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


@contextmanager
def _told(where: Where | None, at: int) -> Iterator[None]:
    """Say of an error from where the statement is that it is about."""
    try:
        yield
    except ConflictingStatements as error:
        if where is None:
            raise
        detail = f"{error.detail}; {where(at)}"
        raise ConflictingStatements(error.message, detail=detail) from error


def _progress(lower: int, upper: int | None, counts: str) -> Progress:
    """Return a statement of progress from its columns."""
    end: Antichain[Timestamp] = Antichain() if upper is None else Antichain.of(Timestamp(upper))
    pairs = tuple((Timestamp(time), count) for time, count in json.loads(counts))
    return Progress(Antichain.of(Timestamp(lower)), end, pairs)
