"""A reclocked stream, update by update: what ticks, which take whole ranges, must agree with.

Frontier. With F the source's frontier (positions still to come are in ``beyond(F)``), the
least time that an update still to come may land at is the first t with ``not R(t) ≤ F``
(frontier order), else the remap's upper. So the output is held back by whichever is
behind: data behind the remap, or the remap behind the data.

Checked against the definitions of ``reclock.remap.follow``: tests/remap/test_follow.py.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Generic, TypeVar

from reclock.change.update import Update
from reclock.errors import InvalidValue
from reclock.remap.follow import time_of
from reclock.time.antichain import Antichain
from reclock.time.order import T

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.remap.trace import Frontier, Remap
    from reclock.time.timestamp import Timestamp

D = TypeVar("D")


def output_frontier(remap: Remap[T], source: Antichain[T]) -> Frontier:
    """Return the least time an update at or beyond ``source`` may still land at."""
    found = bisect_left(
        remap.bindings, True, key=lambda binding: not binding.frontier.precedes(source)
    )
    return Antichain.of(remap.bindings[found].time) if found < len(remap.bindings) else remap.upper


class Follower(Generic[T, D]):
    """Reclocks a stream whose data and remap advance independently, in any order.

    Feed it updates, source frontiers and newer remaps as they come; ``drain`` returns the
    updates whose times are decided and the frontier up to which the output is complete.
    Updates ahead of the remap are stashed; a remap ahead of the data holds the frontier.

    Invariant: drained updates have times at or beyond the frontier of the drain before,
    and what is drained up to a frontier is all there will ever be below it.
    """

    def __init__(self, remap: Remap[T]) -> None:
        self._remap = remap
        self._source: Antichain[T] = remap.origin
        self._stash: list[Update[D, T]] = []

    def follow(self, remap: Remap[T]) -> None:
        """Use a newer version of the remap."""
        self._remap = remap

    def receive(self, updates: Iterable[Update[D, T]]) -> None:
        """Take source updates, in any order, not before the announced frontier."""
        for update in updates:
            if not self._source.less_equal(update.time):
                message = f"update at {update.time} arrived after its position was complete"
                raise InvalidValue(message, detail=f"the source frontier is {self._source}")
            self._stash.append(update)

    def advance(self, source: Antichain[T]) -> None:
        """Learn that all source updates to come are at or beyond ``source``."""
        if not self._source.precedes(source):
            message = f"source frontier {source} is behind {self._source}"
            raise InvalidValue(message)
        self._source = source

    def drain(self) -> tuple[list[Update[D, Timestamp]], Frontier]:
        """Return the updates decided since the last drain, and the output's frontier."""
        decided: list[Update[D, Timestamp]] = []
        ahead: list[Update[D, T]] = []
        for update in self._stash:
            time = time_of(self._remap, update.time)
            if time is None:
                ahead.append(update)
            else:
                decided.append(Update(update.data, time, update.diff))
        self._stash = ahead
        return decided, output_frontier(self._remap, self._source)
