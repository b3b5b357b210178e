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
