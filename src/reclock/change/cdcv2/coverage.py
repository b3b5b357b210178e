"""The times that statements of progress cover, and the number of updates of each.

Definition. Progress statements are intervals with counts; together they *cover* a set of times,
with one count each (0 where none is stated). ``end`` is how far they reach without a gap from
the first time that is not forgotten: no time at or beyond it can be closed.

Two statements that count a time differently raise ``ConflictingStatements``, and nothing of
the second is taken note of. What is before ``upper`` is not looked at: it is closed.

Cost: O(n) a statement for n open times; O(log n) for the next counted time. State: the open
times (P5). Tests: tests/change/test_cdcv2_reader.py.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from reclock.change.cdcv2.message import Progress
from reclock.errors import ConflictingStatements
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

END: Final = Timestamp.greatest + 1
"""The closed frontier ``{}`` as a number: after every time."""


class Coverage:
    """What is stated of the times from ``upper`` on.

    >>> at = lambda ms: Antichain.of(Timestamp(ms))
    >>> coverage = Coverage(0)
    >>> coverage.note(Progress(at(3), at(5)))
    >>> coverage.end
    0
    >>> coverage.note(Progress(at(0), at(3)))
    >>> coverage.end
    5
    """

    def __init__(self, upper: int) -> None:
        self.upper = upper
        self.counts: dict[int, int] = {}
        """Of covered times from ``upper`` on, those that have updates."""
        self._counted: list[int] = []  # the same times, as a heap
        self._covered: list[tuple[int, int]] = []  # disjoint, not touching, sorted

    @property
    def end(self) -> int:
        """How far times are covered without a gap; ``END`` if that is all there are."""
        if not self._covered or self._covered[0][0] > self.upper:
            return self.upper
        return self._covered[0][1]

    @property
    def later(self) -> int | None:
        """Where coverage begins again, after a gap at ``upper``; None if it does not."""
        if self.end > self.upper or not self._covered:
            return None
        return self._covered[0][0]

    def covers(self, time: int) -> bool:
        """Return whether something is stated of a time."""
        return any(low <= time < high for low, high in self._covered)

    def next_counted(self) -> int | None:
        """Return the first time that has updates."""
        return self._counted[0] if self._counted else None

    def note(self, message: Progress) -> None:
        """Take note of a statement."""
        low, high = max(number(message.lower), self.upper), number(message.upper)
        if low >= high:
            return
        counts = {int(time): count for time, count in message.counts if time >= low}
        for begin, end in self._covered:
            if begin < high and low < end:
                self._check(max(begin, low), min(end, high), counts)
        for time in counts.keys() - self.counts.keys():
            heapq.heappush(self._counted, time)
        self.counts.update(counts)
        self._covered = _with_interval(self._covered, low, high)

    def forget(self, upper: int) -> None:
        """Forget the times before ``upper``."""
        while self._counted and self._counted[0] < upper:
            del self.counts[heapq.heappop(self._counted)]
        self._covered = [(max(low, upper), high) for low, high in self._covered if high > upper]
        self.upper = max(self.upper, upper)

    def statements(self) -> Iterator[Progress]:
        """Yield statements that say the same."""
        for low, high in self._covered:
            counts = sorted((Timestamp(t), n) for t, n in self.counts.items() if low <= t < high)
            yield Progress(frontier(low), frontier(high), tuple(counts))

    def _check(self, low: int, high: int, counts: Mapping[int, int]) -> None:
        """Refuse counts that differ from those known for times in ``[low, high)``."""
        for time in sorted(counts.keys() | self.counts.keys()):
            known, stated = self.counts.get(time, 0), counts.get(time, 0)
            if low <= time < high and known != stated:
                message = f"two counts are stated for time {time}"
                raise ConflictingStatements(message, detail=f"{known} updates, and {stated}")


def number(upper: Antichain[Timestamp]) -> int:
    """Return a frontier as a number; ``{}`` is ``END``."""
    return END if upper.is_closed else int(upper.element())


def frontier(upper: int) -> Antichain[Timestamp]:
    """Return the frontier of a number."""
    return Antichain() if upper == END else Antichain.of(Timestamp(upper))


def _with_interval(intervals: list[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    """Return disjoint sorted ``intervals`` with ``[low, high)``, joined to those it touches."""
    apart = [(a, b) for a, b in intervals if b < low or high < a]
    touched = [(a, b) for a, b in intervals if not (b < low or high < a)]
    joined = (min([low, *(a for a, _ in touched)]), max([high, *(b for _, b in touched)]))
    return sorted([*apart, joined])
