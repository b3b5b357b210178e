"""Places in a transaction that rows have taken: a set that is small where it is dense.

Few places are a set. Many, which come from pieces that tasks have read, are flags from 0 on, unless
they are so far apart that these would take more memory than a set.

Tests: tests/ingest/test_places.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

FEW: Final = 64
SPARSE: Final = 64
"""A flag is a byte, an element of a set about so many."""


class Places:
    """Distinct places; ``first`` and ``last`` are the least and the greatest of them."""

    __slots__ = ("_flags", "_some", "first", "last")

    def __init__(self) -> None:
        self.first: int | None = None
        self.last: int | None = None
        self._some: set[int] = set()
        self._flags: Bools | None = None

    def add(self, place: int) -> bool:
        """Take a place; return whether it was free."""
        flags = self._flags
        known = flags is not None and 0 <= place < len(flags) and bool(flags[place])
        if known or place in self._some:
            return False
        self._some.add(place)
        self._reach(place, place)
        return True

    def add_all(self, places: Int64s) -> Bools:
        """Take distinct places; return which were free."""
        if not len(places):
            return np.zeros(0, np.bool_)
        first, last = int(places.min()), int(places.max())
        if len(places) <= FEW or first < 0 or last >= SPARSE * len(places):
            return np.array([self.add(place) for place in places.tolist()], np.bool_)
        free = ~np.isin(places, np.fromiter(self._some, np.int64, len(self._some)))
        flags = np.zeros(0, np.bool_) if self._flags is None else self._flags
        if len(flags) <= last:
            flags = np.append(flags, np.zeros(last + 1 - len(flags), np.bool_))
        free &= ~flags[places]
        flags[places] = True
        self._flags = flags
        self._reach(first, last)
        return free

    def _reach(self, first: int, last: int) -> None:
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)
