"""Opening a state directory with ten years behind it, against an empty one.

Ten years of busy ticks, one every six hours (14,600 of them, each compacted in its turn to
the default window of a minute) leave what the window keeps and nothing else; opening reads
that. What a window costs in which ticks come every second, 60 bindings of four partitions,
is shown beside it. The directories are opened in turn, many times, in the same run.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.bindings import Bindings
from benchmarks.measure import Measure, seconds
from reclock.durable.remap_store import RemapStore
from reclock.durable.sqlite import DATABASE_FILE, open_sqlite
from reclock.ids import ObjectId
from reclock.remap.codec import KAFKA
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from reclock.durable.store import Store
    from reclock.remap.trace import Remap

SIX_HOURS = 6 * 3_600_000
YEARS = 10
TICKS = YEARS * 365 * 4
MINUTE = 60_000
ROUNDS = 40
REQUIRED = 1.5


def _remap(store: Store) -> RemapStore[KafkaPosition]:
    return RemapStore(store, ObjectId("u1"), KAFKA)


def _live(directory: Path, ticks: int, window: int = MINUTE) -> None:
    """Bind and compact for ``ticks`` ticks."""
    with open_sqlite(directory) as store:
        bindings = Bindings(store, "u1")
        for tick in range(1, ticks + 1):
            now = tick * SIX_HOURS
            frontier = KafkaPosition.frontier(dict.fromkeys(range(4), tick))
            bindings.bind(Timestamp(now), frontier)
            if now > window:
                bindings.compact(Timestamp(now - window))


def _open(directory: Path) -> Remap[KafkaPosition]:
    with open_sqlite(directory) as store:
        return _remap(store).load()


def run() -> list[Measure]:
    with tempfile.TemporaryDirectory() as home:
        old, full, new = (Path(home) / name for name in ("old", "full", "new"))
        _live(new, 0)
        _live(full, 200, window=60 * SIX_HOURS)
        lived = seconds(lambda: _live(old, TICKS))
        taken: dict[Path, list[float]] = {old: [], full: [], new: []}
        for _ in range(ROUNDS):
            for directory, times in taken.items():
                times.append(seconds(lambda: _open(directory)))  # noqa: B023
        kept = {directory: len(_open(directory).bindings) for directory in taken}
        size = (old / DATABASE_FILE).stat().st_size
    median = {directory: statistics.median(times) for directory, times in taken.items()}
    ratio = {directory: median[directory] / median[new] for directory in taken}
    return [
        Measure(
            f"opening after {YEARS} years ({TICKS:,} ticks) / opening empty",
            f"{median[old] * 1e3:.1f} ms / {median[new] * 1e3:.1f} ms = {ratio[old]:.2f}",
            "≤ 1.5",
            ratio[old] <= REQUIRED,
        ),
        Measure(
            f"opening with a window of {kept[full]} bindings / opening empty",
            f"{median[full] * 1e3:.1f} ms / {median[new] * 1e3:.1f} ms = {ratio[full]:.2f}",
        ),
        Measure(
            f"state after {YEARS} years",
            f"{kept[old]} bindings, {size / 1024:.0f} KiB (lived in {lived:.0f} s)",
        ),
    ]
