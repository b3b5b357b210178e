"""Sums of updates: consolidation, contents at a time, and equality of collections.

Definitions. ``consolidate`` leaves one update per (data, time), with the sum of its diffs,
and none where the sum is zero; sorted by time, then data, so that two sets of updates that
mean the same *at every time of a total order* become the same list. ``accumulate`` gives
the contents at one time. Two collections are the same in ``[since, upper)`` when they
accumulate to the same rows at every time there: how a later operator is judged.

Invariants: results hold ``canonical`` data and no zero; negative sums are kept, since a
difference of collections is a collection too. Cost: O(n log n), and O(n) per time.

Laws: tests/change/test_consolidate.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from reclock.change.update import Update, distinct_times, negate
from reclock.change.value import canonical, sort_key
from reclock.time.order import T

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.time.antichain import Antichain

Rows = Counter[Any]
"""The contents of a collection at one time: canonical data and how often each occurs."""


def consolidate(updates: Iterable[Update[Any, T]]) -> list[Update[Any, T]]:
    """Return one update per (data, time), without zeros, sorted by time and data.

    >>> from reclock.time.timestamp import Timestamp
    >>> t = Timestamp(3)
    >>> consolidate([Update("b", t, 1), Update("a", t, 2), Update("b", t, -1)])
    [Update(data='a', time=Timestamp(3), diff=2)]
    """
    data: dict[tuple[Any, ...], Any] = {}
    sums: Counter[tuple[T, tuple[Any, ...]]] = Counter()
    for update in updates:
        key = sort_key(update.data)
        data.setdefault(key, canonical(update.data))
        sums[update.time, key] += update.diff
    places = [place for place, diff in sums.items() if diff]
    places.sort()  # the sort order of times, then that of data
    return [Update(data[key], time, sums[time, key]) for time, key in places]


def accumulate(updates: Iterable[Update[Any, T]], time: T) -> Rows:
    """Return the contents at ``time``: the diffs at or before it, summed by data.

    >>> from reclock.time.timestamp import Timestamp
    >>> log = [Update("a", Timestamp(1), 1), Update("a", Timestamp(2), -1)]
    >>> accumulate(log, Timestamp(1)), accumulate(log, Timestamp(2))
    (Counter({'a': 1}), Counter())
    """
    rows: Rows = Counter()
    for update in updates:
        if update.time.less_equal(time):
            rows[canonical(update.data)] += update.diff
    return without_zeros(rows)


def without_zeros(rows: Rows) -> Rows:
    """Return ``rows`` without those that occur zero times; negative counts stay."""
    return Counter({data: count for data, count in rows.items() if count})


def changes(before: Rows, after: Rows, time: T) -> list[Update[Any, T]]:
    """Return the updates at ``time`` that turn ``before`` into ``after``."""
    rows = after.copy()
    rows.subtract(before)
    return consolidate(Update(data, time, diff) for data, diff in rows.items())


@dataclass(frozen=True, slots=True)
class Difference(Generic[T]):
    """The first time at which two collections differ, and the rows by which they do.

    >>> from reclock.time.timestamp import Timestamp
    >>> Difference(Timestamp(7), Counter({("a", 1): 2}), Counter())
    at time 7 only the left has 2 × ('a', 1)
    """

    time: T
    only_left: Rows
    only_right: Rows

    def __repr__(self) -> str:
        sides = (("left", self.only_left), ("right", self.only_right))
        told = [
            f"only the {side} has " + ", ".join(f"{n} × {data!r}" for data, n in _sorted(rows))
            for side, rows in sides
            if rows
        ]
        return f"at time {self.time} " + "; ".join(told)


def _sorted(rows: Rows) -> list[tuple[Any, int]]:
    return sorted(rows.items(), key=lambda item: sort_key(item[0]))


def first_difference(
    left: Iterable[Update[Any, T]], right: Iterable[Update[Any, T]], times: Iterable[T]
) -> Difference[T] | None:
    """Return how the collections differ at the first of ``times`` where they do, or ``None``.

    Made for tests: ``assert first_difference(actual, expected, times) is None`` fails with
    the time and the rows.
    """
    net = consolidate([*left, *negate(right)])
    for time in times:
        rows = accumulate(net, time)
        if rows:
            return Difference(time, +rows, -rows)
    return None


def first_difference_in(
    left: Iterable[Update[Any, T]],
    right: Iterable[Update[Any, T]],
    since: Antichain[T],
    upper: Antichain[T],
) -> Difference[T] | None:
    """Return how the collections first differ in ``[since, upper)``, or ``None``.

    For totally ordered times, where contents change only at ``since`` and at the times of
    updates: those are enough to check.

    >>> from reclock.time.antichain import Antichain
    >>> from reclock.time.timestamp import Timestamp
    >>> at = lambda t: Antichain.of(Timestamp(t))
    >>> a = [Update("x", Timestamp(1), 1), Update("x", Timestamp(5), 1)]
    >>> b = [Update("x", Timestamp(3), 1)]
    >>> first_difference_in(a, b, at(3), at(5)), first_difference_in(a, b, at(3), at(6))
    (None, at time 5 only the left has 1 × 'x')
    """
    net = consolidate([*left, *negate(right)])
    times = [*since, *(t for t in distinct_times(net) if since.less_than(t))]
    return first_difference(net, (), [t for t in times if not upper.less_equal(t)])
