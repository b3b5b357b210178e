"""Sorted hashes, searched for many at once with few misses of the processor's cache.

A binary search of ten million hashes waits for main memory at almost every step. Here
every ``STRIDE``-th hash is copied into a small array that stays in cache: one
``searchsorted`` there names a block, and the blocks of all queries are read side by side,
which memory does in parallel.

Cost: 8 / ``STRIDE`` bytes of memory per hash; per query a search in cache and one block.

Tests: tests/arrangement/test_hashes.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from reclock.arrangement.layout import Int64s

STRIDE: Final = 32
IN_CACHE: Final = 4_096
"""So few hashes are in cache as they are: a plain search is faster."""


class Hashes:
    """A sorted array of hashes with its fence.

    >>> low, count = Hashes(np.array([3, 5, 5, 9])).find(np.array([3, 4, 5, 10]))
    >>> low.tolist(), count.tolist()
    ([0, 1, 1, 4], [1, 0, 2, 0])
    """

    def __init__(self, stored: Int64s) -> None:
        self._stored = stored
        whole = len(stored) // STRIDE * STRIDE
        self._blocks = stored[:whole].reshape(-1, STRIDE)
        self._fence = self._blocks[:, -1].copy()

    def span(self, wanted: int) -> tuple[int, int]:
        """Return where one hash begins and ends, or would be.

        >>> Hashes(np.array([3, 5, 5, 9])).span(5)
        (1, 3)
        """
        stored = self._stored
        low = int(stored.searchsorted(wanted))
        if low == len(stored) or stored[low] != wanted:
            return low, low
        return low, int(stored.searchsorted(wanted, "right"))

    def find(self, wanted: Int64s) -> tuple[Int64s, Int64s]:
        """Return where each of ``wanted`` is or would be, and how many there are of it."""
        if len(self._stored) <= IN_CACHE:
            low = np.searchsorted(self._stored, wanted, "left")
            return low, np.searchsorted(self._stored, wanted, "right") - low
        number = np.searchsorted(self._fence, wanted, "left")
        inside = number < len(self._fence)
        block = self._blocks[number[inside]]
        sought = wanted[inside, None]
        low = number * STRIDE
        high = low.copy()
        low[inside] += np.count_nonzero(block < sought, axis=1)
        high[inside] += np.count_nonzero(block <= sought, axis=1)
        # The rows after the last whole block, and equal hashes that go on past a block.
        rest = np.flatnonzero(~inside | (high == (number + 1) * STRIDE))
        if rest.size:
            low[rest] = np.searchsorted(self._stored, wanted[rest], "left")
            high[rest] = np.searchsorted(self._stored, wanted[rest], "right")
        return low, high - low
