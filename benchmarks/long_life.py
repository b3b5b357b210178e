"""A database that has lived long: how large its state is, and how long opening it takes.

Time is simulated, everything else is real but the engine: views are computed by the model
(``engines.model_engine``), which has no start-up time that would hide what is
measured. A day is ticks every thirty seconds, each with changes that replace earlier ones, under
the default window of a minute; the largest state of its last hour is compared with that after its
first minute. ``RECLOCK_BENCH_TICKS=1000000`` opens a database with a million ticks behind it; by
default there are 20 thousand, one in a hundred with changes.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import reclock
from benchmarks.measure import Measure, seconds
from engines.model_engine import ModelEngine
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator

TICKS = int(os.environ.get("RECLOCK_BENCH_TICKS", "20000"))
FEW = 10
ROUNDS = 15
MINUTE_TICKS = 2
HOUR_TICKS = 120
DAY_TICKS = 24 * HOUR_TICKS
ROWS = 40
CHANGED = 10


class Life:
    """A database over simulated time."""

    def __init__(self, path: Path, interval: int) -> None:
        self.path = path
        self._clock = reclock.ManualClock(1_000)
        self._interval = interval
        self._ticks = 0
        self.db = self.open()
        self.db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT)")
        self.db.execute("CREATE MATERIALIZED VIEW v AS SELECT a % 10 AS d, count(*) AS n FROM t "
                        "GROUP BY a % 10")  # fmt: skip
        self.db.execute("CREATE INDEX ON t (a)")
        self.db.insert("t", [(k, k) for k in range(ROWS)])

    def open(self) -> Database:
        """Open it as it is."""
        return Database(self.path, ModelEngine(), clock=self._clock, background=False)

    def tick(self, *, change: bool) -> None:
        """Let one interval pass, with changes in it or without."""
        self._ticks += 1
        if change:
            low = self._ticks * CHANGED % ROWS
            sql = "UPDATE t SET a = a + 1 WHERE k >= $1 AND k < $2"
            self.db.execute(sql, (low, low + CHANGED))
        self._clock.advance(self._interval)
        self.db.tick()

    def size(self) -> int:
        """Return the bytes on disk."""
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())


def _day(home: Path) -> Measure:
    life = Life(home / "day", 30_000)
    sizes = []
    for _ in range(DAY_TICKS):
        life.tick(change=True)
        sizes.append(life.size())
    life.db.close()
    first, last = sizes[MINUTE_TICKS - 1], max(sizes[-HOUR_TICKS:])
    figure = f"{last / 1024:.0f} KiB / {first / 1024:.0f} KiB = {last / first:.2f}"
    name = f"state after 24 hours ({DAY_TICKS:,} ticks with changes) / after one minute"
    return Measure(name, figure, "≤ 1.5", last / first <= 1.5)


def _opening(home: Path) -> Measure:
    lives = {}
    for ticks in (TICKS, FEW):
        life = lives[ticks] = Life(home / str(ticks), 1_000)
        for tick in range(ticks):
            life.tick(change=tick % 100 == 0)
        life.db.close()
    taken: dict[int, list[float]] = {ticks: [] for ticks in lives}
    for _ in range(ROUNDS):
        for ticks, life in lives.items():
            taken[ticks].append(seconds(lambda: life.open().close()))  # noqa: B023
    old, new = (statistics.median(taken[ticks]) for ticks in (TICKS, FEW))
    figure = f"{old * 1e3:.1f} ms / {new * 1e3:.1f} ms = {old / new:.2f}"
    name = f"opening after {TICKS:,} ticks / after {FEW}"
    return Measure(name, figure, "≤ 1.5", old / new <= 1.5)


def run() -> Iterator[Measure]:
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        yield _opening(home)
        yield _day(home)
