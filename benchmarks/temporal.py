"""What a temporal filter costs: stored records, ticks beside what waits, and renewal.

A view shows rows for thirty days; when a row ends is one of its columns, so that no time of Spark's
is in the figures. The same load goes into two databases, with retractions stored
(offset 0) and with an expiration of twenty days, tick by tick in turns, so that a busy machine is
busy for both. Then small ticks, each with some rows and some that come due, beside a million
pending updates and beside ten thousand; and small ticks before and while a renewal derives the
retractions of the million rows.

``RECLOCK_BENCH_ROWS`` is how many rows there are; by default a million.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa

import reclock
from benchmarks.measure import Measure, seconds

ROWS = int(os.environ.get("RECLOCK_BENCH_ROWS", "1000000"))
FEW = 10_000
TICKS = 10
ROUNDS = 40
DAY = 86_400_000
WIDTH = 30 * DAY
START = 1_000_000


class Loaded:
    """A database with the view, in which ticks are timed."""

    def __init__(self, home: Path, name: str, offset: str, *, renewal: bool = False) -> None:
        self.clock = reclock.ManualClock(START)
        path = home / name
        with reclock.open(path, clock=self.clock, background=False) as db:
            db.execute(f"ALTER SYSTEM SET compute_replica_expiration_offset = '{offset}'")
            db.execute(f"ALTER SYSTEM SET expiration_renewal = '{str(renewal).lower()}'")
            db.execute("ALTER SYSTEM SET timestamp_interval = '1ms'")
        self.db = reclock.open(path, clock=self.clock, background=False)
        self.db.execute("CREATE TABLE t (id bigint, ends bigint)")
        self.db.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM t WHERE mz_now() < ends")

    def insert(self, first: int, count: int, at: int) -> None:
        """Write rows of a time, which are to be seen for thirty days."""
        ids = np.arange(first, first + count)
        self.db.insert("t", pa.table({"id": ids, "ends": at + WIDTH + ids % 1_000}))

    def tick(self, forward: int = 1) -> float:
        """Return how long the next tick takes."""
        self.clock.advance(forward)
        return seconds(self.db.tick)

    def settle(self) -> None:
        """Wait for the merges that follow a load."""
        self.db._core.merger.wait()  # noqa: SLF001 - nothing public waits for it
        self.tick()

    def sizes(self) -> tuple[int, int]:
        """Return the records and bytes that are stored for the view."""
        sql = "SELECT records, bytes FROM reclock.arrangement_sizes WHERE object = 'v'"
        rows = self.db.execute(sql).rows
        return sum(records for records, _ in rows), sum(size for _, size in rows)


def run() -> list[Measure]:
    with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        whole, half = (Loaded(Path(home), name, offset, renewal=name == "half")
                       for name, offset in (("whole", "0"), ("half", "20 days")))  # fmt: skip
        for loaded in (whole, half):
            stack.callback(loaded.db.close)
        return [*_load(whole, half), *_beside(Path(home), whole, stack), _renewal(half)]


def _load(whole: Loaded, half: Loaded) -> list[Measure]:
    taken: dict[Loaded, list[float]] = {whole: [], half: []}
    for loaded in taken:
        loaded.insert(-1_000, 1_000, START)
        loaded.tick()
    for at in range(TICKS):
        for loaded, times in taken.items():
            loaded.insert(at * ROWS // TICKS, ROWS // TICKS, START)
            times.append(loaded.tick())
    (all_records, all_bytes), (records, size) = whole.sizes(), half.sizes()
    rows = ROWS + 1_000
    ticks = {loaded: sum(times) for loaded, times in taken.items()}
    ratio = ticks[half] / ticks[whole]
    return [
        Measure(
            f"stored records per row, {ROWS:,} rows, 30 days: offset 20 days, offset 0",
            f"{records / rows:.2f}, {all_records / rows:.2f}", "1.00, 2.00",
            records == rows and all_records == 2 * rows,
        ),
        Measure(
            "bytes stored for the view, offset 20 days / offset 0",
            f"{size / 1e6:.0f} MB / {all_bytes / 1e6:.0f} MB = {size / all_bytes:.2f}", "≤ 0.6",
            size <= 0.6 * all_bytes,
        ),
        Measure(
            "ticks of the load, offset 20 days / offset 0",
            f"{ticks[half]:.1f} s / {ticks[whole]:.1f} s = {ratio:.2f}", "≤ 0.6", ratio <= 0.6,
        ),
    ]  # fmt: skip


def _beside(home: Path, whole: Loaded, stack: ExitStack) -> list[Measure]:
    """Time ticks with a million updates waiting, and with ten thousand."""
    few = Loaded(home, "few", "0")
    stack.callback(few.db.close)
    few.insert(0, FEW, START)
    few.tick()
    taken: dict[Loaded, list[float]] = {whole: [], few: []}
    idle: dict[Loaded, list[float]] = {whole: [], few: []}
    for loaded in taken:
        loaded.settle()
    for n in range(ROUNDS):
        for loaded in (whole, few):
            now = loaded.clock.now_ms()
            loaded.insert(10**9 + n * 100, 100, now + 1_000 - WIDTH)  # due a little later
            taken[loaded].append(loaded.tick(50))
            idle[loaded].append(loaded.tick(1))
    made = []
    for name, times in (("with 100 rows, and 5 due", taken), ("idle", idle)):
        a, b = (statistics.median(times[loaded][ROUNDS // 4 :]) for loaded in (whole, few))
        made.append(Measure(
            f"a tick {name}, {ROWS:,} pending / {FEW:,} pending",
            f"{a * 1e3:.1f} ms / {b * 1e3:.1f} ms = {a / b:.2f}", "≤ 1.2", a / b <= 1.2,
        ))  # fmt: skip
    return made


def _renewal(half: Loaded) -> Measure:
    """Time small ticks before the last tenth of the window, and while it is renewed."""
    half.settle()
    before, during = [], []
    expirations = half.db._core.expirations  # noqa: SLF001 - nothing public says it is busy
    for n in range(ROUNDS):
        half.insert(2 * 10**9 + n * 100, 100, START)
        before.append(half.tick())
    half.clock.advance(19 * DAY)
    began = perf_counter()
    n = 0
    while n == 0 or expirations.is_busy:
        half.insert(3 * 10**9 + n * 100, 100, START)
        during.append(half.tick())
        n += 1
    lasted = perf_counter() - began
    a, b = statistics.median(during[:-1] or during), statistics.median(before[ROUNDS // 4 :])
    return Measure(
        f"a tick of 100 rows while {ROWS:,} rows are renewed ({lasted:.1f} s) / before",
        f"{a * 1e3:.1f} ms / {b * 1e3:.1f} ms = {a / b:.2f}", "< 1.3", a / b < 1.3,
    )  # fmt: skip
