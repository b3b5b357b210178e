"""Failed log-ins are few: after some, an address must wait for the next attempt.

``ALLOWED`` failures are free. Each one after them doubles the wait, up to ``LONGEST_MS``, counted
from the last failure; a success, or twice the longest wait without a failure, forgets them.
Memory is bounded: of many addresses those that failed longest ago are forgotten first.

Tests: tests/server/protocol/test_startup.py.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from reclock.errors import Rejected

if TYPE_CHECKING:
    from reclock.clock import Clock

ALLOWED: Final = 5
FIRST_MS: Final = 1_000
LONGEST_MS: Final = 60_000
ADDRESSES: Final = 10_000


class Throttle:
    """Remembers who failed to log in."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def check(self, address: str) -> None:
        """Refuse an attempt that comes too soon."""
        count, last = self._failures.get(address, (0, 0))
        left = last + self._wait(count) - self._clock.now_ms()
        if left > 0:
            message = "too many failed log-ins"
            hint = f"try again in {left / 1_000:.0f} s"
            raise Rejected(message, code="53300", hint=hint)

    def failed(self, address: str) -> None:
        """Remember a failure."""
        now = self._clock.now_ms()
        count, last = self._failures.pop(address, (0, now))
        count = 0 if now - last > 2 * LONGEST_MS else count
        self._failures[address] = (count + 1, now)
        if len(self._failures) > ADDRESSES:
            self._failures.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """Forget the failures of an address."""
        self._failures.pop(address, None)

    @staticmethod
    def _wait(count: int) -> int:
        over = min(count - ALLOWED, 32)
        return 0 if over < 0 else min(FIRST_MS << over, LONGEST_MS)
