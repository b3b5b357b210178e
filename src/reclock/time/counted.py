"""The frontier of a changing multiset of times.

Where ``Antichain`` is a value, ``CountedAntichain`` tracks: times come and go with
counts (outstanding work, open holds), and the frontier is the minimal times with a
positive count. ``update`` returns what changed, so that callers react to progress only.

Invariants: no count is negative after an update (more removed than was added is a bug of
the caller, refused whole); ``frontier`` is always the antichain of positive counts.
Cost: O(n) in the number of distinct times for an update that may move the frontier,
O(f) (frontier size) for one that cannot.

Checked against recomputation: tests/time/test_counted.py.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Generic, NamedTuple

from reclock.errors import InvalidValue
from reclock.time.antichain import Antichain
from reclock.time.order import T

if TYPE_CHECKING:
    from collections.abc import Iterable


class FrontierChange(NamedTuple, Generic[T]):
    """What an update did to a frontier; both empty when it did not move."""

    added: frozenset[T]
    removed: frozenset[T]


class CountedAntichain(Generic[T]):
    """A multiset of times and its frontier.

    >>> from reclock.time.timestamp import Timestamp
    >>> counted = CountedAntichain([(Timestamp(1), 1), (Timestamp(2), 1)])
    >>> counted.frontier
    {1}
    >>> counted.update([(Timestamp(1), -1)]).added
    frozenset({Timestamp(2)})
    """

    def __init__(self, times: Iterable[tuple[T, int]] = ()) -> None:
        self._counts: Counter[T] = Counter()
        self._frontier: Antichain[T] = Antichain.closed()
        self.update(times)

    @property
    def frontier(self) -> Antichain[T]:
        """The minimal times with a positive count."""
        return self._frontier

    def count(self, time: T) -> int:
        """Return how often ``time`` is present."""
        return self._counts[time]

    def update(self, changes: Iterable[tuple[T, int]]) -> FrontierChange[T]:
        """Apply (time, diff) changes as one; refuse all of them if a count would go negative."""
        delta: Counter[T] = Counter()
        for time, diff in changes:
            delta[time] += diff
        for time, diff in delta.items():
            if self._counts[time] + diff < 0:
                message = f"count of {time} would become {self._counts[time] + diff}"
                raise InvalidValue(message)
        before = self._frontier
        moved = False
        for time, diff in delta.items():
            was = self._counts[time]
            self._counts[time] = was + diff
            if was + diff == 0:
                del self._counts[time]
                moved = moved or time in before.elements
            elif was == 0:
                moved = moved or not before.less_equal(time)
        if moved:
            self._frontier = Antichain(self._counts)
        after = self._frontier
        return FrontierChange(after.elements - before.elements, before.elements - after.elements)
