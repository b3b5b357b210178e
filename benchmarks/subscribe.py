"""What 1,000 open subscriptions cost a tick, and what they cost themselves.

Two databases with a materialized view that every tick changes tick in turns, so that a busy
machine is busy for both: one that nobody follows, and one that 1,000 subscriptions follow,
drained by one thread, or with a thread blocked in each. After a tick all of them read what it
brought before the next begins, as they do between two ticks of the background loop. Medians
count. The engine is the one without Spark, whose ticks are short, so that what is added shows.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from typing import TYPE_CHECKING

from benchmarks.measure import Measure, seconds
from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SUBSCRIPTIONS = 1_000
WARM_UP = 5
ROUNDS = 40
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
    for name, follow in (
        ("one thread drains all", _drained),
        ("a thread blocks in each", _blocked),
    ):
        with tempfile.TemporaryDirectory() as directory:
            alone, followed = Followed(f"{directory}/alone"), Followed(f"{directory}/followed")
            settle, close = follow(followed)
            ticks, reading = [], []
            try:
                for turn in range(WARM_UP + ROUNDS):
                    times = {}
                    for one in (alone, followed) if turn % 2 else (followed, alone):
                        rest()
                        times[one] = one.round()
                        if one is followed:
                            reading.append(seconds(settle))
                    ticks.append((times[alone], times[followed]))
                close()
            finally:
                alone.db.close()
                followed.db.close()
            before, after = (statistics.median(t) for t in zip(*ticks[WARM_UP:], strict=True))
            ratio = statistics.median(b / a for a, b in ticks[WARM_UP:])
            yield Measure(
                f"a tick with {SUBSCRIPTIONS:,} subscriptions, {name}, against none",
                f"{ratio:.2f} × ({before * 1e3:.1f} ms → {after * 1e3:.1f} ms)",
                "< 1.20 ×",
                ratio < 1.2,
            )
            each = statistics.median(reading) / SUBSCRIPTIONS
            yield Measure(
                "… and then for each to read what the tick brought", f"{each * 1e6:.0f} µs"
            )


def rest() -> None:
    """Return when no thread of this process does anything: all that can block does."""
    busy = 1.0
    while busy > 0.002:
        before = time.process_time()
        time.sleep(0.05)
        busy = time.process_time() - before


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

    def close() -> None:
        for sub in subs:
            sub.close()
        for thread in threads:
            thread.join()

    settle()
    return settle, close
