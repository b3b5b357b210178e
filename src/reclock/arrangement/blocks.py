"""Local copies of pieces of far files: a directory, bounded in bytes, that processes share.

A copy is a file, named by what it is a piece of: ``<file>@<offset>+<length>``, or ``<file>`` for
all of one that this machine wrote. A copy appears whole (written aside, then renamed) and never
changes. Nothing is fsynced: after a crash of the machine a copy may have wrong bytes. Its reader
has a checksum, finds out, and has it removed.

No copy is needed: the directory may be lost, full or read-only at any time. Then bytes stay in
memory for the one who asked.

Bound. A process that has added a sixteenth of ``limit`` lists the directory, and removes the least
recently used copies until the rest fits. Maps of what is removed stay valid. Files being written
are not copies: one that a crash has left goes when it is a day old.

Tests: tests/arrangement/test_blocks.py.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.arrangement.file import Place

SCRATCH: Final = ".tmp"
_OLD_NS: Final = 86_400 * 10**9
_SHARE: Final = 16


class Blocks:
    """The copies in a directory."""

    def __init__(self, directory: Path, limit: int) -> None:
        self.directory = directory
        self.limit = limit
        self._added: int | None = None
        self._lock = Lock()

    def piece(self, name: str, place: Place) -> pa.Buffer | None:
        """Return a copy of a piece, mapped, if there is one."""
        found = self.mapped(_name(name, place))
        return found if found is not None and len(found) == place.length else None

    def mapped(self, name: str) -> pa.Buffer | None:
        """Return a copy, mapped, if there is one; it is used now."""
        path = self.directory / name
        try:
            os.utime(path)
            return map_file(path)
        except OSError:
            return None

    def add(self, name: str, place: Place, parts: Sequence[pa.Buffer]) -> pa.Buffer:
        """Keep a copy of a piece that came in parts, and return it."""
        try:
            made = self._write(_name(name, place), parts)
        except OSError:
            return parts[0] if len(parts) == 1 else pa.py_buffer(b"".join(map(bytes, parts)))
        self._count(place.length)
        return made

    def adopt(self, file: Path, name: str) -> None:
        """Keep a finished file of this directory as the copy of ``name``, or remove it."""
        try:
            size = file.stat().st_size
            if size > self.limit // _SHARE:
                file.unlink()
                return
            file.rename(self.directory / name)
        except OSError:
            return
        self._count(size)

    def drop(self, name: str, place: Place | None = None) -> bool:
        """Remove a copy of a file or of a piece; return whether there was one."""
        try:
            (self.directory / (name if place is None else _name(name, place))).unlink()
        except OSError:
            return False
        return True

    def _write(self, name: str, parts: Sequence[pa.Buffer]) -> pa.Buffer:
        self.directory.mkdir(parents=True, exist_ok=True)
        descriptor, path = tempfile.mkstemp(SCRATCH, f".{name}~", self.directory)
        try:
            with open(descriptor, "wb") as file:
                for part in parts:
                    file.write(part)
            made = map_file(Path(path))  # before another process can remove it
            os.rename(path, self.directory / name)
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise
        return made

    def _count(self, size: int) -> None:
        """Count what was added, and make room when it is time."""
        with self._lock:
            if self._added is not None:
                self._added += size
                if self._added <= self.limit // _SHARE:
                    return
            self._added = 0
        self._trim()

    def _trim(self) -> None:
        """Remove the copies used longest ago until the rest fits."""
        copies = []
        with suppress(OSError), os.scandir(self.directory) as entries:
            for entry in entries:
                with suppress(OSError):  # another process trims too
                    stat = entry.stat()
                    if not entry.name.endswith(SCRATCH):
                        copies.append((stat.st_mtime_ns, stat.st_size, entry.path))
                    elif stat.st_mtime_ns < self.directory.stat().st_mtime_ns - _OLD_NS:
                        os.unlink(entry.path)
        excess = sum(size for _, size, _ in copies) - self.limit
        for _, size, path in sorted(copies):
            if excess <= 0:
                return
            with suppress(OSError):
                os.unlink(path)
            excess -= size


def map_file(path: Path) -> pa.Buffer:
    """Return the bytes of a local file, mapped."""
    with pa.memory_map(str(path)) as mapped:
        return mapped.read_buffer()


def _name(name: str, place: Place) -> str:
    return f"{name}@{place.offset}+{place.length}"
