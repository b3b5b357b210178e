"""Turns: ticks in the background give way to waiting statements.

A loop whose ticks take longer than their interval takes the lock again as soon as it releases it,
so a waiting statement may never get it. So before each tick the loop gives way:

- to the statements that wait at that moment for the lock, or for the tick of the pace that is
  under way (``waiting``). Those that come later wait for the tick: writers without end do not stop
  the ticks;
- to a statement that has *paused* the pace (``pausing``), because the ticks outrun it: a new view
  that follows them (``preparation``) and does not catch up. A pause ends with its block, or after
  ``LONGEST`` seconds, when ticks go on without notice to the statement. The statement is still
  correct, because it takes the lock for the last part.

Cost: nothing without a waiter. Tests: tests/engine/test_turns.py.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reclock.time.pace import Pace

LONGEST: Final = 30.0
"""For how many seconds a pause keeps ticks from running."""

_GLANCE: Final = 0.05


class Turns:
    """The statements that wait, and the paces that are paused; for all threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[object, frozenset[Pace] | None] = {}
        self._paused: dict[object, tuple[frozenset[Pace], float]] = {}

    @contextmanager
    def waiting(self, paces: Iterable[Pace] | None = None) -> Iterator[None]:
        """Have the next tick wait until the block ends, in which a statement gets its turn.

        The next one of every pace, or of ``paces``.
        """
        concerned = None if paces is None else frozenset(paces)

        def wait(one: object) -> None:
            self._waiting[one] = concerned

        with self._noted(wait, self._waiting.pop):
            yield

    @contextmanager
    def pausing(self, paces: Iterable[Pace]) -> Iterator[None]:
        """Have no tick of some paces begin in the background until the block ends."""
        paused = frozenset(paces), monotonic() + LONGEST

        def pause(one: object) -> None:
            self._paused[one] = paused

        with self._noted(pause, self._paused.pop):
            yield

    @contextmanager
    def _noted(
        self, begin: Callable[[object], object], end: Callable[[object], object]
    ) -> Iterator[None]:
        one = object()
        with self._changed:
            begin(one)
        try:
            yield
        finally:
            with self._changed:
                end(one)
                self._changed.notify_all()

    def is_paused(self, pace: Pace) -> bool:
        """Return whether a pace is paused, for not too long yet."""
        with self._changed:
            return self._is_paused(pace)

    def _is_paused(self, pace: Pace) -> bool:
        now = monotonic()
        return any(pace in paces and now < end for paces, end in self._paused.values())

    def give_way(self, pace: Pace, stopped: Callable[[], bool]) -> None:
        """Return when a tick of ``pace`` may begin, or there will be none."""
        with self._changed:
            waiting = self._waiting.items()
            before = {one for one, paces in waiting if paces is None or pace in paces}
            while not stopped() and (self._waiting.keys() & before or self._is_paused(pace)):
                self._changed.wait(_GLANCE)
