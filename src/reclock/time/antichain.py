"""Frontiers: sets of mutually incomparable times, as frozen values.

Definition. An antichain F is a set of times no two of which are comparable. As a
frontier it stands for its upper set::

    beyond(F) = { t : ∃ f ∈ F, f ≤ t }        the times that may still change

so ``{0}`` means nothing is known yet (in a total order starting at 0) and ``{}`` means
closed: no time may change any more.

Order. ``F ≤ G  ⇔  beyond(G) ⊆ beyond(F)  ⇔  ∀ g ∈ G, ∃ f ∈ F, f ≤ g``: G is further on.
``{}`` is the greatest frontier. With it antichains are a lattice::

    meet(F, G) = minimal elements of F ∪ G                 beyond = union
    join(F, G) = minimal elements of { f ∨ g }             beyond = intersection

Invariant: elements are minimal and distinct, equality and hash do not depend on the
order they came in. Cost: O(n²) for n elements in general; O(1) for singletons, which is
what a totally ordered time always has. Times may offer short cuts, and positions do, so
that a thousand partitions are cheap: comparing frontiers is O(n) when the times name a
``neighbourhood`` (the same part in both), and building one is O(n log n) when ``apart``
proves that no two of them are comparable.

Laws: tests/time/test_antichain.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, final

from reclock.errors import InvalidValue
from reclock.time.order import Lattice, T

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@final
class Antichain(Generic[T]):
    """A frozen frontier.

    >>> from reclock.time.timestamp import Timestamp
    >>> Antichain.of(Timestamp(5), Timestamp(3))
    {3}
    >>> Antichain.of(Timestamp(3)).less_equal(Timestamp(3))
    True
    >>> closed = Antichain.closed()
    >>> closed, Antichain.of(Timestamp(3)).precedes(closed)
    ({}, True)
    """

    __slots__ = ("_elements",)

    _elements: frozenset[T]

    def __init__(self, elements: Iterable[T] = ()) -> None:
        """Keep the minimal ones of ``elements``."""
        distinct = set(elements)
        if len(distinct) > 1:
            distinct = _minimal(distinct)
        object.__setattr__(self, "_elements", frozenset(distinct))

    @classmethod
    def of(cls, *elements: T) -> Antichain[T]:
        """Return the frontier of the minimal ones of ``elements``."""
        return cls(elements)

    @classmethod
    def closed(cls) -> Antichain[T]:
        """Return ``{}``: nothing may change any more."""
        return cls()

    @classmethod
    def trusted(cls, elements: Iterable[T]) -> Antichain[T]:
        """Build from elements known to be distinct and incomparable, without checking.

        For callers whose construction proves it, such as a position per partition, where
        the quadratic check would be the cost.
        """
        made: Antichain[T] = cls()
        object.__setattr__(made, "_elements", frozenset(elements))
        return made

    def __setattr__(self, name: str, value: object) -> None:
        message = f"antichains are immutable: cannot set {name}"
        raise AttributeError(message)

    def __reduce__(self) -> tuple[object, ...]:
        return Antichain.trusted, (tuple(self._elements),)

    @property
    def elements(self) -> frozenset[T]:
        """The minimal times."""
        return self._elements

    @property
    def is_closed(self) -> bool:
        """Whether this is ``{}``."""
        return not self._elements

    def element(self) -> T:
        """Return the only element; for totally ordered times, the frontier as a time."""
        if len(self._elements) != 1:
            message = f"frontier {self} has {len(self._elements)} elements, not one"
            raise InvalidValue(message)
        (only,) = self._elements
        return only

    def less_equal(self, time: T) -> bool:
        """Return whether ``time`` may still change: some element is at or before it."""
        return any(e.less_equal(time) for e in self._elements)

    def less_than(self, time: T) -> bool:
        """Return whether some element is strictly before ``time``."""
        return any(e != time and e.less_equal(time) for e in self._elements)

    def precedes(self, other: Antichain[T]) -> bool:
        """Return whether ``other`` is at or further on than this: the order on frontiers."""
        moved = other._elements - self._elements
        if len(moved) <= 1 or len(self._elements) <= 1:
            return all(self.less_equal(g) for g in moved)
        near = {getattr(e, "neighbourhood", e): e for e in self._elements}
        return all(
            ((e := near.get(getattr(g, "neighbourhood", g))) is not None and e.less_equal(g))
            or self.less_equal(g)
            for g in moved
        )

    def strictly_precedes(self, other: Antichain[T]) -> bool:
        """Return whether ``other`` is further on than this, and not the same."""
        return self._elements != other._elements and self.precedes(other)

    def meet(self, other: Antichain[T]) -> Antichain[T]:
        """Return the frontier that is beyond when either is: the earlier of both."""
        return Antichain(self._elements | other._elements)

    def join(self, other: Antichain[T]) -> Antichain[T]:
        """Return the frontier that is beyond when both are: the later of both."""
        joined = (a.join(b) for a in self._elements for b in other._elements)
        return Antichain(j for j in joined if j is not None)

    def __iter__(self) -> Iterator[T]:
        """Iterate in a stable order, for printing and storing."""
        return iter(sorted(self._elements))  # type: ignore[type-var]  # the sort order

    def __len__(self) -> int:
        return len(self._elements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Antichain) and self._elements == other._elements

    def __hash__(self) -> int:
        return hash(self._elements)

    def __repr__(self) -> str:
        return "{" + ", ".join(str(e) for e in self) + "}"


def _minimal(elements: set[T]) -> set[T]:
    """Return the elements that no other element is strictly before."""
    apart = getattr(next(iter(elements)), "apart", None)
    if apart is not None and apart(elements):
        return elements
    return {
        e for e in elements if not any(other != e and other.less_equal(e) for other in elements)
    }


def meet_all(frontiers: Iterable[Antichain[T]]) -> Antichain[T]:
    """Return the meet of all, ``{}`` (the greatest frontier) for none."""
    return Antichain(e for frontier in frontiers for e in frontier.elements)


def join_all(frontiers: Iterable[Antichain[T]], minimum: Antichain[T]) -> Antichain[T]:
    """Return the join of all, ``minimum`` for none."""
    result = minimum
    for frontier in frontiers:
        result = result.join(frontier)
    return result


__all__ = ["Antichain", "Lattice", "join_all", "meet_all"]
