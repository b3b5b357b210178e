"""The triple ``(data, time, diff)``: how much of what changed when.

Definition. A collection is a finite set of updates per time; its contents at t are::

    A[t] = Σ { diff · data : (data, time, diff) ∈ A, time ≤ t }

Compaction. ``advance`` replaces times by later ones that no reader at or beyond ``since`` can tell
from them: for every t in beyond(since), ``time ≤ t ⇔ advanced time ≤ t``. An update that no such
reader can ever see is dropped, as every update is when ``since`` is ``{}``: no time may be read any
more.

Laws: tests/change/test_update.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from reclock.time.order import T

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reclock.time.antichain import Antichain

D = TypeVar("D")


class Update(NamedTuple, Generic[D, T]):
    """``diff`` more of ``data`` from ``time`` on; fewer when ``diff`` is negative.

    >>> from reclock.time.timestamp import Timestamp
    >>> Update(("a", 1), Timestamp(5), -1)
    Update(data=('a', 1), time=Timestamp(5), diff=-1)
    """

    data: D
    time: T
    diff: int


def advance_time(time: T, since: Antichain[T]) -> T | None:
    """Return the latest time that readers at or beyond ``since`` cannot tell from ``time``.

    ``None`` when no such reader is at or beyond ``time``. In a total order this is the later
    of the two; in general ``⋀ { time ∨ f : f ∈ since }``.

    >>> from reclock.time.antichain import Antichain
    >>> from reclock.time.timestamp import Timestamp
    >>> since = Antichain.of(Timestamp(5))
    >>> advance_time(Timestamp(3), since), advance_time(Timestamp(8), since)
    (Timestamp(5), Timestamp(8))
    """
    result: T | None = None
    for element in since.elements:
        joined = time.join(element)
        if joined is not None:
            result = joined if result is None else result.meet(joined)
    return result


def advance(updates: Iterable[Update[D, T]], since: Antichain[T]) -> Iterator[Update[D, T]]:
    """Yield ``updates`` with their times advanced to ``since``; consolidate to compact."""
    for update in updates:
        time = advance_time(update.time, since)
        if time is not None:
            yield update._replace(time=time)


def negate(updates: Iterable[Update[D, T]]) -> Iterator[Update[D, T]]:
    """Yield the updates that undo ``updates``."""
    for update in updates:
        yield update._replace(diff=-update.diff)


def distinct_times(*collections: Iterable[Update[Any, T]]) -> list[T]:
    """Return every time at which one of ``collections`` changes, sorted."""
    times = {update.time for collection in collections for update in collection}
    return sorted(times)  # type: ignore[type-var]  # the sort order, a linear extension
