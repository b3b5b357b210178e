"""Random numbers without state: the n-th of a stream, for any n, at once.

Definition. A stream is named by a seed and a field. Its n-th number is the n-th output of
SplitMix64 begun at a key that is a digest of both::

    bits(field, n) = mix(key(seed, field) + (n + 1) × γ)        modulo 2⁶⁴

Invariant: whole 64-bit integer arithmetic, so the numbers are the same on every machine,
in every batch, in any order. ``below`` scales the upper 32 bits; a bound of k is off from
uniform by at most k / 2³².

Cost: about a dozen vectorised passes over the numbers.
Published values of SplitMix64, uniformity: tests/connectors/generator/test_draw.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

from reclock.connectors.generator.model import VERSION

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GAMMA: Final = 0x9E3779B97F4A7C15
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class Draws:
    """The streams of a seed.

    >>> Draws(7).below("price", np.array([0, 1, 2]), 100).tolist()
    [0, 54, 88]
    """

    seed: int

    def bits(self, field: str, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return 64 random bits for each number."""
        return splitmix64(_key(self.seed, field), numbers)

    def below(
        self, field: str, numbers: NDArray[np.int64], bound: int | NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return an integer of ``[0, bound)`` for each number; bounds are below 2³²."""
        upper = self.bits(field, numbers) >> np.uint64(32)
        scaled = (upper * np.asarray(bound).astype(np.uint64)) >> np.uint64(32)
        return scaled.astype(np.int64)


def splitmix64(key: int, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the outputs of SplitMix64 begun at ``key``, by their numbers."""
    z = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(_GAMMA) + np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@lru_cache(maxsize=1024)
def _key(seed: int, field: str) -> int:
    named = f"{VERSION}/{seed}/{field}".encode()
    return int.from_bytes(blake2b(named, digest_size=8).digest(), "little")
