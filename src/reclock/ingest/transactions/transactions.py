"""The unpublished transactions of a source, and which of them are whole.

What is released, and what waits, is defined in ``change.transactions``; this is the same step by
step: the ``ledger`` knows transactions, ``rows`` has what was read of them, and
``staged_rows`` what tasks have read and left in files. The rows of a transaction are published in
one piece::

    strict      when it and all before it are complete
    complete    when it is complete itself and overtakes no key

at its number or, if the system gives the times, at that of the tick (``at``), which is told which
to release (``release``). Rows that name no transaction, and records that do not decode, come with
the next that is released. Which of two rows of a key is the later change is their transactions' to
say, and not that of the order in which they were read (``order``).

Cost: an offer looks at what waits; what was released before leaves nothing behind but the ids of
the last ``REMEMBERED`` (P5). Tests: tests/ingest/test_transactions.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reclock.change.transactions import REMEMBERED
from reclock.connectors.transactions import END
from reclock.ingest.transactions.ledger import Done, Ledger
from reclock.ingest.transactions.order import ranks
from reclock.ingest.transactions.passed import Passing
from reclock.ingest.transactions.rows import DONE, LOOSE, Columns, Part, joined, looked_up
from reclock.ingest.transactions.staged_rows import Going, StagedRows
from reclock.ingest.waiting import Offer, changed, concat, faults_of
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from reclock.dataflow.changes import Stamped
    from reclock.dataflow.delta import Types
    from reclock.ingest.transactions.ledger import Known, Open
    from reclock.ingest.transactions.order import Ranking
    from reclock.ingest.transactions.staged_piece import Bools, StagedPiece
    from reclock.ingest.waiting import Where

    Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class Release(Offer):
    """An offer of transactions: which they are, and which are remembered then, or no more."""

    released: tuple[Open, ...] = ()
    remembered: tuple[Done, ...] = ()
    forgotten: tuple[Done, ...] = ()
    reach: int = 0
    """All transactions before this number are released with it."""
    passed: pa.RecordBatch | None = None
    """The keys that were changed out of turn, then."""
    going: Going | None = None
    """What goes of the pieces that tasks have read."""


class Transactions:
    """The transactions of rows of these types that are not released at ``upper``.

    ``base`` is the number before the first; ``key`` are the columns of the row's key.
    """

    def __init__(
        self,
        upper: Timestamp,
        row: Types,
        key: tuple[int, ...] = (),
        durable: Iterable[pa.RecordBatch] = (),
        held: Iterable[StagedPiece] = (),
        *,
        strict: bool = True,
        base: int = 0,
        remembered: int = REMEMBERED,
    ) -> None:
        self.upper = upper
        self._columns = Columns(row, key)
        self._strict = strict
        self._ledger = Ledger(base, remembered)
        self._kept: list[Part] = []  # of which there is a durable copy
        self._fresh: list[Part] = []
        self._passed: pa.RecordBatch | None = None
        self.staged = StagedRows(self._columns, self._ledger)
        """What waits in files."""
        self.size = 0
        """Of all rows that wait, in bytes."""
        found = concat([*durable])
        if found is not None:
            *some, self._passed = self._columns.in_order(found)
            self._kept = [part for batch in some for part in self._noted(batch)]
        for piece in held:
            self.staged.add(piece)

    @property
    def _parts(self) -> tuple[Part, ...]:
        return (*self._kept, *self._fresh)

    # What comes in.

    def add(self, rows: pa.RecordBatch, where: Where | None = None) -> None:
        """Take statements in; repetitions say nothing new."""
        del where
        self._fresh += self._noted(rows)

    def add_piece(self, piece: StagedPiece) -> None:
        """Take rows in that tasks have read: by reference, unless something is wrong with them."""
        if piece.is_regular:
            self.staged.add(piece)
        else:
            self.add(piece.statements()[0])
            self.staged.spent += piece.piece.segments

    def _noted(self, rows: pa.RecordBatch) -> Iterator[Part]:
        said = self._columns.of(rows)
        rows_alone = said["status"].null_count == rows.num_rows
        part = self._rows(rows, said) if rows_alone else self._mentions(rows, said)
        if len(part.codes):
            self.size += part.size
            yield part

    def _rows(self, rows: pa.RecordBatch, said: Mapping[str, pa.Array]) -> Part:
        codes = np.full(rows.num_rows, LOOSE, np.int64)
        keep = np.ones(rows.num_rows, np.bool_)
        names = ("transaction", "total_order", "collection_order")
        stated = zip(*(said[name].to_pylist() for name in names), strict=True)
        for at, (name, place, of_table) in enumerate(stated):
            if name is None:
                continue
            code = self._ledger.arrive(name, place, of_table)
            if code is None:
                keep[at] = False
            else:
                codes[at] = code
        part = Part(rows, codes)
        return part if keep.all() else part.filter(keep)

    def _mentions(self, rows: pa.RecordBatch, said: Mapping[str, pa.Array]) -> Part:
        """Note what is said of transactions, giving them numbers."""
        names = ("transaction", "status", "number", "count", "collections")
        codes = np.full(rows.num_rows, LOOSE, np.int64)
        keep = np.ones(rows.num_rows, np.bool_)
        numbers: list[int | None] = [None] * rows.num_rows
        stated = zip(*(said[name].to_pylist() for name in names), strict=True)
        for at, (name, status, known, count, listed) in enumerate(stated):
            if status is None:
                continue  # it does not decode
            if status == DONE:
                self._ledger.remember(Done(known, name, count))
            else:
                numbers[at] = self._ledger.mention(name, known, count, listed, ends=status == END)
            keep[at] = numbers[at] is not None
            if keep[at]:
                codes[at] = self._ledger.code(name)
        return Part(self._columns.numbered(rows, numbers), codes, mentions=True).filter(keep)

    # What can be published.

    @property
    def ledger(self) -> Ledger:
        """What is known of the transactions."""
        return self._ledger

    @property
    def reach(self) -> int:
        """The first number that is not released, and cannot be now."""
        return self._ledger.reach

    def offer(
        self, limit: int | Container[int] | None, most: int, at: Timestamp | None = None
    ) -> Release | None:
        """Return what can be released: in order, before number ``limit``, or those in ``limit``.

        About ``most`` rows, but one transaction at the least. With ``at`` all of it is published
        at that time, rows without a transaction also if they are alone.
        """
        self._ledger.check()
        if self._strict:
            assert limit is None or isinstance(limit, int)
            released = self._some(self._ledger.in_turn(), limit, most)
        else:
            assert at is not None
            assert not isinstance(limit, int)
            released = self.free(limit)
        if not released and (at is None or not self.loose):
            self.check()
            return None
        self._fresh = joined(self._fresh)
        times = self._times(released, at)
        first = int(at) if at is not None else times[released[0].code]
        concerned, ranking = self._by_reference(released)
        upper = Timestamp(max([first, *times.values()]) + 1)
        codes = np.array(sorted(times), np.int64)
        remembered, forgotten = self._ledger.remembered(released)
        gone = [part.rows.filter(pa.array(part.released(codes))) for part in self._kept]
        come = [part.rows.filter(pa.array(~part.released(codes))) for part in self._fresh]
        gone.append(self._columns.done(forgotten))
        come.append(self._columns.done(remembered))
        found = self._columns.released(self._parts, codes)
        numbers = {entry.code: entry.number or 0 for entry in released}
        number = looked_up(found, codes, numbers, 0)
        passed = None
        if not self._strict:
            passed = self._pass(found, number, released, gone, come)
        if found is not None and self._passed is not None:
            found, number = Passing(self._columns).not_passed(found, number, self._passed)
        closed = None
        if found is not None:
            when = looked_up(found, codes, times, first)
            if ranking is None:
                order = ranks(self._columns.of(found.rows), number, found.loose)
            else:
                order = self.staged.ranks(ranking, released, found)
            closed = self._columns.closed(found, order, when, strict=self._strict)
        runs: tuple[Stamped, ...] = ()
        if ranking is not None:
            by_name = {entry.id: times[entry.code] for entry in released}
            runs = self.staged.stamped(concerned, by_name, ranking, first)
        going = self.staged.going(concerned)
        return Release(
            upper,
            complete=False,
            closed=closed,
            waiting=changed(gone, come, int(upper) - 1),
            fresh=len(self._fresh),
            released=tuple(released),
            remembered=remembered,
            forgotten=forgotten,
            reach=max([self._ledger.next, *((entry.number or 0) + 1 for entry in released)]),
            passed=passed,
            runs=runs,
            held=self.staged.held(going),
            going=going,
        )

    def _by_reference(
        self, released: Sequence[Open]
    ) -> tuple[list[tuple[StagedPiece, Bools]], Ranking | None]:
        """Return the pieces whose rows are released as they lie, and how all rows are ranked.

        None, and no pieces: by the order of all rows, which are in memory then.
        """
        concerned = self.staged.concerned(released)
        if not concerned:
            return [], None
        codes = np.array(sorted(entry.code for entry in released), np.int64)
        found = self._columns.released(self._parts, codes)
        ranking = self.staged.ranking(released, concerned, found)
        if ranking is None:
            for part in self.staged.unstaged(concerned):
                self._fresh.append(part)
                self.size += part.size
            self._fresh = joined(self._fresh)
            return [], None
        return concerned, ranking

    def _pass(
        self,
        found: Part | None,
        number: Int64s,
        released: Sequence[Open],
        gone: list[pa.RecordBatch],
        come: list[pa.RecordBatch],
    ) -> pa.RecordBatch:
        """Return which keys were changed out of turn when these are released, and note that."""
        least = self._ledger.next_without(released)
        before = self._columns.nothing if self._passed is None else self._passed
        kept, past, new = Passing(self._columns).passing(found, number, before, least)
        gone.append(past)
        come.append(new)
        return pa.concat_batches([kept, new])

    def check(self) -> None:
        """Raise what is wrong with transactions that cannot be released."""
        self._ledger.check()
        self._ledger.check_overfull(strict=self._strict)

    def free(self, among: Container[int] | None = None) -> list[Open]:
        """Return the transactions, of these numbers, that can be released out of turn."""
        complete = (entry for entry in self._ledger.numbered() if entry.is_complete)
        whole = [entry for entry in complete if among is None or entry.number in among]
        if not whole:
            return []
        self._fresh = joined(self._fresh)
        numbers = {entry.code: entry.number or 0 for entry in self._ledger.numbered()}
        blocked = self._columns.blocked(self._parts, {entry.code for entry in whole}, numbers)
        return [entry for entry in whole if entry.code not in blocked]

    def _some(self, entries: Iterable[Open], limit: int | None, most: int) -> list[Open]:
        """Return the first of them, as many as a tick takes."""
        found: list[Open] = []
        rows = 0
        for entry in entries:
            rows += entry.arrived
            if (limit is not None and (entry.number or 0) >= limit) or (found and rows > most):
                break
            found.append(entry)
        return found

    def _times(self, released: Sequence[Open], at: Timestamp | None) -> dict[int, int]:
        """Return at which time each transaction is published, by code."""
        return {entry.code: (entry.number or 0) if at is None else int(at) for entry in released}

    def taken_in(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Return of the columns of statements those of the envelope debezium."""
        return self._columns.taken_in(columns, strict=self._strict)

    def settle(self, upper: Timestamp, offer: Offer | None) -> None:
        """Forget what is published: an offer that is durable."""
        if upper <= self.upper:
            return
        self.upper = upper
        if not isinstance(offer, Release) or offer.upper != upper:
            return
        self._ledger.release(offer.released, offer.remembered, offer.forgotten)
        codes = np.array([entry.code for entry in offer.released], np.int64)
        known = [*self._kept, *self._fresh[: offer.fresh]]
        left = (part.filter(~part.released(codes)) for part in known)
        self._kept = joined([part for part in left if len(part.codes)])
        self._fresh = self._fresh[offer.fresh :]
        self._passed = offer.passed
        if offer.going is not None:
            self.staged.settle(offer.going)
        self.size = sum(part.size for part in self._parts)

    # What is shown.

    @property
    def loose(self) -> int:
        """How many rows, or faults, belong to no transaction."""
        return sum(int(part.loose.sum()) for part in self._parts) + self.staged.loose

    @property
    def waiting(self) -> int:
        """How many rows wait."""
        return self.loose + self._ledger.arrived

    @property
    def faults(self) -> list[tuple[str, str]]:
        """The records that do not decode, and are not published yet."""
        said = (self._columns.of(part.rows) for part in self._parts)
        return faults_of((some["code"], some["message"]) for some in said)

    @property
    def stated(self) -> int:
        """The number after the last that was mentioned."""
        return self._ledger.last + 1

    @property
    def latest(self) -> int | None:
        """Nothing: numbers are no times of a clock."""
        return None

    @property
    def backlog(self) -> int:
        """How many rows wait in files though there is something to release."""
        return self.staged.rows if self._ledger.reach > self._ledger.next else 0

    def waiting_for(self) -> str | None:
        """Say, for a person, what the next transaction lacks; None if nothing is open."""
        if (lacks := self._ledger.lacks()) is not None:
            return lacks
        if self.loose:
            return "rows without a transaction wait for the first that is complete"
        return None

    def known(self) -> Iterator[Known]:
        """Yield the transactions that wait, in order; last those that nothing is said of."""
        return self._ledger.known()
