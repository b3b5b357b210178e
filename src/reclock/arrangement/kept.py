"""The batches of far files that a process has in use, bounded in bytes.

A batch that was read from a local copy maps it, and a map keeps the space of a file that has been
removed since. So what runs keep for the next reader is bounded: the batch used longest ago is let
go, and read again from its copy, or from afar, when it is wanted. A reader that has a batch in
hand keeps it alive itself.

Thread-safe. Cost: a move in a dictionary per batch used. Tests: tests/arrangement/test_kept.py.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Protocol
from weakref import ref

if TYPE_CHECKING:
    from weakref import ReferenceType


class Holder(Protocol):
    """Who holds batches by their numbers."""

    def release(self, index: int) -> None:
        """Let go of a batch."""
        ...


class Kept:
    """Which batches are held; those used longest ago are let go beyond ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: OrderedDict[tuple[int, int], tuple[ReferenceType[Holder], int]] = OrderedDict()
        self._lock = Lock()
        self.bytes = 0

    def used(self, holder: Holder, index: int, size: int) -> None:
        """Say that a batch is in use; let others go if there is no room for all."""
        key = id(holder), index
        gone = []
        with self._lock:
            known = self._held.get(key)
            if known is not None and known[0]() is holder:
                self._held.move_to_end(key)
                return
            if known is not None:  # of a holder that is no more, at the same place
                self.bytes -= self._held.pop(key)[1]
            self._held[key] = ref(holder), size
            self.bytes += size
            while self.bytes > self._limit and len(self._held) > 1:
                (_, number), (other, freed) = self._held.popitem(last=False)
                self.bytes -= freed
                gone.append((other(), number))
        for someone, number in gone:
            if someone is not None:
                someone.release(number)
