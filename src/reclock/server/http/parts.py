"""Shared parts of the routes: the database, log-ins, limits, counters, streams, threads."""

from __future__ import annotations

import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Final

from reclock.server.http.limits import Rates
from reclock.server.http.looks import Looks
from reclock.server.http.openapi import PATHS

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from reclock.errors import Error
    from reclock.server.http.door import Door
    from reclock.server.http.gauges import Gauges
    from reclock.server.http.history import History
    from reclock.server.http.metrics import Metrics
    from reclock.server.http.remaps import Remaps
    from reclock.server.http.streams import Streams
    from reclock.session.database import Database
    from reclock.session.file_roots import FileRoots
    from reclock.session.session import Session

TOLD: Final = 20
"""So many refusals are logged at once, and one a second after them."""


@dataclass
class Parts:
    """The parts of a server."""

    db: Database
    door: Door
    gauges: Gauges
    metrics: Metrics
    history: History
    remaps: Remaps
    streams: Streams
    pool: Executor
    files: FileRoots
    say: Callable[..., None]
    rates: Rates = field(default_factory=Rates)
    probes: Rates = field(default_factory=Rates)
    """Of probes, which must not be refused because of other requests."""
    paths: frozenset[str] = frozenset(PATHS)
    looks: Looks = field(default_factory=Looks)
    _told: float = 0.0
    _then: float = 0.0
    _untold: int = 0

    def session(self, role: str | None) -> Session:
        """Begin a session."""
        return self.db.session(role, files=self.files)

    def fault(self, error: BaseException) -> None:
        """Log a bug."""
        with suppress(Exception):
            where = "".join(traceback.format_exception(error))
            words = f"a bug, please report it: {where}"
            self.say("bug", words, level="error", code="XX000", error=where)

    def refused(self, address: str, path: str, error: Error) -> None:
        """Log who was not let in; of very many, not each."""
        now = monotonic()
        self._told = max(0.0, self._told - (now - self._then)) + 1
        self._then = now
        if self._told > TOLD:
            self._told, self._untold = float(TOLD), self._untold + 1
            return
        words = f"{path} was refused to {address}: {error.message}"
        facts = {"path": path, "address": address, "code": error.code}
        self.say("http_refused", words, level="warning", **facts, more=self._untold or None)
        self._untold = 0
