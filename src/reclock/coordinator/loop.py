"""The background loop: a thread that ticks every timeline, once per interval.

One thread, so never two ticks at once. A tick that fails is tried again after the next
interval; until one succeeds, readers that wait for it are told the failure. ``stop``
returns when the tick under way is done.

Tests: tests/coordinator/test_read.py.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from reclock.coordinator.tick import tick
from reclock.errors import StorageError

if TYPE_CHECKING:
    from reclock.coordinator.core import Core


class Loop:
    """Ticks until it is stopped."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._stopped = threading.Event()
        self.failure: Exception | None = None
        """Why the last tick failed; None if it did not."""
        self._thread = threading.Thread(target=self._run, name="reclock-tick", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the loop, after the tick under way; who still waits for another is told."""
        self._stopped.set()
        self._thread.join()
        self._tell(StorageError("the database is closed", code="08003"))

    def _run(self) -> None:
        while not self._stopped.wait(self._core.settings.timestamp_interval_ms / 1_000):
            try:
                for timeline in tuple(self._core.world.timelines):
                    tick(self._core, timeline)
            except Exception as error:  # kept for those who wait, and tried again
                self._tell(error)
            else:
                self._tell(None)

    def _tell(self, failure: Exception | None) -> None:
        with self._core.moved:
            self.failure = failure
            self._core.moved.notify_all()
