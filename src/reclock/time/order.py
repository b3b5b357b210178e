"""Partial orders, kept apart from the order that sorts.

Definition. ``less_equal`` is a partial order: reflexive, antisymmetric, transitive. Two
times may be incomparable: ``not a.less_equal(b) and not b.less_equal(a)``.

``__lt__`` exists on some times for sorting and printing only. It is a linear extension
of the partial order (``a.less_equal(b)`` implies ``a == b or a < b``) and says nothing
else; ``sorted``, ``max`` and heaps use it silently, so no code decides about progress
with it. Partially ordered times have no ``__le__`` at all.

Lattice. ``join`` is the least upper bound and is ``None`` when there is no upper bound
(positions of different partitions have none); ``meet`` is the greatest lower bound.

Laws: tests/time/test_order.py, on every time type.
"""

from __future__ import annotations

from typing import Protocol, Self, TypeVar, runtime_checkable


@runtime_checkable
class PartialOrder(Protocol):
    """A value that is before, after, or incomparable with another of its type."""

    def less_equal(self, other: Self, /) -> bool:
        """Return whether ``self`` is at or before ``other``."""
        ...

    def __hash__(self) -> int: ...


@runtime_checkable
class Lattice(PartialOrder, Protocol):
    """A partial order with bounds: what a time must offer to bound collections."""

    def join(self, other: Self, /) -> Self | None:
        """Return the least upper bound, or ``None`` when nothing is above both."""
        ...

    def meet(self, other: Self, /) -> Self:
        """Return the greatest lower bound."""
        ...


T = TypeVar("T", bound=Lattice)


def less_than(a: T, b: T) -> bool:
    """Return whether ``a`` is strictly before ``b``."""
    return a != b and a.less_equal(b)


def comparable(a: T, b: T) -> bool:
    """Return whether ``a`` and ``b`` are ordered at all."""
    return a.less_equal(b) or b.less_equal(a)
