"""The remap: one durable map from target time to source positions, shared by all readers.

Definition. R maps each time t of a timeline to a frontier R(t) of source positions, and
is monotone: ``t₁ ≤ t₂  ⇒  R(t₁) ≤ R(t₂)``. A *binding* is one step of it, a time and the
frontier that holds from that time on. R is definite in ``[since, upper)``::

    R(t) = frontier of the last binding at or before t        since ≤ t < upper

As a collection (what is stored) it is the set of the frontier's elements, changing with
time: at every t the updates accumulate to R(t), each element once. Nothing else is
stored; in particular no source data is rewritten.

Compaction. ``compacted(s)`` folds all bindings at or before s into one at s. Reclocking
commutes with it: ``compact(reclock(R, S), s) = reclock(compact(R, s), S)``, so positions
keep their time, or get a greater one through compaction only (P2), and the number of
bindings is bounded by what readers hold, not by how long the system ran (P5): time that
passes without new data moves ``upper`` and adds no binding.

Invariants, checked on construction: binding times strictly increase, lie in ``[since, upper)``, the
first is at ``since``; frontiers strictly advance; only a sealed remap may be bound to the closed
frontier. A new remap has ``upper = {0}`` and no bindings. A sealed one has ``upper = {}``: R stays
as it is at all later times, which is the closed frontier if the source completed.

Cost: R(t) is O(log n) in the number of bindings; extending and compacting copy n
references and check only what is new. Properties: tests/remap/test_trace.py.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import InitVar, dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Generic

from reclock.change.update import Update
from reclock.errors import BindingsNotMonotone, Corrupt, InvalidCompaction, Unreadable
from reclock.time.antichain import Antichain
from reclock.time.order import T
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable

Frontier = Antichain[Timestamp]

UNBOUND: Frontier = Antichain.of(Timestamp(0))
"""The upper of a remap that has no bindings yet."""


@dataclass(frozen=True, slots=True)
class Binding(Generic[T]):
    """From ``time`` on, the source is bound up to ``frontier``."""

    time: Timestamp
    frontier: Antichain[T]

    def __str__(self) -> str:
        return f"{self.time} → {self.frontier}"


@dataclass(frozen=True, slots=True)
class Remap(Generic[T]):
    """A remap as of one moment: a value, so readers keep theirs while it is extended.

    ``origin`` is the source's first frontier, before which there is nothing to read.

    >>> from reclock.time.position import KafkaPosition
    >>> at = KafkaPosition.frontier
    >>> empty = Remap.unbound(Antichain.of(KafkaPosition.everything()))
    >>> remap = empty.bound(Timestamp(1000), at({0: 50})).bound(Timestamp(2000), at({0: 70}))
    >>> remap.at(Timestamp(1500)), remap.upper
    ({[0] 50, (0, ∞) 0}, {2001})
    >>> remap.compacted(Timestamp(1200)).bindings[0].time
    Timestamp(1200)
    """

    origin: Antichain[T]
    since: Timestamp
    upper: Frontier
    bindings: tuple[Binding[T], ...]
    _times: tuple[Timestamp, ...] = field(init=False, repr=False, compare=False)
    checked: InitVar[int] = 0

    def __post_init__(self, checked: int) -> None:
        """Refuse a map that is not monotone, or not the map of its interval.

        ``checked`` says how many of the first bindings are known to be monotone, because
        they come from a remap that was checked before.
        """
        object.__setattr__(self, "_times", tuple(b.time for b in self.bindings))
        for earlier, later in pairwise(self.bindings[max(0, checked - 1) :]):
            check_monotone(earlier, later)
        if self.bindings and (
            self.bindings[0].time != self.since or self.upper.less_equal(self.bindings[-1].time)
        ):
            message = "bindings lie outside of the interval they describe"
            detail = f"first {self.bindings[0]}, last {self.bindings[-1]}, {self.interval}"
            raise Corrupt(message, detail=detail)
        if not self.bindings and self.upper != UNBOUND:
            message = f"a remap with upper {self.upper} must have a binding at its since"
            raise Corrupt(message)
        if self.latest.is_closed and not self.is_sealed:
            message = "a complete source must have a sealed remap"
            raise Corrupt(message, detail=f"last {self.bindings[-1]}, {self.interval}")

    @classmethod
    def unbound(cls, origin: Antichain[T]) -> Remap[T]:
        """Return the remap of a source that has not been bound yet."""
        return cls(origin, Timestamp(0), UNBOUND, ())

    @property
    def interval(self) -> str:
        """``[since, upper)`` for messages."""
        return f"[{self.since}, {self.upper})"

    @property
    def latest(self) -> Antichain[T]:
        """The furthest bound frontier: R just before ``upper``."""
        return self.bindings[-1].frontier if self.bindings else self.origin

    @property
    def is_sealed(self) -> bool:
        """Whether the source is complete and nothing will be bound any more."""
        return self.upper.is_closed

    def at(self, time: Timestamp) -> Antichain[T]:
        """Return R(time); refused outside of ``[since, upper)``."""
        if time < self.since or self.upper.less_equal(time):
            message = f"bindings are not readable at {time}"
            detail = f"they are definite in {self.interval}"
            hint = "ask for a time in that interval"
            raise Unreadable(message, detail=detail, hint=hint)
        return self.bindings[bisect_right(self._times, time) - 1].frontier

    def bound(self, time: Timestamp, frontier: Antichain[T]) -> Remap[T]:
        """Return the remap extended to ``time``, bound to ``frontier`` there.

        An unchanged frontier advances ``upper`` and adds no binding; the closed frontier
        seals the remap.
        """
        upper: Frontier = Antichain() if frontier.is_closed else Antichain.of(time.step())
        return self.extended(self.changes(time, frontier), upper)

    def changes(self, time: Timestamp, frontier: Antichain[T]) -> list[Update[T, Timestamp]]:
        """Return the updates that move the stored collection to ``frontier`` at ``time``.

        The very first ones say that the source was at its origin from time 0 on, so that
        the collection accumulates to exactly R(t) at every time, with no special case.
        """
        begin = [] if self.bindings else [Update(e, Timestamp(0), 1) for e in self.origin]
        gone = self.latest.elements - frontier.elements
        come = frontier.elements - self.latest.elements
        return [
            *begin,
            *(Update(e, time, -1) for e in sorted(gone)),  # type: ignore[type-var]  # sort order
            *(Update(e, time, 1) for e in sorted(come)),  # type: ignore[type-var]  # sort order
        ]

    def extended(self, updates: Iterable[Update[T, Timestamp]], upper: Frontier) -> Remap[T]:
        """Return the remap after ``updates`` (in ``[self.upper, upper)``) were appended."""
        steps = _fold(updates, start=self.bindings[-1].frontier if self.bindings else None)
        bindings = (*self.bindings, *steps)
        return Remap(self.origin, self.since, upper, bindings, checked=len(self.bindings))

    @classmethod
    def stored(
        cls,
        updates: Iterable[Update[T, Timestamp]],
        since: Timestamp,
        upper: Frontier,
        origin: Antichain[T],
    ) -> Remap[T]:
        """Rebuild the remap from its durable collection; contradictions are ``Corrupt``."""
        steps = _fold(updates, start=None)
        if not steps and upper.is_closed:
            # Everything at or before since cancelled: the closed frontier has no elements.
            steps = [Binding(since, Antichain())]
        try:
            return cls(origin, since, upper, tuple(steps))
        except BindingsNotMonotone as error:
            raise Corrupt(error.message, detail=error.detail) from error

    def compacted(self, since: Timestamp) -> Remap[T]:
        """Return the remap with everything at or before ``since`` folded into ``since``."""
        if since == self.since:
            return self
        if since < self.since or self.upper.less_equal(since):
            message = f"cannot compact bindings to {since}"
            detail = f"they are definite in {self.interval}"
            raise InvalidCompaction(message, detail=detail)
        kept = bisect_right(self._times, since)
        folded = Binding(since, self.bindings[kept - 1].frontier)
        bindings = (folded, *self.bindings[kept:])
        return Remap(self.origin, since, self.upper, bindings, checked=len(bindings))


def check_monotone(earlier: Binding[T], later: Binding[T]) -> None:
    """Refuse two bindings of which the later one does not move on, naming both."""
    if earlier.time < later.time and earlier.frontier.strictly_precedes(later.frontier):
        return
    message = "bindings are not monotone"
    detail = f"{earlier} is followed by {later}"
    hint = "positions must only move forward as time does"
    raise BindingsNotMonotone(message, detail=detail, hint=hint)


def _fold(updates: Iterable[Update[T, Timestamp]], start: Antichain[T] | None) -> list[Binding[T]]:
    """Return the frontiers that ``updates`` accumulate to, one binding per changed time."""
    by_time: dict[Timestamp, list[tuple[T, int]]] = {}
    for element, time, diff in updates:
        by_time.setdefault(time, []).append((element, diff))
    counts: dict[T, int] = dict.fromkeys(start.elements, 1) if start is not None else {}
    steps: list[Binding[T]] = []
    previous = start
    for time in sorted(by_time):
        for element, diff in by_time[time]:
            count = counts.get(element, 0) + diff
            if count:
                counts[element] = count
            else:
                counts.pop(element, None)
        frontier = _frontier(counts, by_time[time], previous)
        if len(frontier) != len(counts) or any(n != 1 for n in counts.values()):
            message = f"bindings at {time} do not accumulate to a frontier"
            detail = ", ".join(f"{e}: {n}" for e, n in counts.items())
            raise Corrupt(message, detail=detail)
        if frontier != previous:
            steps.append(Binding(time, frontier))
            previous = frontier
    return steps


def _frontier(
    counts: dict[T, int], changes: list[tuple[T, int]], previous: Antichain[T] | None
) -> Antichain[T]:
    """Return the frontier of ``counts``, ``changes`` after ``previous``.

    Where every new element takes the place of an old one (the same part at another offset),
    it is a frontier because the one before was.
    """
    if previous is not None and len(previous) == len(counts):
        places = [
            {getattr(e, "neighbourhood", None) for e, diff in changes if diff == sign}
            for sign in (1, -1)
        ]
        if places[0] == places[1] and None not in places[0] and 2 * len(places[0]) == len(changes):
            return Antichain.trusted(counts)
    return Antichain(counts)
