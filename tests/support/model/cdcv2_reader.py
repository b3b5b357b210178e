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

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reclock.change.cdcv2.coverage import END, Coverage, frontier, number
from reclock.change.cdcv2.message import Message, Progress, Updates
from reclock.change.value import sort_key
from reclock.errors import ConflictingStatements

if TYPE_CHECKING:
    from reclock.change.update import Update
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp

    Pending = dict[tuple[Any, ...], Update[Any, Timestamp]]


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

    >>> from model.cdcv2_codec import decode
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
        self._stated = Coverage(0 if lower is None else number(lower))
        self._pending: dict[int, Pending] = {}

    @property
    def upper(self) -> Antichain[Timestamp]:
        """The times not closed yet; ``{}`` when nothing more will come."""
        return frontier(self._stated.upper)

    def receive(self, message: Message) -> Closed | None:
        """Take note of a message; return the interval it closed, if it closed one."""
        if isinstance(message, Updates):
            self._note_updates(message)
        else:
            self._note_progress(message)
        return self._close()

    def waiting_for(self) -> str:
        """Say, for a person, what the next time lacks to be closed."""
        stated = self._stated
        if stated.upper == END:
            return "nothing: the collection is closed"
        if stated.end == stated.upper:
            later = "" if stated.later is None else f"; progress is stated from {stated.later} on"
            return f"no progress statement covers time {stated.upper}{later}"
        counts = stated.counts
        lacking = [t for t in counts if len(self._pending.get(t, {})) < counts[t]]
        first = min(lacking)
        missing = counts[first] - len(self._pending.get(first, {}))
        more = f"; {len(lacking) - 1} later times lack updates too" if len(lacking) > 1 else ""
        return f"time {first} lacks {missing} of {counts[first]} updates{more}"

    def export(self) -> ReaderState:
        """Return the state as a value; readers in the same state export equal values."""
        progress = self._stated.statements()
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
        fresh: dict[int, Pending] = {}
        for update in message.array:
            if update.time < self._stated.upper:
                continue
            key = sort_key(update.data)
            noted = self._pending.get(update.time, {}).get(key)
            known = noted or fresh.setdefault(update.time, {}).setdefault(key, update)
            if known.diff != update.diff:
                message_ = f"two diffs are stated for the same data at time {update.time}"
                detail = f"{update.data!r} has diff {known.diff} and diff {update.diff}"
                raise ConflictingStatements(message_, detail=detail)
        for time, more in fresh.items():
            if more and self._stated.covers(time):
                arrived = len(self._pending.get(time, {})) + len(more)
                check_count(time, self._stated.counts.get(time, 0), arrived)
        for time, more in fresh.items():
            self._pending.setdefault(time, {}).update(more)

    def _note_progress(self, message: Progress) -> None:
        low, high = number(message.lower), number(message.upper)
        counts = {int(time): count for time, count in message.counts}
        for time, arrived in self._pending.items():
            if low <= time < high:
                check_count(time, counts.get(time, 0), len(arrived))
        self._stated.note(message)

    def _close(self) -> Closed | None:
        """Move the upper over every time that is complete, and forget those times."""
        lower = upper = self._stated.upper
        complete: list[Update[Any, Timestamp]] = []
        while (time := self._stated.next_counted()) is not None and time < self._stated.end:
            if len(self._pending.get(time, {})) < self._stated.counts[time]:
                upper = time
                break
            complete += self._in_order(time)
            del self._pending[time]
            self._stated.forget(time + 1)
        else:
            upper = self._stated.end
        if upper == lower:
            return None
        self._stated.forget(upper)
        return Closed(frontier(lower), frontier(upper), tuple(complete))

    def _in_order(self, time: int) -> list[Update[Any, Timestamp]]:
        return [update for _, update in sorted(self._pending[time].items())]


def check_count(time: int, count: int, arrived: int) -> None:
    """Refuse more updates than are counted."""
    if arrived > count:
        message = f"more updates arrived for time {time} than are counted"
        raise ConflictingStatements(message, detail=f"{arrived} updates, counted {count}")
