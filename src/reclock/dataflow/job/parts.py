"""Parts: equal ranges of key hashes, and the rows of runs that fall into one.

Part ``n`` of ``P`` has the hashes from ``n · 2⁶⁴ / P`` above the least one up to where the
next part begins; all parts together are all hashes. Nothing stored depends on ``P``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from reclock.dataflow.delta import key_hash

if TYPE_CHECKING:
    from reclock.arrangement.layout import Int64s

PART_ROWS: Final = 1_000_000
"""How many rows a part has at most, of what is read: it must fit into a worker's memory."""

PART_BYTES: Final = 256 << 20
"""How many bytes a part has at most, about; a column of text must stay below 2 GiB."""

_HASHES: Final = 1 << 64
_LEAST: Final = -(1 << 63)


@dataclass(frozen=True)
class Parts:
    """How many there are.

    >>> Parts(2).bounds(0), Parts(2).bounds(1)
    ((-9223372036854775808, -1), (0, 9223372036854775807))
    """

    count: int

    def bounds(self, part: int) -> tuple[int, int]:
        """Return the first and the last hash of a part."""
        first = _LEAST + part * _HASHES // self.count
        return first, _LEAST + (part + 1) * _HASHES // self.count - 1

    @property
    def firsts(self) -> Int64s:
        """The first hash of every part."""
        return np.array([self.bounds(part)[0] for part in range(self.count)], np.int64)

    def of(self, kh: int) -> int:
        """Return the part of a hash.

        >>> Parts(4).of(-1), Parts(4).of(0)
        (1, 2)
        """
        return int(np.searchsorted(self.firsts, kh, "right")) - 1

    @property
    def of_no_key(self) -> int:
        """The part of the rows of a collection that is arranged by no column."""
        return self.of(int(key_hash([], 1)[0]))


def divided(
    rows: int,
    size: int,
    parallelism: int,
    *,
    most_rows: int = PART_ROWS,
    most_bytes: int = PART_BYTES,
) -> Parts:
    """Return how to divide so many rows and bytes: as many parts as run at once, or a multiple.

    >>> divided(2_100_000, 10**8, 2), divided(10, 10**3, 8), divided(10**5, 10**10, 2)
    (Parts(count=4), Parts(count=8), Parts(count=38))
    """
    rounds = max(-(-rows // (parallelism * most_rows)), -(-size // (parallelism * most_bytes)))
    return Parts(parallelism * max(1, rounds))
