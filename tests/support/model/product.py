"""Times made of two gauges that advance independently.

``Product(a, b)`` is ordered coordinate by coordinate: a source that follows two logs (data
and its transaction metadata) has progressed only as far as both have. Two products are
comparable exactly when both coordinates agree on the direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from reclock.time.order import Lattice

A = TypeVar("A", bound=Lattice)
B = TypeVar("B", bound=Lattice)


@dataclass(frozen=True, slots=True)
class Product(Generic[A, B]):
    """A pair under the product order.

    >>> from reclock.time.timestamp import Sequence
    >>> p = Product(Sequence(1), Sequence(5))
    >>> p.less_equal(Product(Sequence(1), Sequence(6))), p.less_equal(
    ...     Product(Sequence(2), Sequence(4)))
    (True, False)
    """

    first: A
    second: B

    def less_equal(self, other: Product[A, B], /) -> bool:
        """Return whether both coordinates are at or before ``other``'s."""
        return self.first.less_equal(other.first) and self.second.less_equal(other.second)

    def join(self, other: Product[A, B], /) -> Product[A, B] | None:
        """Return the least pair at or after both, if each coordinate has one."""
        first = self.first.join(other.first)
        second = self.second.join(other.second)
        return None if first is None or second is None else Product(first, second)

    def meet(self, other: Product[A, B], /) -> Product[A, B]:
        """Return the greatest pair at or before both."""
        return Product(self.first.meet(other.first), self.second.meet(other.second))

    def __lt__(self, other: Product[A, B]) -> bool:
        """Sort lexicographically; a linear extension, not the order of progress."""
        return (self.first, self.second) < (other.first, other.second)

    def __str__(self) -> str:
        return f"({self.first}, {self.second})"
