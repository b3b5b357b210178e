"""The ledger of a source's transactions: their numbers, arrived rows, and completeness.

A transaction has a *number*, its rank in the consistency topic, from its first mention on, by BEGIN
or END. Until it is released it is *open*: rows arrive, also before anything is said of it. It is
complete when it has ended and all rows that its END counts are there.

Which mention is a repetition depends on the consistency topic alone, so that all sources of a topic
count alike: it is one if the transaction has not ended, or is among the last ``remembered`` that
were mentioned. Therefore those are kept, as *done*, when they are released. A row of one of them is
a repetition too, as is one at a place of an open transaction that is taken; if that cannot be,
because there are more than were counted, the source contradicts itself.

Rows themselves are elsewhere (``rows``), marked with the *code* of their transaction.
Plain Python, no input or output. Tests: tests/ingest/test_transactions.py.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from reclock.errors import ConflictingStatements
from reclock.ingest.transactions.places import Places

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reclock.ingest.transactions.places import Bools, Int64s


class Known(NamedTuple):
    """A transaction that waits, for those who ask: what it has, and what it lacks."""

    number: int | None
    id: str
    state: str
    rows: int
    counted: int | None


@dataclass
class Open:
    """A transaction that is not released; ``code`` is what its rows are marked with."""

    id: str
    code: int
    number: int | None = None
    ended: bool = False
    count: int | None = None
    """How many rows of this source its END counts; None: it does not name them."""
    collections: str = ""
    arrived: int = 0
    places: Places = field(default_factory=Places)
    unplaced: int = 0
    """How many of its rows do not say their place."""

    @property
    def is_complete(self) -> bool:
        """Whether it can be released."""
        return self.ended and self.arrived == (self.count or 0)

    @property
    def lacks(self) -> str | None:
        """Say what it waits for; None if it is complete."""
        name = f'transaction "{self.id:.60}"'
        if self.number is None:
            return f"{name} has {self.arrived} rows, but neither BEGIN nor END"
        if not self.ended:
            return f"number {self.number}, {name} has no END"
        if self.count is None and self.arrived:
            counted = f"its END counts those of {self.collections or 'none'} alone"
            return f"number {self.number}, {name} has {self.arrived} rows here, but {counted}"
        missing = (self.count or 0) - self.arrived
        if not missing:
            return None
        return f"number {self.number}, {name} lacks {missing} of {self.count} rows"


class Done(NamedTuple):
    """A transaction that was released, and how many rows it had."""

    number: int
    id: str
    rows: int


class Ledger:
    """The transactions of one source; ``last`` is the number before the next."""

    def __init__(self, last: int, remembered: int) -> None:
        self.last = last
        self._remembered = remembered
        self._open: dict[str, Open] = {}
        self._numbered: dict[int, Open] = {}
        self._done: dict[str, Done] = {}
        self._by_number: list[Done] = []
        self._recent: dict[str, int] = {}
        self._codes = 0
        self._wrong: ConflictingStatements | None = None

    # What comes.

    def arrive(self, name: str, place: int | None, of_table: int | None) -> int | None:
        """Note a row of a transaction; return the code to mark it with, None: a repetition."""
        if (done := self._done.get(name)) is not None:
            if not done.rows or (of_table is not None and of_table > done.rows):
                message = f'transaction "{name}" was complete with {done.rows} rows, and has more'
                self._refuse(message, "its END counted no other rows of this source")
            return None
        entry = self._entry(name)
        if place is None:
            entry.unplaced += 1
        elif not entry.places.add(place):
            return None
        entry.arrived += 1
        return entry.code

    def arrive_all(self, name: str, places: Int64s, of_table: int | None) -> Bools | None:
        """Note rows of a transaction at some places; return which are new; None: all repeat."""
        if name in self._done:
            self.arrive(name, None, of_table)  # says what cannot be
            return None
        entry = self._entry(name)
        new = entry.places.add_all(places)
        entry.arrived += int(new.sum())
        return new

    def mention(
        self, name: str, known: int | None, count: int | None, listed: str | None, *, ends: bool
    ) -> int | None:
        """Note BEGIN or END; return the number, which may be known; None: a repetition."""
        entry = self._open.get(name)
        begun = entry is not None and entry.number is not None and not entry.ended
        if begun and known is None and not ends:
            return None
        if not begun:
            if known is None and name in self._recent:
                return None
            if entry is not None and entry.number is not None:
                message = f'transaction "{name}" is mentioned again, before it was complete'
                self._refuse(message, f"it has number {entry.number}")
                return None
            entry = self._entry(name)
            entry.number = self.last + 1 if known is None else known
            self._numbered[entry.number] = entry
            self._note(name, entry.number)
        assert entry is not None
        if ends:
            entry.ended, entry.count, entry.collections = True, count, listed or ""
        return entry.number

    def remember(self, done: Done) -> None:
        """Know a transaction as released."""
        self._done[done.id] = done
        insort(self._by_number, done)
        self._note(done.id, done.number)

    def code(self, name: str) -> int:
        """Return what rows of an open transaction are marked with."""
        return self._open[name].code

    def _entry(self, name: str) -> Open:
        entry = self._open.get(name)
        if entry is None:
            entry = self._open[name] = Open(name, self._codes)
            self._codes += 1
        return entry

    def _note(self, name: str, number: int) -> None:
        """Know a transaction as one of the last that were mentioned."""
        self.last = max(self.last, number)
        if number > self.last - self._remembered:
            self._recent.setdefault(name, number)
        while self._recent and next(iter(self._recent.values())) <= self.last - self._remembered:
            del self._recent[next(iter(self._recent))]

    def _refuse(self, message: str, detail: str) -> None:
        self._wrong = self._wrong or ConflictingStatements(message, detail=detail)

    def check(self) -> None:
        """Raise what was said that cannot be true."""
        if self._wrong is not None:
            raise self._wrong

    def check_overfull(self, *, strict: bool) -> None:
        """Refuse more rows than are counted, in the first transaction that waits, or in any."""
        for entry in self.numbered():
            if entry.ended and entry.count is not None and entry.arrived > entry.count:
                message = f'transaction "{entry.id}" has more rows than its END counts'
                detail = f"{entry.arrived} rows, counted {entry.count}"
                raise ConflictingStatements(message, detail=detail)
            if strict and not entry.is_complete:
                return

    # What can be released.

    @property
    def next(self) -> int:
        """The first number that is not released."""
        return min(self._numbered, default=self.last + 1)

    def next_without(self, released: Iterable[Open]) -> int:
        """Return the first number that is not released when these are."""
        gone = {entry.number for entry in released}
        return min(
            (number for number in self._numbered if number not in gone), default=self.last + 1
        )

    @property
    def reach(self) -> int:
        """The first number that is not released, and cannot be now, in order."""
        return self.next + sum(1 for _ in self.in_turn())

    def numbered(self) -> Iterator[Open]:
        """Yield the open transactions that were mentioned, in order."""
        return (self._numbered[number] for number in sorted(self._numbered))

    def rows_of(self, number: int) -> int:
        """Return how many rows there are of an open transaction."""
        entry = self._numbered.get(number)
        return 0 if entry is None else entry.arrived

    def is_released(self, number: int) -> bool:
        """Return whether a transaction was mentioned, and is not open any more."""
        return number <= self.last and number not in self._numbered

    def has_released_after(self, number: int) -> bool:
        """Return whether a transaction with a greater number was released."""
        return self.last - number > sum(1 for known in self._numbered if known > number)

    def in_turn(self) -> Iterator[Open]:
        """Yield the transactions up to the first that is not complete."""
        number = self.next
        while (entry := self._numbered.get(number)) is not None and entry.is_complete:
            yield entry
            number += 1

    def remembered(self, released: Iterable[Open]) -> tuple[tuple[Done, ...], tuple[Done, ...]]:
        """Return which are to be remembered when some are released, and which no more."""
        cut = self.last - self._remembered
        done = (Done(entry.number or 0, entry.id, entry.arrived) for entry in released)
        forgotten = takewhile(lambda some: some.number <= cut, self._by_number)
        return tuple(some for some in done if some.number > cut), tuple(forgotten)

    def release(
        self, released: Iterable[Open], remembered: Iterable[Done], forgotten: tuple[Done, ...]
    ) -> None:
        """Let transactions go that are durably published."""
        for entry in released:
            del self._open[entry.id]
            del self._numbered[entry.number or 0]
        del self._by_number[: len(forgotten)]
        for done in forgotten:
            del self._done[done.id]
        for done in remembered:
            self.remember(done)

    # What is shown.

    @property
    def arrived(self) -> int:
        """How many rows of open transactions there are."""
        return sum(entry.arrived for entry in self._open.values())

    def lacks(self) -> str | None:
        """Say what the first transaction lacks that lacks something; None if none does."""
        unknown = (entry for entry in self._open.values() if entry.number is None)
        found = (entry.lacks for some in (self.numbered(), unknown) for entry in some)
        return next((lacks for lacks in found if lacks is not None), None)

    def known(self) -> Iterator[Known]:
        """Yield the transactions that wait, in order; last those that nothing is said of."""
        last = self.last + 1
        for entry in sorted(self._open.values(), key=lambda e: (e.number or last, e.id)):
            state = "unknown" if entry.number is None else "ended" if entry.ended else "begun"
            if state == "ended" and entry.is_complete:
                state = "complete"
            yield Known(entry.number, entry.id, state, entry.arrived, entry.count)
