"""Every slow test is in one shard, shards are about equally long, and each has its turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .shards import COUNT, Shard, turn

if TYPE_CHECKING:
    from pathlib import Path

LENGTHS = st.dictionaries(st.text(max_size=3), st.floats(0.1, 100), max_size=40)


@given(LENGTHS, st.integers(1, 7))
def test_every_test_is_in_one_shard_and_shards_are_about_equally_long(
    seconds: dict[str, float], count: int
) -> None:
    shards = [Shard(number, count).tests(seconds) for number in range(1, count + 1)]
    assert sorted(test for shard in shards for test in shard) == sorted(seconds)
    lengths = [sum(seconds[test] for test in shard) for shard in shards]
    assert max(lengths) - min(lengths) <= max(seconds.values(), default=0) + 1e-6
    again = dict(reversed(seconds.items()))
    assert [Shard(number, count).tests(again) for number in range(1, count + 1)] == shards


def test_each_has_its_turn() -> None:
    assert {Shard.of("next", n) for n in range(100, 100 + COUNT)} == {
        Shard.of(f"{n}/{COUNT}", 0) for n in range(1, COUNT + 1)
    }


@pytest.mark.parametrize("text", ["", "0/3", "4/3", "3", "a/b", "1/0"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--shard takes next or a number of all"):
        Shard.of(text, 0)


def test_without_git_there_is_a_turn(tmp_path: Path) -> None:
    assert turn(tmp_path / "nowhere") == 0
    assert turn(tmp_path) >= 0
