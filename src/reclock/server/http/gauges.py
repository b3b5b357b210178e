"""Counters of the servers: connections, and answers."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def _none() -> int:
    return 0


class Gauges:
    """Numbers of a server; the event loop changes them, any thread reads."""

    def __init__(self, connections: Callable[[], int] = _none) -> None:
        self.connections = connections
        """How many clients the PostgreSQL port has."""
        self.requests = 0
        """Requests under way, also streams."""
        self.streams = 0
        """Subscriptions that are followed."""
        self._lock = Lock()
        self._answered: Counter[tuple[str, int]] = Counter()

    def answer(self, path: str, status: int) -> None:
        """Note an answer; ``path`` is a route, not what the client wrote."""
        with self._lock:
            self._answered[path, status] += 1

    def answered(self) -> dict[tuple[str, int], int]:
        """Return how many answers there were, by route and status."""
        with self._lock:
            return dict(self._answered)
