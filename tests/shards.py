"""The slow tests in shards: every run of CI takes the next one, so that none rots unseen.

A test says how long it takes, ``@pytest.mark.slow(seconds=90)``, alone on two cores; one that does
not say takes ``SECONDS``. The longest go first, each into the shard that has least (ties by name):
shards are about equally long, the same on every machine, and every test is in exactly one.

``--shard=3/20`` keeps the tests of shard 3; ``--shard=next`` those of the shard whose turn it is,
which the number of commits says: 20 commits, 20 shards.

Tests: tests/test_shards.py.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

COUNT: Final = 20
LIMIT: Final = 300.0  # seconds of tests in a shard; two processes share them
SECONDS: Final = 1.0


class Shard(NamedTuple):
    """One of ``count`` shards, the first is number 1."""

    number: int
    count: int

    @classmethod
    def of(cls, text: str, turn: int) -> Shard:
        """Return the shard that ``text`` names; ``next`` is that of ``turn``."""
        if text == "next":
            return cls(turn % COUNT + 1, COUNT)
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            message = f"--shard takes next or a number of all, such as 3/{COUNT}, not {text!r}"
            raise ValueError(message)
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def tests(self, seconds: Mapping[str, float]) -> set[str]:
        """Return the tests of this shard, of all tests and how long they take."""
        kept: list[list[str]] = [[] for _ in range(self.count)]
        length = [0.0] * self.count
        for test in sorted(seconds, key=lambda name: (-seconds[name], name)):
            place = length.index(min(length))
            kept[place].append(test)
            length[place] += seconds[test]
        return set(kept[self.number - 1])


def turn(root: Path) -> int:
    """Return how many commits there are, or 0 where there is no git."""
    command = ["git", "rev-list", "--count", "HEAD"]
    try:
        said = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(said.stdout)
