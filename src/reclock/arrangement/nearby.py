"""The directory on this machine for copies of far files, and its bound in bytes.

The process that opens a database says where its own are. A store travels to tasks on other
machines, where that path means nothing, or another thing. What holds on the machine that receives
it, the first that is there:

    RECLOCK_CACHE_DIR      a directory of this machine, relative to where the process runs
    the sender's own       if this is the same machine and the same directory is at its path
    SPARK_LOCAL_DIRS       what Spark gives its workers, and removes with their executor
    the user's cache

and below it a directory for each database, so that each has its bound: ``RECLOCK_CACHE_BYTES``
here, else what the sender has.

Tests: tests/arrangement/test_nearby.py.
"""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from reclock.errors import InvalidValue

DIRECTORY: Final = "RECLOCK_CACHE_DIR"
BYTES: Final = "RECLOCK_CACHE_BYTES"
DEFAULT_BYTES: Final = 10 << 30

_SIZE: Final = re.compile(r"\s*(\d+)\s*(?:([kmgt])(?:i?b)?)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Nearby:
    """A directory of this machine, and its bound in bytes."""

    directory: Path
    limit: int

    @classmethod
    def own(cls, directory: Path, database: str) -> Nearby:
        """Return where this process keeps copies: ``directory``, unless told otherwise."""
        return cls(_told(database) or directory, _limit(DEFAULT_BYTES))

    def sent(self, database: str) -> tuple[str, int, tuple[object, ...], str]:
        """Return what travels; ``received`` takes it."""
        with suppress(OSError):
            self.directory.mkdir(parents=True, exist_ok=True)
        return str(self.directory), self.limit, _identity(self.directory), database

    @classmethod
    def received(
        cls, directory: str, limit: int, machine: tuple[object, ...], database: str
    ) -> Nearby:
        """Return where the machine that receives a store keeps copies."""
        chosen = _told(database)
        if chosen is None and machine and machine == _identity(Path(directory)):
            chosen = Path(directory)
        if chosen is None:
            given = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
            above = Path(given) / "reclock" if given else user_cache_path("reclock") / "store"
            chosen = above / database
        return cls(chosen, _limit(limit))


def parse_bytes(text: str) -> int:
    """Return how many bytes a text stands for.

    >>> parse_bytes("1000"), parse_bytes("64 MiB"), parse_bytes("10g")
    (1000, 67108864, 10737418240)
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        message = f'invalid size "{text}"'
        raise InvalidValue(message, hint="write a number of bytes, or one with MiB, GiB or TiB")
    return int(found[1]) << (10 * (1 + "kmgt".index(found[2].lower())) if found[2] else 0)


def _told(database: str) -> Path | None:
    given = os.environ.get(DIRECTORY)
    return Path(given).absolute() / database if given else None


def _limit(otherwise: int) -> int:
    given = os.environ.get(BYTES)
    return parse_bytes(given) if given else otherwise


def _identity(directory: Path) -> tuple[object, ...]:
    """Return what tells a directory from all others, on this and other machines."""
    try:
        found = directory.stat()
    except OSError:
        return ()
    return (_machine(), found.st_dev, found.st_ino)


@cache
def _machine() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return platform.node()
