"""Where segments are: a directory, or any pyarrow file system with a local cache.

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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa
from pyarrow import fs

from reclock.errors import InvalidValue, SegmentMissing, StorageError, StorageFull
from reclock.failpoints import hit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NAME: Final = re.compile(r"[A-Za-z0-9_=][A-Za-z0-9._=-]*")
_PUTS_WHOLE: Final = frozenset({"s3", "gcs", "abfs"})
"""File systems on which a file appears when it is closed, whole."""


class Store(Protocol):
    """A flat set of immutable files."""

    def scratch(self, stem: str) -> Path:
        """Return a new empty local file to write what will be published."""
        ...

    def publish(self, file: Path, name: str, *, durable: bool = True) -> None:
        """Make a scratch file visible as ``name``, and durable, unless a crash may forget it."""
        ...

    def map(self, name: str) -> pa.Buffer:
        """Return the bytes of a file, memory-mapped."""
        ...

    def names(self) -> list[str]:
        """Return the names of all files, those being written included."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file; it may be gone already. Open maps stay valid."""
        ...

    def refresh(self, name: str) -> bool:
        """Forget a local copy; return whether there was one to forget."""
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

    def scratch(self, stem: str) -> Path:
        """Return a new empty file beside the others, with a hidden name."""
        return _scratch(self.root, stem)

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

    def map(self, name: str) -> pa.Buffer:
        """Map the file."""
        with storage_errors("read", name):
            return _map(self.root / name)

    def names(self) -> list[str]:
        """List the directory."""
        with storage_errors("list", str(self.root)):
            return sorted(os.listdir(self.root)) if self.root.exists() else []

    def remove(self, name: str) -> None:
        """Unlink the file."""
        with storage_errors("remove", name):
            (self.root / name).unlink(missing_ok=True)

    def refresh(self, name: str) -> bool:
        """Do nothing: the files are no copies."""
        del name
        return False

    def require(self, names: Iterable[str]) -> None:
        """Do nothing: there is one path, and it is theirs too (``held`` looks)."""


@dataclass(frozen=True)
class RemoteStore:
    """Files under a prefix of a pyarrow file system, copied to ``cache`` when first read.

    The cache holds whole immutable files by name. It may be lost at any time, and is kept
    under ``cache_bytes`` by removing what was opened longest ago.
    """

    filesystem: fs.FileSystem = field(hash=False)
    prefix: str
    cache: Path
    cache_bytes: int

    def scratch(self, stem: str) -> Path:
        """Return a new empty file in the cache, with a hidden name."""
        return _scratch(self.cache, stem)

    def publish(self, file: Path, name: str, *, durable: bool = True) -> None:
        """Upload whole, or upload and move; then keep the file as the cached copy."""
        del durable  # what is uploaded is
        final = self._path(check_name(name))
        whole = self.filesystem.type_name in _PUTS_WHOLE
        upload = final if whole else self._path(file.name)
        with storage_errors("write", name):
            self.filesystem.create_dir(self.prefix, recursive=True)
            if whole:
                hit("arrangement.segment.before_rename")
            fs.copy_files(
                str(file), upload, fs.LocalFileSystem(), self.filesystem, use_threads=False
            )
            if not whole:
                hit("arrangement.segment.before_rename")
                self.filesystem.move(upload, final)
            file.rename(self.cache / name)
        hit("arrangement.segment.after_rename")

    def map(self, name: str) -> pa.Buffer:
        """Map the cached copy, fetching it if there is none."""
        local = self.cache / name
        with storage_errors("read", name):
            try:
                os.utime(local)
                return _map(local)
            except FileNotFoundError:
                return self._fetch(name, local)

    def names(self) -> list[str]:
        """List the prefix."""
        selector = fs.FileSelector(self.prefix, allow_not_found=True)
        with storage_errors("list", self.prefix):
            return sorted(info.base_name for info in self.filesystem.get_file_info(selector))

    def remove(self, name: str) -> None:
        """Delete the file and its cached copy."""
        with storage_errors("remove", name):
            (self.cache / name).unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                self.filesystem.delete_file(self._path(name))

    def refresh(self, name: str) -> bool:
        """Forget the cached copy, so that the next ``map`` fetches it again."""
        local = self.cache / name
        known = local.exists()
        local.unlink(missing_ok=True)
        return known

    def require(self, names: Iterable[str]) -> None:
        """Do nothing: there is one address, and it is theirs too."""

    def _path(self, name: str) -> str:
        return f"{self.prefix}/{name}"

    def _fetch(self, name: str, local: Path) -> pa.Buffer:
        temporary = _scratch(self.cache, name)
        fs.copy_files(
            self._path(name), str(temporary), self.filesystem, fs.LocalFileSystem(),
            use_threads=False,
        )  # fmt: skip
        mapped = _map(temporary)  # before another process can trim it away
        temporary.rename(local)
        self._trim(local)
        return mapped

    def _trim(self, fresh: Path) -> None:
        """Remove the files opened longest ago until the cache fits, but not ``fresh``."""
        files = []
        with os.scandir(self.cache) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process trims too
                    files.append((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path))
        excess = sum(size for _, size, _ in files) - self.cache_bytes
        for _, size, path in sorted(files):
            if excess <= 0:
                return
            if path != str(fresh):
                Path(path).unlink(missing_ok=True)
                excess -= size


def _scratch(directory: Path, stem: str) -> Path:
    with storage_errors("write", stem):
        directory.mkdir(parents=True, exist_ok=True)
        descriptor, path = tempfile.mkstemp(".tmp", f".{stem}~", directory)
        os.close(descriptor)
        return Path(path)


def _map(path: Path) -> pa.Buffer:
    with pa.memory_map(str(path)) as mapped:
        return mapped.read_buffer()


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
        message = f"segment {name} is missing"
        hint = "restore the file from a copy, or drop and recreate the object"
        raise SegmentMissing(message, detail=str(cause), hint=hint) from cause
    except OSError as cause:
        message = f"could not {doing} segment {name}"
        if cause.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StorageFull(message, detail=str(cause), hint="free some space") from cause
        raise StorageError(message, detail=str(cause)) from cause
