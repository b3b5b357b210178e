"""Stops a running statement, from another thread.

A statement that waits registers how to be woken (``waking``) and calls ``check`` when it is; one
that computes calls ``check`` between two steps. A statement that has begun to make something
durable is not stopped: it succeeds or fails. A request for a statement that is over is forgotten
when the next one begins (``clear``), even if it comes late: a request from another thread says
which statement it means (``number``).

Tests: tests/session/test_cancel.py.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.errors import Error


class Interrupt:
    """Asks the statement of one session to stop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: Error | None = None
        self._number = 0
        self._wakers: list[Callable[[], None]] = []

    @property
    def number(self) -> int:
        """Which statement it is."""
        return self._number

    def set(self, reason: Error, number: int | None = None) -> None:
        """Ask for an end; ``reason`` is what the statement then raises. The first one counts.

        With ``number``, only if it is still that statement.
        """
        with self._lock:
            if number is not None and number != self._number:
                return
            self._reason = self._reason or reason
            wakers = tuple(self._wakers)
        for wake in wakers:
            wake()

    def clear(self) -> None:
        """Forget what was asked: another statement begins."""
        with self._lock:
            self._reason = None
            self._number += 1

    def check(self) -> None:
        """Raise the reason, if an end was asked for."""
        if self._reason is not None:
            raise self._reason

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Have ``wake`` called, from any thread, if an end is asked for inside of the block."""
        with self._lock:
            self._wakers.append(wake)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._wakers.remove(wake)
