"""From an operator on contents to one on changing collections, by recomputation.

Definition. For a batch operator f, ``incrementalise(f)`` maps collections to the one with::

    out[t] = f(in₁[t], …, inₙ[t])       for every t in [as_of, until)

written down as the differences between consecutive answers. Without ``as_of``, the answer
before the first input change is taken to be empty; an operator that has an answer for
empty inputs (a global count is 0) needs ``as_of`` to say from when on it holds.

Cost: one batch computation per distinct time. Used by every test of a real operator;
tested itself in tests/change/test_model.py.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from model.consolidate import Rows, accumulate, changes, consolidate
from reclock.change.update import Update, distinct_times
from reclock.errors import NegativeCount
from reclock.time.timestamp import TotalTime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TotalT = TypeVar("TotalT", bound=TotalTime)


class Incremental(Protocol):
    """An operator on changing collections."""

    def __call__(
        self,
        *inputs: Iterable[Update[Any, TotalT]],
        as_of: TotalT | None = None,
        until: TotalT | None = None,
    ) -> list[Update[Any, TotalT]]:
        """Return the consolidated output in ``[as_of, until)``, its snapshot at ``as_of``."""
        ...


def incrementalise(operator: Callable[..., Rows]) -> Incremental:
    """Return ``operator`` as a function on changing collections.

    >>> from model.sets import distinct
    >>> from reclock.time.timestamp import Timestamp
    >>> log = [Update("a", Timestamp(1), 2), Update("a", Timestamp(4), -2)]
    >>> for update in incrementalise(distinct)(log): print(*update)
    a 1 1
    a 4 -1
    """

    def run(
        *inputs: Iterable[Update[Any, TotalT]],
        as_of: TotalT | None = None,
        until: TotalT | None = None,
    ) -> list[Update[Any, TotalT]]:
        collections = [consolidate(updates) for updates in inputs]
        times = distinct_times(*collections)
        if as_of is not None:
            times = [as_of, *(t for t in times if t > as_of)]
        out: list[Update[Any, TotalT]] = []
        before: Rows = Counter()
        for time in times:
            if until is not None and time >= until:
                break
            after = operator(*(accumulate(updates, time) for updates in collections))
            out += changes(before, after, time)
            before = after
        return out

    return run


def check_multiset(rows: Rows, operator: str) -> None:
    """Refuse contents in which a row occurs a negative number of times."""
    for data, count in rows.items():
        if count < 0:
            message = f"{operator} needs every row to occur at least zero times"
            raise NegativeCount(message, detail=f"{data!r} occurs {count} times")
