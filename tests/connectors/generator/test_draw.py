"""Random numbers by their number: the published algorithm, evenly spread, the same for ever."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.generator.draw import Draws, splitmix64


def reference(state: int, count: int) -> list[int]:
    """SplitMix64 as published, one step after another."""
    mask = (1 << 64) - 1
    found = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        found.append(z ^ (z >> 31))
    return found


def test_published_values() -> None:
    # The first outputs of the reference implementation for the seed 1234567.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert splitmix64(1234567, np.arange(3)).tolist() == expected


@given(st.integers(0, 2**64 - 1), st.integers(1, 50))
def test_random_access_is_the_sequence(key: int, count: int) -> None:
    assert splitmix64(key, np.arange(count)).tolist() == reference(key, count)


@given(st.integers(0, 2**63 - 1), st.integers(1, 2**32 - 1), st.integers(0, 10**13))
def test_numbers_are_below_their_bound(seed: int, bound: int, first: int) -> None:
    numbers = Draws(seed).below("x", np.arange(first, first + 20), bound)
    assert numbers.dtype == np.int64
    assert ((numbers >= 0) & (numbers < bound)).all()
    each = Draws(seed).below("x", np.arange(first, first + 20), np.full(20, bound))
    assert (each == numbers).all()


@pytest.mark.parametrize("bound", [2, 3, 10, 100])
def test_numbers_are_spread_evenly(bound: int) -> None:
    count = 100_000
    found = np.bincount(Draws(5).below("x", np.arange(count), bound), minlength=bound)
    expected = count / bound
    assert np.abs(found - expected).max() < 6 * expected**0.5


def test_streams_are_strangers() -> None:
    numbers = np.arange(10_000)
    a = Draws(1).below("x", numbers, 2)
    for other in (Draws(1).below("y", numbers, 2), Draws(2).below("x", numbers, 2)):
        assert abs(int((a == other).sum()) - 5_000) < 300


def test_known_answers() -> None:
    bits = Draws(7).bits("price", np.array([0, 1, 10**13])).tolist()
    assert bits == [23954984625352560, 10001127287688548121, 6584464468490411662]
