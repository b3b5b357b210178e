"""One process per state directory: a file lock that dies with its owner.

Definition. The owner holds ``flock`` on ``<directory>/lock``. The operating system gives it back
when the process ends, however it ends (``kill -9`` too), so a stale lock cannot exist and never has
to be deleted. The file's text, ``{"pid": …, "host": …}``, is only for the error message of a second
process; it does not decide who owns the state.

A forked child inherits the open file and would keep the lock after its parent died:
children therefore close it at once. Two openings in one process exclude each other too.

A directory that is removed under its owner takes the lock with it: a process that makes it again
locks another file. ``is_held`` says whether an owner still owns what is at that path.

Checked by tests/durable/test_sqlite.py with real processes.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from reclock.errors import StateInUse, StorageError

if TYPE_CHECKING:
    from pathlib import Path

LOCK_FILE: Final = "lock"


class DirectoryLock:
    """The right to use a state directory, until it is released or the process ends."""

    def __init__(self, directory: Path) -> None:
        self._path = path = directory / LOCK_FILE
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            message = f"cannot open state directory {directory}"
            raise StorageError(message, detail=str(error)) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = _read_owner(self._file)
            self.release()
            message = f"state directory {directory} is in use by {owner}"
            hint = "stop that process, or use another state directory"
            if owner == owner_name():
                message = f"state directory {directory} is open in this process already"
                hint = "use the database that is open, or close() it first"
            raise StateInUse(message, hint=hint) from error
        _held.add(self)
        with suppress(OSError):  # a full disk: the lock is ours, signed or not
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps({"pid": os.getpid(), "host": host()}).encode(), 0)

    def is_held(self) -> bool:
        """Return whether the lock is ours, and still is the directory's."""
        if self._file is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        except OSError:
            return False

    def release(self) -> None:
        """Let others have the directory."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        _held.discard(self)


def host() -> str:
    """Return this machine's name, as it is told to those who come second."""
    return socket.gethostname()


def owner_name() -> str:
    """Return how this process is named in messages to others."""
    return f"process {os.getpid()} on {host()}"


def _read_owner(file: int) -> str:
    """Return who wrote the lock file; the owner may not have written it yet."""
    try:
        owner = json.loads(os.pread(file, 4096, 0))
        return f"process {owner['pid']} on {owner['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


_held: Final[set[DirectoryLock]] = set()
"""Unclosed ones too: their files are open for as long as the process lives."""


def _forget_in_child() -> None:
    for lock in tuple(_held):
        lock.release()


os.register_at_fork(after_in_child=_forget_in_child)
