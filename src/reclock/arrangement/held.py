"""A directory of segments that its owner holds open, and tells from others at its path.

A directory can be moved away under the process that owns it, and another one can come to its path.
What the owner then writes by path is not where its database is: published, it would be missing
for the next owner. What it removes by path would be another's. So

    a file is published       only in the directory that was there when the store was opened
    files are listed, removed only in that one
    a file is read            only while that directory is at its path

Where it is not, ``StorageError`` says so. Nothing is lost, and all goes on when it is back. The
open directory keeps its number from being given to another one, and renaming relative to it
cannot be fooled by a move in between.

Tasks of Spark have a ``LocalStore`` of the path; ``require`` is asked before what they wrote is
published. Cost: a stat per file. Tests: tests/arrangement/test_held.py.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import finalize

from reclock.arrangement.store import LocalStore, check_name, fsync, storage_errors
from reclock.errors import StorageError
from reclock.failpoints import hit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from reclock.arrangement.file import File


class Directory:
    """A directory that is open, made if there is none, until this is garbage."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self.descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            message = f"cannot open the directory {path}"
            raise StorageError(message, detail=str(error)) from error
        finalize(self, os.close, self.descriptor)

    def check(self) -> None:
        """Raise unless it is where it was."""
        try:
            if os.path.samestat(os.fstat(self.descriptor), self._path.stat()):
                return
        except OSError:
            pass
        message = "the durable state is gone from where it was"
        detail = f"{self._path} was moved or removed, or another directory is in its place"
        hint = "move it back, or stop this process"
        raise StorageError(message, detail=detail, hint=hint)


@dataclass(frozen=True)
class HeldStore(LocalStore):
    """Files in a directory that is held; pickled, it is a ``LocalStore``."""

    directory: Directory = field(repr=False)

    @classmethod
    def hold(cls, root: Path) -> HeldStore:
        """Hold a directory, made if there is none."""
        return cls(root, Directory(root))

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalStore, (self.root,)

    def scratch(self, stem: str) -> Path:
        """Return a new empty file next to the others, with a hidden name."""
        self.directory.check()
        return super().scratch(stem)

    def publish(self, file: Path, name: str, *, durable: bool = True) -> None:
        """Fsync, rename inside of the directory, fsync that."""
        with self._held("write", name) as directory:
            if durable:
                fsync(file)
            hit("arrangement.segment.before_rename")
            os.rename(file.name, check_name(name), src_dir_fd=directory, dst_dir_fd=directory)
            if durable:
                os.fsync(directory)
        hit("arrangement.segment.after_rename")

    def file(self, name: str) -> File:
        """Map the file."""
        self.directory.check()
        return super().file(name)

    def names(self) -> list[str]:
        """List the directory, wherever it is."""
        with self._held("list", str(self.root)) as directory:
            return sorted(os.listdir(directory))

    def remove(self, name: str) -> None:
        """Unlink the file, wherever the directory is."""
        with storage_errors("remove", name), suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.directory.descriptor)

    def require(self, names: Iterable[str]) -> None:
        """Raise unless these files are in the directory."""
        for name in names:
            with self._held("find", name) as directory:
                os.stat(name, dir_fd=directory)

    @contextmanager
    def _held(self, doing: str, name: str) -> Iterator[int]:
        """Give the directory; what is not in it may be missing because it was moved."""
        with storage_errors(doing, name):
            try:
                yield self.directory.descriptor
            except FileNotFoundError:
                self.directory.check()
                raise
