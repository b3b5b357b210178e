"""What 1,000 open subscriptions cost a tick, and what they cost themselves.

One database, one materialized view that every tick changes; the engine is the one without
Spark, whose ticks are short, so that what is added to them shows. In turns, a tick is timed
while nobody follows, while one thread drains 1,000 subscriptions, and while 1,000 threads
block in one each; after every tick all of them read what it brought before the next begins,
as they do between two ticks of the background loop. Medians count.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from typing import TYPE_CHECKING

from benchmarks.measure import Measure, seconds
from reclock import ManualClock
from reclock.coordinator.database import Database
from reclock.testing.model_engine import ModelEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SUBSCRIPTIONS = 1_000
PAUSE = 0.2
ROUNDS = 4
GROUPS = 200
ROWS = 50
"""How many rows a tick writes, and about how many of the view it changes."""


class Followed:
    """A view of counts, which every round changes."""

    def __init__(self, directory: str) -> None:
        self._clock = ManualClock(1_000)
        # The loop is there, as it makes threads wait, but ticks are run by hand.
        self.db = Database(directory, ModelEngine(), clock=self._clock, background=True)
        self.db.execute("ALTER SYSTEM SET timestamp_interval = '1h'")
        self.db.execute("CREATE TABLE t (k INT, g INT)")
        self.db.execute("CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n FROM t GROUP BY g")
        self._written = self.last = 0
        self.round()

    def round(self) -> float:
        """Write, and return how many seconds the tick took."""
        first = self._written
        self._written += ROWS
        rows = [(n, n % GROUPS) for n in range(first, self._written)]
        self.last = self.db.insert("t", rows).timestamp or 0
        self._clock.advance(3_600_000)
        return seconds(self.db.tick)


def run() -> Iterator[Measure]:
    """Yield the ratios of a tick with and without subscriptions."""
    for name, follow, pause in (
        ("drained by one thread", _drained, 0.0),
        ("a thread blocked in each", _blocked, PAUSE),
    ):
        with tempfile.TemporaryDirectory() as directory:
            followed = Followed(directory)
            alone, together, reading = [], [], []
            try:
                for _ in range(ROUNDS):
                    alone += [followed.round() for _ in range(3)]
                    settle, close = follow(followed)
                    for _ in range(3):
                        together.append(followed.round())
                        reading.append(seconds(settle))
                    close()
            finally:
                followed.db.close()
            before, after = statistics.median(alone), statistics.median(together)
            yield Measure(
                f"a tick with {SUBSCRIPTIONS:,} subscriptions, {name}, against none",
                f"{after / before:.2f} × ({before * 1e3:.1f} ms → {after * 1e3:.1f} ms)",
                "< 1.20 ×",
                after / before < 1.2,
            )
            each = (statistics.median(reading) - pause) / SUBSCRIPTIONS
            yield Measure(
                "… and then for each to read what the tick brought", f"{each * 1e6:.0f} µs"
            )


def _drained(followed: Followed) -> tuple[Callable[[], None], Callable[[], None]]:
    subs = [followed.db.subscribe("SUBSCRIBE v") for _ in range(SUBSCRIPTIONS)]

    def settle() -> None:
        for sub in subs:
            while sub.fetch(0):
                pass

    def close() -> None:
        for sub in subs:
            sub.close()

    settle()
    return settle, close


def _blocked(followed: Followed) -> tuple[Callable[[], None], Callable[[], None]]:
    subs = [followed.db.subscribe("SUBSCRIBE v") for _ in range(SUBSCRIPTIONS)]
    latest = [0] * SUBSCRIPTIONS

    def follow(place: int) -> None:
        while got := subs[place].fetch(None):
            latest[place] = got[-1].timestamp

    threads = [threading.Thread(target=follow, args=(n,), daemon=True) for n in range(len(subs))]
    for thread in threads:
        thread.start()

    def settle() -> None:
        while min(latest) < followed.last:
            time.sleep(0.001)
        time.sleep(PAUSE)  # until they block again

    def close() -> None:
        for sub in subs:
            sub.close()
        for thread in threads:
            thread.join()

    settle()
    return settle, close
