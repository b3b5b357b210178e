"""The slow tests in shards: every run of CI takes the next one, so that none rots unseen.

A test says how long it takes, ``@pytest.mark.slow(seconds=90)``, alone on two cores; one that does
not say takes ``SECONDS``. The longest go first, each into the shard that has least (ties by name):
shards are about equally long, the same on every machine, and every test is in exactly one. None is
longer than ``LIMIT``.

``--shard=3/89`` keeps the tests of shard 3; ``--shard=next`` those of the shard whose turn it is,
which the number of commits says. The number of shards is a prime, so all have their turn, however
many commits lie between two runs, as long as there are always as many. A clone without its history
does not know the number: there, the id of its last commit draws one, and the run says so.

Tests: tests/test_shards.py.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

COUNT: Final = 89
LIMIT: Final = 300.0  # seconds of tests in a shard; two processes share them
_DRAWN: Final = 5  # hexadecimal digits of a commit's id
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
        return set(dealt(seconds, self.count)[self.number - 1])


def dealt(seconds: Mapping[str, float], count: int) -> list[list[str]]:
    """Return the tests of all shards."""
    kept: list[list[str]] = [[] for _ in range(count)]
    length = [0.0] * count
    for test in sorted(seconds, key=lambda name: (-seconds[name], name)):
        place = length.index(min(length))
        kept[place].append(test)
        length[place] += seconds[test]
    return kept


class Turn(NamedTuple):
    """Whose turn it is, and what is to be said of that."""

    number: int
    said: str | None = None

    @classmethod
    def at(cls, root: Path) -> Turn:
        """Return how many commits there are; where that is not known, another number."""
        try:
            commit = _git(root, "rev-parse", "HEAD")
            if _git(root, "rev-parse", "--is-shallow-repository") == "true":
                said = "the clone is shallow: the id of its commit draws, nothing is in turn"
                return cls(int(commit[:_DRAWN], 16), said)
            return cls(int(_git(root, "rev-list", "--count", "HEAD")))
        except (OSError, subprocess.CalledProcessError):
            return cls(0, "there is no git: always the first, nothing has its turn")


def turn(root: Path) -> int:
    """Return the number of the turn: other random tests with each."""
    return Turn.at(root).number


def _git(root: Path, *command: str) -> str:
    said = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True, check=True)
    return said.stdout.strip()
