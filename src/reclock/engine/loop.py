"""The background loop: it ticks every pace, once per interval, none of them behind another.

Deadlines lie on a grid of the monotonic clock, one interval apart, whatever a tick takes::

    |--tick--|      |--tick--|      |------------tick------------||tick|      |tick|
    0               1               2               3              ·   4      5

so the loop does not drift. A tick that takes longer than the interval is followed at once by
one more, which covers everything that came meanwhile, every write at its own time; deadlines
that were missed are not made up for one by one.

Each pace has a *lane*, a thread that runs its ticks: never two of one pace at once. Paces tick one
after the other, those first that others follow; but the others wait ``GRACE`` seconds for a tick
and no longer: while one is a job of minutes, they go on.

A reader that waits for a time calls ``wake``: the loop ticks that pace at once instead of
at the next deadline, and closes now, not a time on the grid of the interval, which may be far
ahead. Many readers that wait share that tick. The deadlines stay where they are. A tick on
demand comes no sooner after the last than that one took, or ``REST`` seconds after it: readers
who never stop asking leave writers half of the interpreter's time. Before each tick the loop gives
way to statements that wait (``turns``), also when ticks take longer than the interval.

A tick that fails is the ``supervisor``'s: tried again with pauses, or the pace stops and ``check``
tells why; ``failures`` has the state of each. ``stop`` has the ticks under way stopped: they
publish nothing. It waits a moment for them; remaining waiters are told that the database is closed.

Tests: tests/engine/test_loop.py.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING, Final

from reclock.engine.supervisor import Failure, failed
from reclock.engine.tick import tick
from reclock.errors import StorageError
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reclock.engine.core import Core
    from reclock.time.pace import Pace

GRACE: Final = 0.1
"""So many seconds other paces wait for a tick."""

REST: Final = 0.1
"""So many seconds after a tick the next one on demand may begin, however long that took."""

_PATIENCE: Final = 1.0
"""So many seconds ticks have to stop at the end; what they make later is of no use."""


class _Lane:
    """A thread that ticks one pace when it is told to; the loop's condition guards it."""

    def __init__(self, signal: threading.Condition, work: Callable[[bool], None], name: str):
        self._signal = signal
        self._work = work
        self._asked: bool | None = None
        self._ended = False
        self.rested = 0.0
        """From when on it may tick on demand."""
        self.missed = False
        """Whether a deadline passed while it was ticking."""
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether it ticks."""
        return self._asked is not None

    def begin(self, *, regular: bool) -> None:
        """Have it tick."""
        self._asked = regular
        self._signal.notify_all()

    def end(self) -> None:
        """Have it tick no more."""
        self._ended = True
        self._signal.notify_all()

    def _run(self) -> None:
        while True:
            with self._signal:
                self._signal.wait_for(lambda: self._ended or self.is_busy)
                if self._asked is None:
                    return
                regular = self._asked
            began = monotonic()
            self._work(regular)
            ended = monotonic()
            with self._signal:
                self.rested = ended + min(ended - began, REST)
                self._asked = None
                self._signal.notify_all()


class Loop:
    """Ticks until it is stopped."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._signal = threading.Condition()
        self._stopped = False
        self._wanted: dict[Pace, Timestamp] = {}
        self._failures: Mapping[Pace, Failure] = {}
        self._passed = monotonic()
        self._lanes: dict[Pace, _Lane] = {}
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
            self._signal.notify_all()

    def interval_changed(self) -> None:
        """Look at the interval again: the next deadline is one of it after the last."""
        with self._signal:
            self._signal.notify_all()

    def check(self, timeline: Pace) -> None:
        """Raise what keeps ``timeline`` from ever moving again, if something does."""
        if self._stopped:
            message = "the database is closed"
            raise StorageError(message, code="08003")
        failure = self._failures.get(timeline)
        if failure is not None and failure.permanent:
            raise failure.told()

    def stop(self) -> None:
        """End the loop, and the ticks under way; who still waits for another is told."""
        with self._signal:
            self._stopped = True
            lanes = tuple(self._lanes.values())
            for lane in lanes:
                lane.end()
            self._signal.notify_all()
        self._thread.join()
        self._core.flights.cancel()
        deadline = monotonic() + _PATIENCE
        for lane in lanes:
            lane.thread.join(max(0.0, deadline - monotonic()))
        self._tell()

    def _run(self) -> None:
        while not self._stopped:
            due = self._due()
            for pace in sorted(due, key=self._core.world.catalog.order):
                self._begin(pace, regular=due[pace])

    def _begin(self, pace: Pace, *, regular: bool) -> None:
        """Have a pace tick, and wait for it, if that takes a moment."""
        with self._signal:
            if not self._stopped:
                lane = self._lane(pace)
                lane.begin(regular=regular)
                self._signal.wait_for(lambda: self._is_stopped() or not lane.is_busy, GRACE)

    def _lane(self, pace: Pace) -> _Lane:
        """Return the lane of a pace; those of paces that are gone end."""
        for gone in self._lanes.keys() - self._core.world.timelines.keys() - {pace}:
            if not self._lanes[gone].is_busy:
                self._lanes.pop(gone).end()
        if pace not in self._lanes:

            def work(regular: bool) -> None:
                self._tick(pace, regular=regular)

            self._lanes[pace] = _Lane(self._signal, work, f"reclock-tick-{pace}")
        return self._lanes[pace]

    def _due(self) -> dict[Pace, bool]:
        """Wait until there is something to tick; return which of it regularly, which on demand.

        There is nothing when it is stopped.
        """
        with self._signal:
            while not self._stopped:
                now = monotonic()
                interval = self._core.settings.timestamp_interval_ms / 1_000
                regular, wanted = self._regular(now, interval), self._retries(now)
                wanted |= self._woken(now)
                if regular or wanted:
                    return dict.fromkeys(wanted, False) | dict.fromkeys(regular, True)
                deadlines = [f.retry_at for f in self._failures.values() if not f.permanent]
                lanes = (lane for pace, lane in self._lanes.items() if pace in self._wanted)
                deadlines += [lane.rested for lane in lanes if not lane.is_busy]
                self._signal.wait(max(0.0, min([self._passed + interval, *deadlines]) - now))
        return {}

    def _regular(self, now: float, interval: float) -> set[Pace]:
        """Return the paces whose deadline is now, or passed while they were ticking."""
        due: set[Pace] = set()
        if now >= self._passed + interval:
            self._passed = last_point(self._passed, now, interval)
            due = self._core.world.timelines.keys() - self._failures.keys()
        for pace, lane in self._lanes.items():
            lane.missed = lane.missed or pace in due
            if lane.is_busy:
                due.discard(pace)
            elif lane.missed:
                lane.missed = False
                if pace in self._core.world.timelines and pace not in self._failures:
                    due.add(pace)
        return due

    def _retries(self, now: float) -> set[Pace]:
        failures = self._failures.items()
        ready = {t for t, f in failures if not f.permanent and now >= f.retry_at}
        return {pace for pace in ready if not self._is_busy(pace)}

    def _is_stopped(self) -> bool:
        return self._stopped

    def _is_busy(self, pace: Pace) -> bool:
        return pace in self._lanes and self._lanes[pace].is_busy

    def _woken(self, now: float) -> set[Pace]:
        """Return the paces with waiting readers, those that may tick now."""
        timelines = self._core.world.timelines
        found: set[Pace] = set()
        for pace, time in tuple(self._wanted.items()):
            lane = self._lanes.get(pace)
            if lane is not None and (lane.is_busy or now < lane.rested):
                continue
            del self._wanted[pace]
            if pace not in self._failures and pace in timelines and timelines[pace].upper <= time:
                found.add(pace)
        return found

    def _tick(self, timeline: Pace, *, regular: bool) -> None:
        self._core.turns.give_way(timeline, self._is_stopped)
        if self._is_stopped():
            return
        before = self._failures.get(timeline)
        try:
            tick(self._core, timeline, regular=regular)
        except Exception as error:
            if self._is_stopped():
                return
            state = self._core.world.timelines.get(timeline)
            upper = Timestamp(0) if state is None else state.upper
            failure = failed(timeline, upper, error, before, monotonic())
            with self._signal:
                self._failures = {**self._failures, timeline: failure}
            self._tell()
        else:
            if before is not None:
                with self._signal:
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
