"""A remap in memory: the handle protocol without storage.

What was appended survives the ``Minter`` that appended it, as a database would; a list of
``Minter``s over one ``MemoryRemap`` are racing processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from reclock.remap.trace import Frontier, Remap
from reclock.time.order import T

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.change.update import Update
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp


class MemoryRemap(Generic[T]):
    """``RemapHandle`` that keeps the remap as a value."""

    def __init__(self, origin: Antichain[T]) -> None:
        self._remap: Remap[T] = Remap.unbound(origin)

    def load(self) -> Remap[T]:
        """Return the remap."""
        return self._remap

    def append(
        self, updates: Sequence[Update[T, Timestamp]], expected: Frontier, upper: Frontier
    ) -> Frontier | None:
        """Append, or return the current upper."""
        if expected != self._remap.upper:
            return self._remap.upper
        self._remap = self._remap.extended(updates, upper)
        return None

    def compact(self, since: Timestamp) -> None:
        """Fold everything at or before ``since`` into ``since``."""
        self._remap = self._remap.compacted(since)
