"""The wall clock, injected.

No other module reads the time of day: the tick loop owns a ``Clock`` and hands out milliseconds, so
that a test decides what time it is, and a clock that jumps is an input like any other (P7).
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since the Unix epoch, as a clock shows them.

    ``now_ms`` may go backwards (NTP, a person): callers that need monotone time ask the
    timeline's oracle, never a clock.
    """

    def now_ms(self) -> int:
        """Return the current time in milliseconds since the epoch."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return the machine's time of day in milliseconds."""
        return time.time_ns() // 1_000_000  # noqa: TID251 - the one place that may


class ManualClock:
    """A clock that moves only when told to, forwards or backwards.

    >>> clock = ManualClock(1_000)
    >>> clock.advance(500)
    >>> clock.now_ms()
    1500
    >>> clock.set(100)
    >>> clock.now_ms()
    100
    """

    def __init__(self, ms: int = 0) -> None:
        self._ms = ms

    def now_ms(self) -> int:
        """Return the time last set."""
        return self._ms

    def set(self, ms: int) -> None:
        """Show ``ms`` from now on; going back is allowed."""
        self._ms = ms

    def advance(self, ms: int) -> None:
        """Move by ``ms`` milliseconds; a negative number goes back."""
        self._ms += ms
