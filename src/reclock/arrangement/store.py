"""The store of segments: a directory here; others are ``held`` and ``remote``.

A store holds immutable files by name. ``publish`` makes a finished local file visible
under its name, whole or not at all, and durable before it returns: fsync of the file,
atomic rename, fsync of the directory. Publishing the same bytes under the same name again
changes nothing, so a retried or speculative Spark task is harmless. A crash leaves a file
that no manifest names: garbage, for ``gc``.

Stores are values: they pickle, so that Spark carries them to its workers.

Tests: tests/arrangement/test_store.py.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from reclock.arrangement.blocks import map_file
from reclock.arrangement.file import Mapped
from reclock.errors import InvalidValue, SegmentMissing, StorageError, StorageFull
from reclock.failpoints import hit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reclock.arrangement.file import File

_NAME: Final = re.compile(r"[A-Za-z0-9_=][A-Za-z0-9._=-]*")


class Store(Protocol):
    """A flat set of immutable files."""

    @property
    def batch_share(self) -> int:
        """What share of a batch to write as one, where reading a batch costs what it has."""
        ...

    @property
    def openers(self) -> int:
        """How many runs to open at a time, where opening one is waiting."""
        ...

    def scratch(self, stem: str) -> Path:
        """Return a new empty local file to write what will be published."""
        ...

    def publish(self, file: Path, name: str, *, durable: bool = True) -> None:
        """Make a scratch file visible as ``name``, and durable, unless a crash may forget it."""
        ...

    def file(self, name: str) -> File:
        """Return a file, open or to be opened when it is first read."""
        ...

    def names(self) -> list[str]:
        """Return the names of all files, those being written included."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file; it may be gone already. Open maps stay valid."""
        ...

    def require(self, names: Iterable[str]) -> None:
        """Raise unless files that others published are where this store keeps its own."""
        ...


def check_name(name: str) -> str:
    """Return ``name`` if it can name a file anywhere.

    >>> check_name("tick-17.task-0")
    'tick-17.task-0'
    """
    if not _NAME.fullmatch(name):
        message = f'invalid segment name "{name}"'
        raise InvalidValue(message, hint="use letters, digits and . _ = -")
    return name


@dataclass(frozen=True)
class LocalStore:
    """Files in a directory of this machine, or of a shared mount."""

    root: Path

    batch_share: ClassVar[int] = 1
    openers: ClassVar[int] = 1

    def scratch(self, stem: str) -> Path:
        """Return a new empty file next to the others, with a hidden name."""
        return scratch_in(self.root, stem)

    def publish(self, file: Path, name: str, *, durable: bool = True) -> None:
        """Fsync, rename, fsync the directory: two fsyncs."""
        with storage_errors("write", name):
            if durable:
                fsync(file)
            hit("arrangement.segment.before_rename")
            file.rename(self.root / check_name(name))
            if durable:
                fsync(self.root)
        hit("arrangement.segment.after_rename")

    def file(self, name: str) -> File:
        """Map the file."""
        with storage_errors("read", name):
            return Mapped(map_file(self.root / name))

    def names(self) -> list[str]:
        """List the directory."""
        with storage_errors("list", str(self.root)):
            return sorted(os.listdir(self.root)) if self.root.exists() else []

    def remove(self, name: str) -> None:
        """Unlink the file."""
        with storage_errors("remove", name):
            (self.root / name).unlink(missing_ok=True)

    def require(self, names: Iterable[str]) -> None:
        """Do nothing: there is one path, and it is theirs too (``held`` looks)."""


def scratch_in(directory: Path, stem: str) -> Path:
    """Return a new empty file of a directory, which is made if there is none."""
    with storage_errors("write", stem):
        directory.mkdir(parents=True, exist_ok=True)
        descriptor, path = tempfile.mkstemp(".tmp", f".{stem}~", directory)
        os.close(descriptor)
        return Path(path)


def fsync(path: Path) -> None:
    """Make a file or a directory durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def storage_errors(doing: str, name: str) -> Iterator[None]:
    """Turn an ``OSError`` into the error that says which file, and what to do."""
    try:
        yield
    except FileNotFoundError as cause:
        raise missing(name, cause) from cause
    except OSError as cause:
        message = f"could not {doing} segment {name}"
        if cause.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StorageFull(message, detail=str(cause), hint="free some space") from cause
        raise StorageError(message, detail=str(cause)) from cause


def missing(name: str, cause: OSError) -> SegmentMissing:
    """Return the error for a file that is not there."""
    message = f"segment {name} is missing"
    hint = "restore the file from a copy, or drop and recreate the object"
    return SegmentMissing(message, detail=str(cause), hint=hint)
