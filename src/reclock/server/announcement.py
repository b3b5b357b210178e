"""A process that is going to serve a state directory says so before it opens it.

Between the start of ``reclock run`` or ``reclock serve`` and the moment from which it can be
connected to lie the start of Python, the opening, and all that a file of statements loads. A shell
that comes then must not open the directory itself, before the other one does, and has no use for
being told that it is in use. So the process holds a lock on a file of the directory, ``serving``,
from its first steps until after the state is closed; the shell waits for the signpost as long as
there is such a process.

The lock is shared, since any number of processes may want to serve a directory, of which the lock
of the state lets in one. It ends with its process, however that ends; the file's text, who that is,
is for people only.

Tests: tests/server/test_announcement.py.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from reclock.durable.ownership import host

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME: Final = "serving"


@contextmanager
def announced(directory: Path) -> Iterator[None]:
    """Say that this process is going to serve a state directory, or does, until the block ends."""
    file: int | None = None
    with suppress(OSError):  # the opening of the state says what is wrong
        directory.mkdir(parents=True, exist_ok=True)
        file = os.open(directory / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(file, fcntl.LOCK_SH)
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps({"pid": os.getpid(), "host": host()}).encode(), 0)
    try:
        yield
    finally:
        if file is not None:
            os.close(file)


def announcer(directory: Path) -> str | None:
    """Return which process serves a state directory, or is about to; None if none does."""
    try:
        file = os.open(directory / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        try:
            found = json.loads(os.pread(file, 4096, 0))
            return f"process {found['pid']} on {found['host']}"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"
    else:
        return None
    finally:
        os.close(file)
