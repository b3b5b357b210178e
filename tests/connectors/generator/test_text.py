"""Words of given lengths and prices even over their logarithm, in any batch the same."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.generator.draw import Draws
from reclock.connectors.generator.text import padding, prices, short_words, words

lengths_lists = st.lists(st.integers(0, 40), max_size=30)


@given(lengths_lists, st.integers(0, 30))
def test_words_do_not_depend_on_their_batch(lengths: list[int], cut: int) -> None:
    numbers, wanted = np.arange(len(lengths)), np.array(lengths, np.int64)
    for spaced in (False, True):
        whole = words(Draws(3), "f", numbers, wanted, spaced=spaced).to_pylist()
        parts = [
            word
            for piece in (slice(0, cut), slice(cut, None))
            for word in words(
                Draws(3), "f", numbers[piece], wanted[piece], spaced=spaced
            ).to_pylist()
        ]
        assert parts == whole
        assert [len(word) for word in whole] == lengths


def test_words_are_letters_with_spaces_inside_only() -> None:
    numbers = np.arange(20_000)
    plain = short_words(Draws(1), "f", numbers, 20).to_pylist()
    assert set("".join(plain)) == set("abcdefghijklmnopqrstuvwxyz")
    assert {len(word) for word in plain} == set(range(3, 20))
    spaced = short_words(Draws(1), "f", numbers, 20, spaced=True).to_pylist()
    assert all(word == word.strip() for word in spaced)
    inside = "".join(word[1:-1] for word in spaced)
    assert 0.06 < inside.count(" ") / len(inside) < 0.09


def test_padding_fills_the_room_on_average() -> None:
    numbers = np.arange(20_000)
    found = [len(word) for word in padding(Draws(1), "f", numbers, np.full(20_000, 68)).to_pylist()]
    assert abs(np.mean(found) - 68) < 1
    assert min(found) == 68 - 13
    assert max(found) == 68 + 12
    assert padding(Draws(1), "f", numbers[:2], np.array([-5, 3])).to_pylist()[0] == ""


def test_prices_are_even_over_the_logarithm() -> None:
    found = prices(Draws(1), "f", np.arange(60_000))
    assert found.min() >= 100
    assert found.max() <= 100_000_000
    decades = np.bincount([int(math.log10(price)) for price in found.tolist()])
    assert (np.abs(decades[2:8] - 10_000) < 600).all()
    assert len(np.unique(found)) > 40_000


def test_known_answers() -> None:
    numbers = np.array([0, 1, 10**13])
    assert prices(Draws(7), "f", numbers).tolist() == [26846281, 554, 31357]
    assert short_words(Draws(7), "f", numbers, 9, spaced=True).to_pylist() == [
        "bhoj",
        "yt rzrhe",
        "ppg",
    ]
