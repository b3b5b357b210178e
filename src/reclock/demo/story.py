"""The demonstration on a real Kafka.

A feed writes transfers into a topic at a steady rate. ``reclock run`` keeps views of them and three
sinks, in a process of its own. An ordinary consumer watches the output. Whenever the engine has
written for a while it is killed while one of its transactions is open on the broker, and started
again; the feed goes on. In the end everything in the output is read again.

The engine holds each transaction open a little longer than it would (a failpoint), so that there
is one to be seen: whether it is open is asked of the broker, not of the engine.

Tests: tests/demo/test_demo.py.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.clock import SystemClock
from reclock.demo.bank import Expected, kafka_pipeline
from reclock.demo.engine import Engine
from reclock.demo.feed import Feed
from reclock.demo.observer import Observer, Transactions, read_all
from reclock.demo.screen import Reading
from reclock.demo.verdict import Verdict
from reclock.dev.kafka import Broker
from reclock.errors import DemoFailed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reclock.demo.screen import Screen

HELD_OPEN: Final = {"RECLOCK_FAILPOINTS": "sink.commit.before=sleep:150"}
RATE: Final = 500
_LIFE_SECONDS: Final = 5.0
"""How long an engine writes before it is killed."""
_PATIENCE: Final = 90.0


@dataclass
class Story:
    """The demonstration in an empty directory."""

    home: Path
    screen: Screen
    kills: int = 3

    def run(self) -> Verdict:
        """Tell it from the beginning to the end; leave nothing running."""
        broker = Broker(self.home / "kafka")
        address = broker.start(0, self.screen.say).address
        try:
            self.screen.say(f"Apache Kafka runs at {address}")
            return self._run(address)
        finally:
            broker.stop()

    def _run(self, address: str) -> Verdict:
        feed = Feed(address, RATE)
        feed.start()
        observer = Observer(address)
        file = self.home / "pipeline.sql"
        file.write_text(kafka_pipeline(address))
        command = [sys.executable, "-m", "reclock", "run", str(file)]
        command += ["--state", str(self.home / "state")]
        engine = Engine(command, self.home / "engine.log", HELD_OPEN)
        watch = _Watch(self.screen, feed, observer, engine)
        self.screen.say(f"transfers come at {RATE} a second; `reclock run` starts")
        try:
            transactions = Transactions(address)
            for _ in range(self.kills):
                watch.started()
                watch.writes(_LIFE_SECONDS)
                watch.until(transactions.is_open, "the engine begins a transaction", 0.005)
                engine.kill()
                self.screen.say(f"kill -9, with a transaction open on the broker ({engine.kills})")
                watch.rest(1.0, "dead")
            watch.started()
            watch.writes(_LIFE_SECONDS)
            count = feed.stop()
            self.screen.say(f"no more transfers; waiting for the last of {count:,}")
            watch.until(lambda: len(observer.seen.ids) >= count, "all transfers are out")
            watch.rest(1.0, "running")
            engine.stop()
            watch.rest(0.0, "stopped")
            self.screen.say("stopped; reading everything in the output topics again")
            return Verdict.of(Expected.of(count), read_all(address), engine.kills)
        finally:
            feed.stop()
            engine.stop()
            observer.stop()


class _Watch:
    """Waits, and shows meanwhile how things are."""

    def __init__(self, screen: Screen, feed: Feed, observer: Observer, engine: Engine) -> None:
        self._screen = screen
        self._feed = feed
        self._observer = observer
        self._engine = engine
        self._clock = SystemClock()
        self._state = "starting"
        self._marks: list[tuple[float, int]] = []

    def started(self) -> None:
        """Start the engine and wait until it runs."""
        self._state = "starting"
        self._engine.start()
        self.until(lambda: any("event=running" in line for line in self._engine.lines), "it runs")
        self._state = "running"

    def writes(self, seconds: float) -> None:
        """Wait until the engine has written, and for some time after."""
        before = len(self._observer.seen.ids)
        self.until(lambda: len(self._observer.seen.ids) > before, "something is written")
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() > end, "time passes")

    def rest(self, seconds: float, state: str) -> None:
        """Let some time pass, in which the engine is in this state."""
        self._state = state
        end = time.monotonic() + seconds
        self._show()
        while time.monotonic() < end:
            time.sleep(0.1)
            self._show()

    def until(self, happened: Callable[[], bool], what: str, pause: float = 0.1) -> None:
        """Wait until something has happened, but not for ever."""
        deadline = time.monotonic() + _PATIENCE
        shown = 0.0
        while not happened():
            if self._engine.exited or time.monotonic() > deadline:
                ended = "the engine has ended" if self._engine.exited else "it takes too long"
                said = "\n".join(self._engine.lines[-15:])
                message = f"waited until {what}: {ended}"
                raise DemoFailed(message, detail=f"the engine's last lines:\n{said}")
            time.sleep(pause)
            if time.monotonic() > shown + 0.1:
                shown = time.monotonic()
                self._show()

    def _show(self) -> None:
        seen = self._observer.seen
        now = time.monotonic()
        self._marks = [(t, n) for t, n in self._marks if t > now - 3] + [(now, len(seen.ids))]
        (began, first), (ended, last) = self._marks[0], self._marks[-1]
        rate = (last - first) / (ended - began) if ended > began else 0.0
        lag = None if seen.at is None else max(0, self._clock.now_ms() - seen.at)
        self._screen.show(
            Reading(
                self._state, self._engine.kills, self._feed.written, len(seen.ids), rate, seen.at,
                lag, seen.timestamps, len(seen.unbalanced), seen.duplicates,
            )
        )  # fmt: skip
