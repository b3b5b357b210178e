"""From statements in any order, any number of times, to the collection, time by time.

``Reader.receive`` takes one message and returns what it closed: the updates of the times
that are complete now, and the new upper. It never closes a time before its progress is
stated contiguously from the start and all its counted updates are here; so a truncated
stream closes a prefix, and the rest of it closes the rest.

Statements cannot be taken back. Two that cannot both be true (another diff for the same
data and time, another count, more updates than counted) raise ``ConflictingStatements``,
which names them; the reader is then as it was before. Statements about closed times are
repetitions by the writer's promise, and are not looked at.

State: the upper; beyond it the covered intervals with their counts, and the updates; closed
times leave nothing behind (P5). It is exported as the statements that say the same, and
a reader restored from them continues as the first would have. Cost: O(log n) per update
for n open times, O(n) per progress statement.

Any order, duplication, truncation and restart: tests/change/test_cdcv2_reader.py.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reclock.change.cdcv2.message import Message, Progress, Updates
from reclock.change.value import sort_key
from reclock.errors import ConflictingStatements
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.change.update import Update

    Pending = dict[tuple[Any, ...], Update[Any, Timestamp]]

_END = Timestamp.greatest + 1
"""The closed frontier ``{}`` as a number: after every time."""


@dataclass(frozen=True, slots=True)
class Closed:
    """All updates in ``[lower, upper)``, sorted by time and data; more will not come."""

    lower: Antichain[Timestamp]
    upper: Antichain[Timestamp]
    updates: tuple[Update[Any, Timestamp], ...]


@dataclass(frozen=True, slots=True)
class ReaderState:
    """Everything a reader knows: the upper, and statements about times beyond it."""

    upper: Antichain[Timestamp]
    statements: tuple[Message, ...]


class Reader:
    """The receiving end of a CDCv2 stream.

    >>> from reclock.change.cdcv2.codec import decode
    >>> reader = Reader()
    >>> reader.receive(decode(
    ...     '{"progress": {"lower": [0], "upper": [5], "counts": [{"time": 3, "count": 1}]}}'))
    Closed(lower={0}, upper={3}, updates=())
    >>> reader.waiting_for()
    'time 3 lacks 1 of 1 updates'
    >>> closed = reader.receive(decode('{"array": [{"data": {"id": 7}, "time": 3, "diff": 1}]}'))
    >>> closed.upper, closed.updates
    ({5}, (Update(data={'id': 7}, time=Timestamp(3), diff=1),))
    """

    def __init__(self, lower: Antichain[Timestamp] | None = None) -> None:
        """Read from ``lower`` on, by default from the first time there is."""
        self._upper: int = 0 if lower is None else _number(lower)
        self._covered: list[tuple[int, int]] = []  # disjoint, not touching, sorted
        self._counts: dict[Timestamp, int] = {}  # of covered times, beyond upper
        self._counted: list[Timestamp] = []  # the same times, as a heap
        self._pending: dict[Timestamp, Pending] = {}

    @property
    def upper(self) -> Antichain[Timestamp]:
        """The times not closed yet; ``{}`` when nothing more will come."""
        return _frontier(self._upper)

    def receive(self, message: Message) -> Closed | None:
        """Take note of a message; return the interval it closed, if it closed one."""
        if isinstance(message, Updates):
            self._note_updates(message)
        else:
            self._note_progress(message)
        return self._close()

    def waiting_for(self) -> str:
        """Say, for a person, what the next time lacks to be closed."""
        if self._upper == _END:
            return "nothing: the collection is closed"
        if not self._covered or self._covered[0][0] > self._upper:
            later = f"; progress is stated from {self._covered[0][0]} on" if self._covered else ""
            return f"no progress statement covers time {self._upper}{later}"
        lacking = [t for t in self._counts if len(self._pending.get(t, {})) < self._counts[t]]
        first = min(lacking)
        count = self._counts[first]
        missing = count - len(self._pending.get(first, {}))
        more = f"; {len(lacking) - 1} later times lack updates too" if len(lacking) > 1 else ""
        return f"time {first} lacks {missing} of {count} updates{more}"

    def export(self) -> ReaderState:
        """Return the state as a value; readers in the same state export equal values."""
        progress = (
            Progress(
                _frontier(low),
                _frontier(high),
                tuple((t, n) for t, n in self._counts.items() if low <= t < high),
            )
            for low, high in self._covered
        )
        updates = tuple(u for time in sorted(self._pending) for u in self._in_order(time))
        return ReaderState(self.upper, (*progress, *([Updates(updates)] if updates else ())))

    @classmethod
    def restore(cls, state: ReaderState) -> Reader:
        """Return a reader that continues from ``state``."""
        reader = cls(state.upper)
        for statement in state.statements:
            reader.receive(statement)
        return reader

    def _note_updates(self, message: Updates) -> None:
        fresh: dict[Timestamp, Pending] = {}
        for update in message.array:
            if update.time < self._upper:
                continue
            key = sort_key(update.data)
            noted = self._pending.get(update.time, {}).get(key)
            known = noted or fresh.setdefault(update.time, {}).setdefault(key, update)
            if known.diff != update.diff:
                message_ = f"two diffs are stated for the same data at time {update.time}"
                detail = f"{update.data!r} has diff {known.diff} and diff {update.diff}"
                raise ConflictingStatements(message_, detail=detail)
        for time, more in fresh.items():
            if more and self._covers(time):
                arrived = len(self._pending.get(time, {})) + len(more)
                _check_count(time, self._counts.get(time, 0), arrived)
        for time, more in fresh.items():
            self._pending.setdefault(time, {}).update(more)

    def _note_progress(self, message: Progress) -> None:
        low, high = max(_number(message.lower), self._upper), _number(message.upper)
        if low >= high:
            return
        counts = {time: count for time, count in message.counts if time >= low}
        for begin, end in self._covered:
            if begin < high and low < end:
                self._check_overlap(max(begin, low), min(end, high), counts)
        for time, arrived in self._pending.items():
            if low <= time < high:
                _check_count(time, counts.get(time, 0), len(arrived))
        for time in counts.keys() - self._counts.keys():
            heapq.heappush(self._counted, time)
        self._counts.update(counts)
        self._covered = _with_interval(self._covered, low, high)

    def _check_overlap(self, low: int, high: int, counts: Mapping[Timestamp, int]) -> None:
        """Refuse counts that differ from those known for times in ``[low, high)``."""
        for time in sorted(counts.keys() | self._counts.keys()):
            known, stated = self._counts.get(time, 0), counts.get(time, 0)
            if low <= time < high and known != stated:
                message = f"two counts are stated for time {time}"
                raise ConflictingStatements(message, detail=f"{known} updates, and {stated}")

    def _covers(self, time: int) -> bool:
        return any(low <= time < high for low, high in self._covered)

    def _close(self) -> Closed | None:
        """Move the upper over every time that is complete, and forget those times."""
        if not self._covered or self._covered[0][0] > self._upper:
            return None
        upper = self._covered[0][1]
        complete: list[Update[Any, Timestamp]] = []
        while self._counted and self._counted[0] < upper:
            time = self._counted[0]
            if len(self._pending.get(time, {})) < self._counts[time]:
                upper = time
                break
            complete += self._in_order(time)
            heapq.heappop(self._counted)
            del self._counts[time], self._pending[time]
        if upper == self._upper:
            return None
        end = self._covered[0][1]
        self._covered[0:1] = [(upper, end)] if upper < end else []
        lower, self._upper = self._upper, upper
        return Closed(_frontier(lower), _frontier(upper), tuple(complete))

    def _in_order(self, time: Timestamp) -> list[Update[Any, Timestamp]]:
        return [update for _, update in sorted(self._pending[time].items())]


def _check_count(time: Timestamp, count: int, arrived: int) -> None:
    if arrived > count:
        message = f"more updates arrived for time {time} than are counted"
        raise ConflictingStatements(message, detail=f"{arrived} updates, counted {count}")


def _with_interval(intervals: list[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    """Return disjoint sorted ``intervals`` with ``[low, high)``, joined to those it touches."""
    apart = [(a, b) for a, b in intervals if b < low or high < a]
    touched = [(a, b) for a, b in intervals if not (b < low or high < a)]
    joined = (min([low, *(a for a, _ in touched)]), max([high, *(b for _, b in touched)]))
    return sorted([*apart, joined])


def _number(frontier: Antichain[Timestamp]) -> int:
    return _END if frontier.is_closed else int(frontier.element())


def _frontier(number: int) -> Antichain[Timestamp]:
    return Antichain() if number == _END else Antichain.of(Timestamp(number))
