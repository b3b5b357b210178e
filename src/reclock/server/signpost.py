"""The address at which a state directory is served, for its readers: ``reclock sql``.

A state directory belongs to one process. If that one listens, it leaves a file in the directory,
``listening.json``, with its address and a key, made for this run, that proves to both sides who the
other is (SCRAM): a user who can read the file owns the directory, and may do everything. The file
is for its owner's eyes (mode 0600) and goes when the server ends. The address is a host and a port,
or, of a process that has not been told to listen anywhere, the path of a Unix socket beside the
file (``private_socket``), which only its owner can connect to.

A process that is killed leaves it behind. That is harmless: nothing answers at the address, or
something answers that cannot prove that it knows the key, and then the file counts for nothing.

Tests: tests/server/test_client.py.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME: Final = "listening.json"
VERSION: Final = 1
SOCKET: Final = "listening.sock"
USER: Final = "reclock/owner"
"""Who logs in with the key."""


@dataclass(frozen=True, slots=True)
class Signpost:
    """An address, and the key that is known there; the host of a Unix socket is its path."""

    host: str
    port: int
    key: Secret

    def connect(self, seconds: float) -> socket.socket:
        """Connect, in so many seconds at most; raises ``OSError``."""
        if not self.host.startswith("/"):
            return socket.create_connection((self.host, self.port), seconds)
        made = socket.socket(socket.AF_UNIX)
        try:
            made.settimeout(seconds)
            made.connect(self.host)
        except OSError:
            made.close()
            raise
        return made

    def __str__(self) -> str:
        return self.host if self.host.startswith("/") else f"{self.host}:{self.port}"


def new_key() -> Secret:
    """Return a key for one run of a server."""
    return Secret(secrets.token_hex(24))


def private_socket(directory: Path) -> str:
    """Return where a process can listen for its own user alone."""
    return os.fspath((directory / SOCKET).resolve())


@contextmanager
def signpost(directory: Path, host: str, port: int, key: Secret) -> Iterator[None]:
    """Say in a state directory where it is served, until the block ends."""
    path, mine = directory / NAME, directory / f"{NAME}.{os.getpid()}"
    text = json.dumps({"v": VERSION, "host": _near(host), "port": port, "key": key.reveal()})
    with suppress(OSError):  # without it clients need a password
        mine.unlink(missing_ok=True)
        with os.fdopen(os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        mine.replace(path)
    try:
        yield
    finally:
        with suppress(OSError):
            if path.read_text(encoding="utf-8") == text:
                path.unlink()


def read_signpost(directory: Path) -> Signpost | None:
    """Return where a state directory is, or was, served; None if nothing says."""
    try:
        found = json.loads((directory / NAME).read_text(encoding="utf-8"))
        if found["v"] != VERSION:
            return None
        return Signpost(str(found["host"]), int(found["port"]), Secret(str(found["key"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _near(host: str) -> str:
    """Return where this machine finds what listens at an address."""
    return {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
