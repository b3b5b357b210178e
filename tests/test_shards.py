"""Every slow test is in one shard, shards are about equally long, and each has its turn."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .shards import COUNT, LIMIT, Shard, Turn, dealt, turn

if TYPE_CHECKING:
    from collections.abc import Callable
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
    every = {Shard.of(f"{n}/{COUNT}", 0) for n in range(1, COUNT + 1)}
    for commits in range(1, COUNT):  # between two runs
        assert {Shard.of("next", 100 + n * commits) for n in range(COUNT)} == every


def test_no_shard_is_too_long(slow_tests: dict[str, float]) -> None:
    """Of the suite that this run has collected: what takes longer needs another prime."""
    lengths = [sum(slow_tests[test] for test in some) for some in dealt(slow_tests, COUNT)]
    assert LIMIT / 2 < max(lengths) <= LIMIT, (sum(lengths), COUNT)


@pytest.mark.parametrize("text", ["", "0/3", "4/3", "3", "a/b", "1/0"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--shard takes next or a number of all"):
        Shard.of(text, 0)


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    named = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"]
    return lambda *command: subprocess.run(["git", *named, *command], cwd=tmp_path, check=True)


def test_the_turn_is_the_number_of_commits(tmp_path: Path, git: Callable[..., None]) -> None:
    git("init", "--quiet", "whole")
    for number in range(1, 4):
        git("-C", "whole", "commit", "--quiet", "--allow-empty", "-m", str(number))
        assert Turn.at(tmp_path / "whole") == (number, None)


def test_a_clone_without_history_says_that_nothing_is_in_turn(
    tmp_path: Path, git: Callable[..., None]
) -> None:
    git("init", "--quiet", "whole")
    drawn = []
    for number in range(2):
        git("-C", "whole", "commit", "--quiet", "--allow-empty", "-m", str(number))
        git("clone", "--quiet", "--depth=1", f"file://{tmp_path}/whole", f"shallow{number}")
        found = Turn.at(tmp_path / f"shallow{number}")
        assert found == Turn.at(tmp_path / f"shallow{number}")
        assert "the clone is shallow" in (found.said or "")
        drawn.append(found.number)
    assert drawn[0] != drawn[1]


def test_without_git_there_is_a_turn_and_that_is_said(tmp_path: Path) -> None:
    assert turn(tmp_path / "nowhere") == 0
    assert Turn.at(tmp_path / "nowhere").said == (
        "there is no git: always the first, nothing has its turn"
    )
