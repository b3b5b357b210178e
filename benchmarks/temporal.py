"""What a temporal filter costs: stored records, ticks beside what waits, and renewal.

A view shows rows for thirty days; when a row ends is one of its columns, so that no time of Spark's
is in the figures. The same load goes into two databases, with retractions stored
(offset 0) and with an expiration of twenty days, tick by tick in turns, so that a busy machine is
busy for both. Then small ticks, each with some rows and some that come due, beside a million
pending updates and beside ten thousand, in turns too; and small ticks before, while and after a
renewal derives the retractions of the million rows. Their own rows end beyond every window, so
that those ticks differ in what runs beside them alone.

No tick is timed while a merge is under way. Each ratio of times is of the clock and, in brackets,
of the processor time of the thread that ticks: on a busy machine the second one means more.

``RECLOCK_BENCH_ROWS`` is how many rows there are; by default a million.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

import reclock
from benchmarks.measure import Measure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROWS = int(os.environ.get("RECLOCK_BENCH_ROWS", "1000000"))
FEW = 10_000
TICKS = 10
ROUNDS = 60
DAY = 86_400_000
WIDTH = 30 * DAY
START = 1_000_000


class Took(NamedTuple):
    """How long something took by the clock, and how long its thread worked."""

    wall: float
    cpu: float


class Loaded:
    """A database with the view, in which ticks are timed."""

    def __init__(
        self, home: Path, name: str, offset: str, *, renewal: bool = False, columns: str = "*"
    ) -> None:
        self.clock = reclock.ManualClock(START)
        path = home / name
        with reclock.open(path, clock=self.clock, background=False) as db:
            db.execute(f"ALTER SYSTEM SET compute_replica_expiration_offset = '{offset}'")
            db.execute(f"ALTER SYSTEM SET expiration_renewal = '{str(renewal).lower()}'")
            db.execute("ALTER SYSTEM SET timestamp_interval = '1ms'")
        self.db = reclock.open(path, clock=self.clock, background=False)
        self.db.execute("CREATE TABLE t (id bigint, ends bigint)")
        self.db.execute(
            f"CREATE MATERIALIZED VIEW v AS SELECT {columns} FROM t WHERE mz_now() < ends"
        )

    def insert(self, first: int, count: int, at: int) -> None:
        """Write rows of a time, which are to be seen for thirty days."""
        ids = np.arange(first, first + count)
        self.db.insert("t", pa.table({"id": ids, "ends": at + WIDTH + ids % 1_000}))

    def tick(self, forward: int = 1) -> Took:
        """Return how long the next tick takes."""
        self.clock.advance(forward)
        wall, cpu = perf_counter(), thread_time()
        self.db.tick()
        return Took(perf_counter() - wall, thread_time() - cpu)

    def merged(self) -> None:
        """Wait for the merges that are under way."""
        self.db._core.merger.wait()  # noqa: SLF001 - nothing public waits for it

    def settle(self) -> None:
        """Wait for the merges that follow a load."""
        self.merged()
        self.tick()

    def sizes(self) -> tuple[int, int]:
        """Return the records and bytes that are stored for the view."""
        sql = "SELECT records, bytes FROM reclock.arrangement_sizes WHERE object = 'v'"
        rows = self.db.execute(sql).rows
        return sum(records for records, _ in rows), sum(size for _, size in rows)

    def written(self) -> int:
        """Return the bytes of the file that the last tick wrote."""
        found = [f for f in self.db._core.segments.names() if f.startswith("tick-")]  # noqa: SLF001
        newest = max(found, key=lambda f: int(f.split("-")[2]), default=None)
        if newest is None:
            return 0
        return len(self.db._core.segments.map(newest))  # noqa: SLF001


def run() -> list[Measure]:
    with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        whole, half = (Loaded(Path(home), name, offset, renewal=name == "half")
                       for name, offset in (("whole", "0"), ("half", "20 days")))  # fmt: skip
        for loaded in (whole, half):
            stack.callback(loaded.db.close)
        measures = [*_load(whole, half), *_beside(Path(home), whole, stack), *_renewal(half)]
    return [*measures, *_projected()]


def _projected() -> list[Measure]:
    """Load a view that has other columns than its table, and so shares no runs with it."""
    with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        whole, half = (Loaded(Path(home), name, offset, columns="ends, id")
                       for name, offset in (("whole", "0"), ("half", "20 days")))  # fmt: skip
        for loaded in (whole, half):
            stack.callback(loaded.db.close)
        *_, written, ticks = _load(whole, half)
        return [
            replace(measure, name=f"a view of other columns: {measure.name}",
                    requirement="", met=None)
            for measure in (written, ticks)
        ]  # fmt: skip


def _load(whole: Loaded, half: Loaded) -> list[Measure]:
    taken: dict[Loaded, list[Took]] = {whole: [], half: []}
    written = {whole: 0, half: 0}
    for loaded in taken:
        loaded.insert(-1_000, 1_000, START)
        loaded.tick()
    for at in range(TICKS):
        for loaded, times in _in_turns(taken, at):
            loaded.insert(at * ROWS // TICKS, ROWS // TICKS, START)
            for other in taken:
                other.merged()
            times.append(loaded.tick())
            written[loaded] += loaded.written()
    (all_records, all_bytes), (records, size) = whole.sizes(), half.sizes()
    rows = ROWS + 1_000
    ratio = written[half] / written[whole]
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
            "bytes written by the ticks of the load, table and view, offset 20 days / offset 0",
            f"{written[half] / 1e6:.0f} MB / {written[whole] / 1e6:.0f} MB = {ratio:.2f}",
            "≤ 0.6", ratio <= 0.6,
        ),
        _compared(
            "ticks of the load, offset 20 days / offset 0", taken[half], taken[whole], "≤ 0.6", 0.6,
            of=sum,
        ),
    ]  # fmt: skip


def _beside(home: Path, whole: Loaded, stack: ExitStack) -> list[Measure]:
    """Time ticks with a million updates waiting, and with ten thousand."""
    few = Loaded(home, "few", "0")
    stack.callback(few.db.close)
    few.insert(0, FEW, START)
    few.tick()
    taken: dict[Loaded, list[Took]] = {whole: [], few: []}
    idle: dict[Loaded, list[Took]] = {whole: [], few: []}
    for loaded in taken:
        loaded.settle()
    for n in range(ROUNDS):
        for loaded, times in _in_turns(taken, n):
            now = loaded.clock.now_ms()
            loaded.insert(10**9 + n * 100, 100, now + 1_000 - WIDTH)  # due a little later
            for other in taken:
                other.merged()
            times.append(loaded.tick(50))
            idle[loaded].append(loaded.tick(1))
    return [
        _compared(
            f"a tick {name}, {ROWS:,} pending / {FEW:,} pending",
            times[whole][ROUNDS // 4 :], times[few][ROUNDS // 4 :], "≤ 1.2", 1.2,
        )
        for name, times in (("with 100 rows, and 5 due", taken), ("idle", idle))
    ]  # fmt: skip


def _renewal(half: Loaded) -> list[Measure]:
    """Time small ticks before and after the view is renewed, and while it is."""
    half.settle()
    expirations = half.db._core.expirations  # noqa: SLF001 - nothing public says it is busy
    count = 0

    def tick() -> Took:
        nonlocal count
        half.insert(2 * 10**9 + count * 100, 100, START + 70 * DAY)
        count += 1
        half.merged()
        return half.tick()

    calm = [tick() for _ in range(ROUNDS)][ROUNDS // 4 :]
    half.clock.advance(19 * DAY)
    began = perf_counter()
    during = [tick()]
    while expirations.is_busy:
        during.append(tick())
    lasted = perf_counter() - began
    calm += [tick() for _ in range(ROUNDS)][ROUNDS // 4 :]
    name = f"a tick of 100 rows while {ROWS:,} rows are renewed ({lasted:.1f} s) / before and after"
    beside = during[1:-1] or during
    return [
        _compared(f"{name}: median of {len(beside)}", beside, calm, "< 1.3", 1.3),
        _compared(f"{name}: 90th percentile", beside, calm, "< 1.3", 1.3, of=_ninth),
    ]


def _in_turns(taken: dict[Loaded, list[Took]], nth: int) -> list[tuple[Loaded, list[Took]]]:
    """Return databases and their times, each the first one every other time."""
    return list(taken.items())[:: 1 if nth % 2 else -1]


def _ninth(times: Sequence[float]) -> float:
    return sorted(times)[len(times) * 9 // 10]


def _compared(
    name: str,
    these: Sequence[Took],
    those: Sequence[Took],
    requirement: str,
    most: float,
    *,
    of: Callable[[list[float]], float] = statistics.median,
) -> Measure:
    """Return the ratio of the times of some ticks and of others, by the clock and by the CPU."""
    one, other = (of([t.wall for t in times]) * 1e3 for times in (these, those))
    cpu = of([t.cpu for t in these]) / of([t.cpu for t in those])
    ratio = one / other
    figure = f"{one:.1f} ms / {other:.1f} ms = {ratio:.2f} ({cpu:.2f})"
    return Measure(name, figure, requirement, ratio <= most)
