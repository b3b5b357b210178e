"""A thread that reads one source ahead, for as long as there is room.

It pulls without a pause while there is more, asks for a tick when much is staged, and looks
again after ``POLL`` of the tick interval when the source has nothing new. A pull that failed
is tried again later and later (``supervisor.pause``); nothing else waits for it.

Tests: tests/ingest/test_intake.py, test_kafka.py.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from reclock.engine.supervisor import pause

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.ingest.intake import Intake

POLL: Final = 0.25
LEAST_POLL: Final = 0.02
MOST_POLL: Final = 0.5
"""How soon to look again, in parts of the tick interval; in seconds at least and at most."""


class Pump:
    """Pulls an intake until it is stopped."""

    def __init__(
        self,
        name: str,
        intake: Intake,
        interval_ms: Callable[[], int],
        wake: Callable[[], None],
    ) -> None:
        self._intake = intake
        self._interval_ms = interval_ms
        self._wake = wake
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"reclock-{name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Have it end after the pull under way; ``join`` waits for that."""
        self._stopped.set()
        with self._intake.room:
            self._intake.room.notify_all()

    @property
    def is_running(self) -> bool:
        """Whether its thread has not ended yet."""
        return self._thread.is_alive()

    def join(self, seconds: float) -> None:
        """Wait for the thread, but not for ever: a broker may not answer."""
        self._thread.join(seconds)

    def _run(self) -> None:
        failed = 0
        while not self._stopped.is_set() and self._intake.failure is None:
            if self._wait_for_room():
                continue
            more = self._intake.pull()
            if self._intake.is_laden:
                self._wake()
            failed = failed + 1 if self._intake.stall is not None else 0
            if failed:
                self._stopped.wait(pause(failed))
            elif not more:
                poll = POLL * self._interval_ms() / 1_000
                self._stopped.wait(min(max(poll, LEAST_POLL), MOST_POLL))
        self._intake.rest()  # what it has staged may still be bound
        self._stopped.wait()
        self._intake.close()

    def _wait_for_room(self) -> bool:
        """Have a tick take something, if nothing more can be staged, and wait for it."""
        if not self._intake.is_full:
            return False
        self._wake()
        self._intake.stay()
        with self._intake.room:
            if self._intake.is_full and not self._stopped.is_set():
                self._intake.room.wait(MOST_POLL)
        return True
