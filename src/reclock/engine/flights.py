"""The ticks that run without the lock, and what they keep until they have landed.

A pace has at most one such tick (``tick``). While it runs

- the segments of the world that it started from stay; none at all are removed, because those
  that it writes have no name yet;
- writes of its timeline get times after the one that it closes (``closing``). Memory is enough for
  this: a process that dies publishes nothing of the tick;
- objects come and go, and the tick is fitted to them before it lands (``flight``);
- statements that need the state after the tick wait for it (``wait``), without the lock.

Tests: tests/engine/test_flights.py.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from reclock.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reclock.engine.flight import Flight
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp


class Flights:
    """The ticks under way, by pace; for all threads."""

    def __init__(self, pin: Callable[[World], None], unpin: Callable[[World], None]) -> None:
        self._pin = pin
        self._unpin = unpin
        self._changed = threading.Condition()
        self._under_way: dict[Pace, Flight] = {}

    def add(self, flight: Flight) -> None:
        """Note that a tick has begun, and keep what it reads and writes; hold the lock."""
        self._pin(flight.world)
        with self._changed:
            assert flight.pace not in self._under_way
            self._under_way[flight.pace] = flight

    def end(self, flight: Flight) -> None:
        """Note that a tick has landed, or never will; again is harmless."""
        with self._changed:
            if self._under_way.get(flight.pace) is not flight:
                return
            del self._under_way[flight.pace]
            self._changed.notify_all()
        self._unpin(flight.world)

    def __bool__(self) -> bool:
        """Return whether some tick is."""
        return bool(self._under_way)

    def among(self, paces: Iterable[Pace]) -> set[Pace]:
        """Return those of some paces that a tick is under way of."""
        with self._changed:
            return self._under_way.keys() & set(paces)

    def of(self, pace: Pace) -> Flight | None:
        """Return the tick of a pace that is under way."""
        with self._changed:
            return self._under_way.get(pace)

    def joined(self, state: TimelineState) -> None:
        """Have a tick under way land on a state in which objects have come and gone (``joining``).

        Hold the lock.
        """
        flight = self.of(state.pace)
        if flight is not None:
            flight.basis = state

    def closing(self, pace: Pace) -> Timestamp | None:
        """Return the time that a tick under way closes."""
        found = self.of(pace)
        return None if found is None else found.time

    def wait(self, paces: Iterable[Pace], seconds: float | None = None) -> bool:
        """Wait until no tick of some paces is under way, or for so long; do not hold the lock."""
        wanted = set(paces)
        with self._changed:
            return self._changed.wait_for(lambda: not self._under_way.keys() & wanted, seconds)

    def cancel(self) -> None:
        """Have no tick land that is under way, and what computes for them stop."""
        with self._changed:
            flights = tuple(self._under_way.values())
        for flight in flights:
            flight.interrupt.set(Interrupted("the database is closed", code="57P01"))
