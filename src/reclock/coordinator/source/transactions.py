"""What a source has read of transactions that are not published yet, and which are whole.

What is released, and what waits, is defined in ``change.transactions``; this is the same step by
step, over batches of the envelope ``transactions``. A transaction has a *number*, its rank
in the consistency topic, from the first mention on; its rows are published, in one piece,

    strict      at its number, when it and all before it are complete
    complete    at the next time there is, when it is complete itself and holds no key back

or, if the source is reclocked, at the time of the tick that finds them releasable (``at``). Rows
that name no transaction, and records that do not decode, come with the next that is released.

Which mention is a repetition depends on the consistency topic alone, so that all sources of a
topic count alike: it is one if the transaction has not ended, or is among the last ``REMEMBERED``
that were mentioned. Therefore those are kept by number and id, as DONE, when they are released. A
row of one of them is a repetition; if that cannot be, because there are more than were counted,
the source contradicts itself: ``ConflictingStatements``.

Cost: an offer looks at what waits, and at ``REMEMBERED`` ids; what was released before leaves
nothing behind (P5). Tests: tests/coordinator/source/test_transactions.py.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.change.transactions import REMEMBERED
from reclock.connectors.transactions import END
from reclock.coordinator.arrangements import FIRST
from reclock.coordinator.source.waiting import Offer, changed, concat
from reclock.dataflow import delta as deltas
from reclock.dataflow.envelope import DEBEZIUM, TRANSACTIONS, envelope_columns, envelope_fields
from reclock.errors import ConflictingStatements
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from reclock.dataflow.delta import Types

    Int64s = NDArray[np.int64]

DONE: Final = "DONE"
_LOOSE: Final = -1
"""The code of rows that belong to no transaction."""

_POSITION: Final = "position_1"


class Known(NamedTuple):
    """A transaction that waits, for those who ask: what it has, and what it lacks."""

    number: int | None
    id: str
    state: str
    rows: int
    counted: int | None


@dataclass
class _Open:
    """A transaction that is not released; ``code`` is what its rows are marked with."""

    id: str
    code: int
    number: int | None = None
    ended: bool = False
    count: int | None = None
    collections: str = ""
    arrived: int = 0
    places: set[int] = field(default_factory=set)

    @property
    def is_complete(self) -> bool:
        return self.ended and self.arrived == (self.count or 0)

    @property
    def is_overfull(self) -> bool:
        return self.ended and self.count is not None and self.arrived > self.count

    @property
    def lacks(self) -> str | None:
        """Say what it waits for."""
        name = f'transaction "{self.id:.60}"'
        if self.number is None:
            return f"{name} has {self.arrived} rows, but neither BEGIN nor END"
        if not self.ended:
            return f"{name} has no END"
        if self.count is None and self.arrived:
            listed = self.collections or "none"
            return (
                f"{name} has {self.arrived} rows here, but its END counts those of {listed} alone"
            )
        missing = (self.count or 0) - self.arrived
        return f"{name} lacks {missing} of {self.count} rows" if missing else None


class _Done(NamedTuple):
    """A transaction that was released, and how many rows it had."""

    number: int
    id: str
    rows: int


@dataclass(frozen=True)
class _Part:
    """Some statements, and of each the code of its transaction."""

    rows: pa.RecordBatch
    codes: Int64s
    mentions: bool = False

    @property
    def size(self) -> int:
        """In bytes; what is said of transactions does not count: rows are read to make it less."""
        return 0 if self.mentions else self.rows.nbytes

    @property
    def loose(self) -> NDArray[np.bool_]:
        made: NDArray[np.bool_] = self.codes == _LOOSE
        return made

    def filter(self, keep: NDArray[np.bool_]) -> _Part:
        return _Part(self.rows.filter(pa.array(keep)), self.codes[keep], self.mentions)


@dataclass(frozen=True)
class Release(Offer):
    """An offer of transactions: which they are, and which are remembered then, or no more."""

    released: tuple[_Open, ...] = ()
    remembered: tuple[_Done, ...] = ()
    forgotten: tuple[_Done, ...] = ()
    reach: int = 0
    """All transactions before this number are released with it."""


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
        *,
        strict: bool = True,
        base: int = 0,
        remembered: int = REMEMBERED,
    ) -> None:
        self.upper = upper
        self._row = row
        self._key = key
        self._strict = strict
        self._remembered = remembered
        self._last = base
        self._open: dict[str, _Open] = {}
        self._numbered: dict[int, _Open] = {}
        self._done: dict[str, _Done] = {}
        self._by_number: list[_Done] = []
        self._recent: dict[str, int] = {}
        self._codes = 0
        self._kept: list[_Part] = []  # of which there is a durable copy
        self._fresh: list[_Part] = []
        self._wrong: ConflictingStatements | None = None
        self._fault: str | None = None
        self.size = 0
        """Of all rows that wait, in bytes."""
        found = concat([*durable])
        if found is not None:
            self._kept = [part for some in self._in_order(found) for part in self._noted(some)]

    def _in_order(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return what is said of transactions, as it came, and rows."""
        said = self._columns(rows)
        data = said["status"].is_null()
        number = said["number"].fill_null(0).to_numpy()
        ends = [status == END for status in said["status"].to_pylist()]
        order = pa.array(np.lexsort([said["order"].fill_null(0).to_numpy(), ends, number]))
        mentions = rows.take(order).filter(pc.invert(data).take(order))
        return mentions, rows.filter(data)

    def _columns(self, rows: pa.RecordBatch) -> Mapping[str, pa.Array]:
        return envelope_columns(TRANSACTIONS, self._row, rows)

    # What comes in.

    def add(self, rows: pa.RecordBatch) -> None:
        """Take statements in; repetitions say nothing new."""
        self._fresh += self._noted(rows)

    def _noted(self, rows: pa.RecordBatch) -> Iterator[_Part]:
        said = self._columns(rows)
        if said["status"].null_count == rows.num_rows:
            part = self._rows(rows, said)
        else:
            part = self._mentions(rows, said)
        if len(part.codes):
            self.size += part.size
            yield part

    def _rows(self, rows: pa.RecordBatch, said: Mapping[str, pa.Array]) -> _Part:
        codes = np.full(rows.num_rows, _LOOSE, np.int64)
        keep = np.ones(rows.num_rows, np.bool_)
        stated = (said[name].to_pylist() for name in ("transaction", "total_order"))
        of_table = said["collection_order"]
        for at, (name, place) in enumerate(zip(*stated, strict=True)):
            if name is None:
                continue
            if (done := self._done.get(name)) is not None:
                keep[at] = False
                self._check_repeated(done, of_table[at].as_py())
                continue
            entry = self._entry(name)
            if place is not None and place in entry.places:
                keep[at] = False
                continue
            if place is not None:
                entry.places.add(place)
            entry.arrived += 1
            codes[at] = entry.code
        if said["code"].null_count < rows.num_rows and self._fault is None:
            self._fault = next(text for text in said["message"].to_pylist() if text is not None)
        part = _Part(rows, codes)
        return part if keep.all() else part.filter(keep)

    def _check_repeated(self, done: _Done, place: int | None) -> None:
        """Refuse a row of a released transaction that cannot have been among its rows."""
        if done.rows and (place is None or place <= done.rows):
            return
        message = f'transaction "{done.id}" was complete with {done.rows} rows, and has more'
        detail = "its END counted no other rows of this source"
        self._wrong = self._wrong or ConflictingStatements(message, detail=detail)

    def _mentions(self, rows: pa.RecordBatch, said: Mapping[str, pa.Array]) -> _Part:
        """Note what is said of transactions, giving them numbers."""
        names = ("transaction", "status", "number", "count", "collections", "message")
        codes = np.full(rows.num_rows, _LOOSE, np.int64)
        keep = np.ones(rows.num_rows, np.bool_)
        numbers: list[int | None] = []
        stated = zip(*(said[name].to_pylist() for name in names), strict=True)
        for at, (name, status, known, count, listed, message) in enumerate(stated):
            number: int | None = None
            if status == DONE:
                self._remember(_Done(known, name, count))
                self._note(name, known)
                keep[at] = False
            elif status is None:
                self._fault = self._fault or message
            else:
                number = self._mentioned(name, known, count, listed, ends=status == END)
                keep[at] = number is not None
            if keep[at] and number is not None:
                codes[at] = self._open[name].code
            numbers.append(number)
        place_of = len(self._row) + [
            f.name for f in envelope_fields(TRANSACTIONS, self._row)
        ].index("number")
        column = pa.array(numbers, pa.int64())
        rows = rows.set_column(place_of, rows.schema.names[place_of], column)
        return _Part(rows, codes, mentions=True).filter(keep)

    def _mentioned(
        self, name: str, known: int | None, count: int | None, listed: str | None, *, ends: bool
    ) -> int | None:
        """Return the number of a transaction that is mentioned; None if that is a repetition."""
        entry = self._open.get(name)
        begun = entry is not None and entry.number is not None and not entry.ended
        if begun and known is None and not ends:
            return None
        if not begun:
            if known is None and name in self._recent:
                return None
            if entry is not None and entry.number is not None:
                message = f'transaction "{name}" is mentioned anew, before it was complete'
                self._wrong = self._wrong or ConflictingStatements(message)
                return None
            entry = self._entry(name)
            entry.number = self._last + 1 if known is None else known
            self._numbered[entry.number] = entry
            self._note(name, entry.number)
        assert entry is not None
        if ends:
            entry.ended, entry.count, entry.collections = True, count, listed or ""
        return entry.number

    def _entry(self, name: str) -> _Open:
        entry = self._open.get(name)
        if entry is None:
            entry = self._open[name] = _Open(name, self._codes)
            self._codes += 1
        return entry

    def _note(self, name: str, number: int) -> None:
        """Know a transaction as one of the last that were mentioned."""
        self._last = max(self._last, number)
        self._recent[name] = number
        while self._recent and next(iter(self._recent.values())) <= self._last - self._remembered:
            del self._recent[next(iter(self._recent))]

    def _remember(self, done: _Done) -> None:
        self._done[done.id] = done
        insort(self._by_number, done)

    # What can be published.

    @property
    def reach(self) -> int:
        """The first number that is not released, and cannot be now."""
        number = self._next
        while (entry := self._numbered.get(number)) is not None and entry.is_complete:
            number += 1
        return number

    @property
    def _next(self) -> int:
        """The first number that is not released."""
        return min(self._numbered, default=self._last + 1)

    def offer(self, limit: int | None, most: int, at: Timestamp | None = None) -> Release | None:
        """Return what can be released of the transactions before number ``limit``.

        About ``most`` rows, but one transaction at the least. With ``at`` all of it is published
        at that time, rows without a transaction also if they are alone.
        """
        if self._wrong is not None:
            raise self._wrong
        released = self._in_turn(limit, most) if self._strict else self._complete(most)
        if not released and (at is None or not self._loose):
            self._check_overfull()
            return None
        self._fresh = _joined(self._fresh)
        least = max(int(self.upper), int(FIRST))
        numbers = [entry.number or 0 for entry in released]
        if at is not None:
            times, upper = [int(at)] * len(released), at.step()
        elif self._strict:
            times, upper = numbers, Timestamp(numbers[-1] + 1)
        else:
            times, upper = [*range(least, least + len(released))], Timestamp(least + len(released))
        codes = np.array([entry.code for entry in released], np.int64)
        order = np.argsort(codes)
        first = times[0] if at is None else int(at)
        closed = self._closed(codes[order], np.array(times, np.int64)[order], first)
        cut = self._last - self._remembered
        done = (_Done(entry.number or 0, entry.id, entry.arrived) for entry in released)
        remembered = tuple(some for some in done if some.number > cut)
        forgotten = tuple(takewhile(lambda some: some.number <= cut, self._by_number))
        gone = [p.rows.filter(pa.array(_released(p, codes))) for p in self._kept]
        come = [p.rows.filter(pa.array(~_released(p, codes))) for p in self._fresh]
        waiting = changed(
            [*gone, self._done_rows(forgotten)], [*come, self._done_rows(remembered)],
            int(upper) - 1,
        )  # fmt: skip
        return Release(
            upper, False, closed, waiting, len(self._fresh), tuple(released), remembered,
            forgotten, max([self._next, *(number + 1 for number in numbers)]),
        )  # fmt: skip

    def _in_turn(self, limit: int | None, most: int) -> list[_Open]:
        found: list[_Open] = []
        number, rows = self._next, 0
        while (entry := self._numbered.get(number)) is not None and entry.is_complete:
            rows += entry.arrived
            if (limit is not None and number >= limit) or (found and rows > most):
                break
            found.append(entry)
            number += 1
        return found

    def _complete(self, most: int) -> list[_Open]:
        whole = [self._numbered[n] for n in sorted(self._numbered)]
        whole = [entry for entry in whole if entry.is_complete]
        if not whole:
            return []
        self._fresh = _joined(self._fresh)
        blocked = self._blocked({entry.code for entry in whole})
        found, rows = list[_Open](), 0
        for entry in whole:
            if entry.code in blocked:
                continue
            rows += entry.arrived
            if found and rows > most:
                break
            found.append(entry)
        return found

    def _blocked(self, complete: set[int]) -> set[int]:
        """Return the transactions with a row whose key has an earlier row that must wait."""
        keys, partitions, orders, codes = [], [], [], []
        for part in (*self._kept, *self._fresh):
            said = self._columns(part.rows)
            data = part.codes >= 0
            data &= said["status"].is_null().to_numpy(zero_copy_only=False)
            width = len(self._row)
            old = data & said["has_before"].fill_null(False).to_numpy(zero_copy_only=False)
            for which, begin in ((data, 0), (old, width)):
                here = pa.array(np.flatnonzero(which))
                row = [part.rows.column(begin + at).take(here) for at in self._key]
                keys.append(deltas.key_hash(row, len(here)))
                partitions.append(said["partition"].take(here).to_numpy(zero_copy_only=False))
                orders.append(said["order"].take(here).to_numpy())
                codes.append(part.codes[which])
        if not codes:
            return set()
        key, partition, order, code = map(np.concatenate, (keys, partitions, orders, codes))
        by = np.lexsort([order, partition, key])
        same = (key[by][1:] == key[by][:-1]) & (partition[by][1:] == partition[by][:-1])
        follows = {(a, b) for a, b in zip(code[by][:-1][same].tolist(), code[by][1:][same].tolist(),
                                          strict=True) if a != b}  # fmt: skip
        blocked = set(code.tolist()) - complete
        while more := {b for a, b in follows if a in blocked} - blocked:
            blocked |= more
        return blocked

    def _check_overfull(self) -> None:
        """Refuse a transaction that has more rows than it counted, if nothing else is to do."""
        for number in sorted(self._numbered):
            entry = self._numbered[number]
            if entry.is_overfull:
                message = f'transaction "{entry.id}" has more rows than its END counts'
                detail = f"{entry.arrived} rows, counted {entry.count}"
                raise ConflictingStatements(message, detail=detail)
            if self._strict and not entry.is_complete:
                return

    def _closed(self, codes: Int64s, times: Int64s, first: int) -> pa.RecordBatch | None:
        """Return the delta of released rows; ``codes`` are sorted."""
        made = []
        for part in (*self._kept, *self._fresh):
            which = _released(part, codes)
            said = self._columns(part.rows)
            which &= said["status"].is_null().to_numpy(zero_copy_only=False)
            if not which.any():
                continue
            found = part.filter(which)
            when = np.full(len(found.codes), first, np.int64)
            if len(codes):
                at = np.minimum(np.searchsorted(codes, found.codes), len(codes) - 1)
                when = np.where(found.loose, first, times[at])
            columns = self.taken_in(found.rows.columns)
            made.append(deltas.build(columns, when, np.ones(len(when), np.int64)))
        return deltas.union(made) if made else None

    def taken_in(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Return of the columns of statements those of the envelope debezium.

        Released out of turn, rows are not in the order of their database's log.
        """
        width = len(self._row)
        fields = [f.name for f in envelope_fields(TRANSACTIONS, self._row)]
        made = []
        for f in envelope_fields(DEBEZIUM, self._row):
            column = columns[width + fields.index(f.name)]
            if f.name == _POSITION and not self._strict:
                column = pa.nulls(len(column), f.type)
            made.append(column)
        return [*columns[:width], *made]

    def _done_rows(self, some: Sequence[_Done]) -> pa.RecordBatch:
        fields = envelope_fields(TRANSACTIONS, self._row)
        given = {
            "order": [0] * len(some), "transaction": [d.id for d in some],
            "status": [DONE] * len(some), "number": [d.number for d in some],
            "count": [d.rows for d in some],
        }  # fmt: skip
        columns = [pa.nulls(len(some), kind) for kind in self._row]
        columns += [
            pa.array(given[f.name], f.type) if f.name in given else pa.nulls(len(some), f.type)
            for f in fields
        ]
        return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])

    def settle(self, upper: Timestamp, offer: Offer | None) -> None:
        """Forget what is published: an offer that is durable."""
        if upper <= self.upper:
            return
        self.upper = upper
        if not isinstance(offer, Release) or offer.upper != upper:
            return
        for entry in offer.released:
            del self._open[entry.id]
            del self._numbered[entry.number or 0]
        del self._by_number[: len(offer.forgotten)]
        for done in offer.forgotten:
            del self._done[done.id]
        for done in offer.remembered:
            self._remember(done)
        codes = np.array([entry.code for entry in offer.released], np.int64)
        kept = [*self._kept, *self._fresh[: offer.fresh]]
        left = (p.filter(~_released(p, codes)) for p in kept)
        whole = [p for p in left if len(p.codes)]
        self._fresh = self._fresh[offer.fresh :]
        self._kept = _joined(whole)
        self._fault = None
        self.size = sum(p.size for p in (*self._kept, *self._fresh))

    # What is shown.

    @property
    def _loose(self) -> int:
        """How many rows, or faults, belong to no transaction."""
        return sum(int(p.loose.sum()) for p in (*self._kept, *self._fresh))

    @property
    def waiting(self) -> int:
        """How many rows wait."""
        return self._loose + sum(entry.arrived for entry in self._open.values())

    @property
    def stated(self) -> int:
        """The number after the last that was mentioned."""
        return self._last + 1

    @property
    def latest(self) -> int | None:
        """Nothing: numbers are no times of a clock."""
        return None

    def waiting_for(self) -> str | None:
        """Say, for a person, what the next transaction lacks; None if nothing is open."""
        first = sorted(self._numbered)
        unknown = [e for e in self._open.values() if e.number is None]
        for entry in (*(self._numbered[n] for n in first), *unknown):
            if (lacks := entry.lacks) is not None:
                text = lacks if entry.number is None else f"number {entry.number}, {lacks}"
                return text if self._fault is None else f"{text}; a record is wrong: {self._fault}"
        if self._loose:
            return "rows without a transaction wait for the first that is complete"
        return None

    def known(self) -> Iterator[Known]:
        """Yield the transactions that wait, in order; last those that nothing is said of."""
        last = self._last + 1
        for entry in sorted(self._open.values(), key=lambda e: (e.number or last, e.id)):
            state = "unknown" if entry.number is None else "ended" if entry.ended else "begun"
            if state == "ended":
                state = "complete" if entry.is_complete else "ended"
            yield Known(entry.number, entry.id, state, entry.arrived, entry.count)


def _released(part: _Part, codes: Int64s) -> NDArray[np.bool_]:
    """Return which statements go when the transactions with these codes are released."""
    made: NDArray[np.bool_] = np.isin(part.codes, codes) | part.loose
    return made


def _joined(parts: list[_Part]) -> list[_Part]:
    """Return few parts: what waits long is not looked at piece by piece."""
    made = []
    for mentions in (True, False):
        own = [part for part in parts if part.mentions == mentions]
        rows = concat([part.rows for part in own])
        if rows is not None:
            made.append(_Part(rows, np.concatenate([part.codes for part in own]), mentions))
    return made
