"""How soon a thread of this process lets another one have its turn, while a server runs.

Python's threads change every 5 ms if the one that runs does not wait for something. A server
computes in threads of its own: a tick next to it would wait that long after each of its steps. So
while any server runs, of PostgreSQL's protocol or of HTTP, threads change every 0.5 ms; when the
last one ends, it is as it was.

Tests: tests/server/test_switching.py.
"""

from __future__ import annotations

import sys
from threading import Lock
from typing import Final

SECONDS: Final = 0.0005


class Switching:
    """Counts who needs turns to be short."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before = 0.0

    def begin(self) -> None:
        """Have short turns from now on."""
        with self._lock:
            if not self._users:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, SECONDS))
            self._users += 1

    def end(self) -> None:
        """Need them no more."""
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setswitchinterval(self._before)


SWITCHING: Final = Switching()
"""That of this process."""
