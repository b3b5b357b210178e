"""The background loop: one thread that ticks every timeline, once per interval.

Deadlines lie on a grid of the monotonic clock, one interval apart, whatever a tick takes::

    |--tick--|      |--tick--|      |------------tick------------||tick|      |tick|
    0               1               2               3              ·   4      5

so the loop does not drift. A tick that takes longer than the interval is followed at once by
one more, which covers everything that came meanwhile, every write at its own time; deadlines
that were missed are not made up for one by one. One thread, so never two ticks at once.

A reader that waits for a time calls ``wake``: the loop ticks that timeline at once instead of
at the next deadline, and closes now, not a time on the grid of the interval, which may be far
ahead. Many readers that wait share that tick. The deadlines stay where they are. A
tick keeps writers out, so one on demand comes no sooner after the last than that one took:
readers who never stop asking leave writers half of the time. Before each tick the loop gives way
to statements that wait (``turns``), also when ticks take longer than the interval.

A tick that fails is the ``supervisor``'s: tried again with pauses, or the timeline stops and
``check`` tells why; ``failures`` has the state of each. ``stop`` returns when the tick under
way is done; whoever still waits is told that the database is closed.

Tests: tests/coordinator/test_loop.py.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING

from reclock.coordinator.supervisor import Failure, failed
from reclock.coordinator.tick import tick
from reclock.errors import StorageError
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.coordinator.core import Core
    from reclock.time.pace import Pace


class Loop:
    """Ticks until it is stopped."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._signal = threading.Condition()
        self._stopped = False
        self._wanted: dict[Pace, Timestamp] = {}
        self._failures: Mapping[Pace, Failure] = {}
        self._passed = self._rested = monotonic()
        self._thread = threading.Thread(target=self._run, name="reclock-tick", daemon=True)
        self._thread.start()

    @property
    def failures(self) -> Mapping[Pace, Failure]:
        """Why timelines do not move, those that do not; a value of this moment."""
        return self._failures

    def wake(self, timeline: Pace, time: Timestamp) -> None:
        """Tick ``timeline`` at once, unless ``time`` is complete in it by then."""
        with self._signal:
            self._wanted[timeline] = max(time, self._wanted.get(timeline, time))
            self._signal.notify()

    def interval_changed(self) -> None:
        """Look at the interval again: the next deadline is one of it after the last."""
        with self._signal:
            self._signal.notify()

    def check(self, timeline: Pace) -> None:
        """Raise what keeps ``timeline`` from ever moving again, if something does."""
        if self._stopped:
            message = "the database is closed"
            raise StorageError(message, code="08003")
        failure = self._failures.get(timeline)
        if failure is not None and failure.permanent:
            raise failure.told()

    def stop(self) -> None:
        """End the loop, after the tick under way; who still waits for another is told."""
        with self._signal:
            self._stopped = True
            self._signal.notify()
        self._thread.join()
        self._tell()

    def _run(self) -> None:
        while not self._stopped:
            due = self._due()
            began = monotonic()
            for timeline in sorted(due, key=self._core.world.catalog.order):
                self._tick(timeline, regular=due[timeline])
            ended = monotonic()
            self._rested = ended + (ended - began)

    def _due(self) -> dict[Pace, bool]:
        """Wait until there is something to tick; return which of it regularly, which on demand.

        There is nothing when it is stopped.
        """
        with self._signal:
            while not self._stopped:
                now = monotonic()
                interval = self._core.settings.timestamp_interval_ms / 1_000
                regular, wanted = set(), self._retries(now)
                if now >= self._passed + interval:
                    self._passed = last_point(self._passed, now, interval)
                    regular = self._core.world.timelines.keys() - self._failures.keys()
                if now >= self._rested:
                    wanted |= self._woken()
                if regular or wanted:
                    return dict.fromkeys(wanted, False) | dict.fromkeys(regular, True)
                deadlines = [f.retry_at for f in self._failures.values() if not f.permanent]
                if self._wanted:
                    deadlines.append(self._rested)
                self._signal.wait(min([self._passed + interval, *deadlines]) - now)
        return {}

    def _retries(self, now: float) -> set[Pace]:
        failures = self._failures.items()
        return {t for t, f in failures if not f.permanent and now >= f.retry_at}

    def _woken(self) -> set[Pace]:
        wanted, self._wanted = self._wanted, {}
        timelines = self._core.world.timelines
        return {
            timeline
            for timeline, time in wanted.items()
            if timeline not in self._failures
            and timeline in timelines
            and timelines[timeline].upper <= time
        }

    def _tick(self, timeline: Pace, *, regular: bool) -> None:
        self._core.turns.give_way(timeline, lambda: self._stopped)
        if self._stopped:
            return
        before = self._failures.get(timeline)
        try:
            tick(self._core, timeline, regular=regular)
        except Exception as error:
            state = self._core.world.timelines.get(timeline)
            upper = Timestamp(0) if state is None else state.upper
            failure = failed(timeline, upper, error, before, monotonic())
            self._failures = {**self._failures, timeline: failure}
            self._tell()
        else:
            if before is not None:
                self._failures = {t: f for t, f in self._failures.items() if t != timeline}

    def _tell(self) -> None:
        """Let those who wait look again."""
        with self._core.moved:
            self._core.moved.notify_all()


def last_point(passed: float, now: float, interval: float) -> float:
    """Return the last point at or before ``now`` of the grid that ``passed`` is on.

    >>> last_point(10.0, 10.9, 1.0), last_point(10.0, 14.5, 1.0)
    (10.0, 14.0)
    """
    return passed + (now - passed) // interval * interval
