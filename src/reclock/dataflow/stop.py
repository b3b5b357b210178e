"""Asks long work to end, from another thread.

Tests: tests/dataflow/test_stop.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


class Stop(Protocol):
    """Who may ask for an end, from another thread: ``engine.interrupt.Interrupt``."""

    def check(self) -> None:
        """Raise the reason, if an end was asked for."""
        ...

    def waking(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Have ``wake`` called if an end is asked for inside of the block."""
        ...
