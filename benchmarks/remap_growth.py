"""A million ticks: the number of stored bindings depends on the window, not on the past.

Busy ticks move every partition, idle ones move none; both compact to ``now − window``
after every tick, as the engine does. In memory, so that the rules and not a disk are measured.
"""

from __future__ import annotations

from benchmarks.measure import Measure, seconds
from reclock.remap.codec import KAFKA
from reclock.remap.trace import Remap
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Timestamp

TICKS = 1_000_000
INTERVAL = 1_000
WINDOW = 60_000
PARTITIONS = 4


def _simulate(*, busy_every: int) -> tuple[int, int, float]:
    """Return the number of bindings after 1 % and after all ticks, and the time per tick."""
    remap = Remap.unbound(KAFKA.origin)
    early = 0

    def work() -> None:
        nonlocal early, remap
        frontier = KAFKA.origin
        for tick in range(1, TICKS + 1):
            if tick % busy_every == 0:
                frontier = KafkaPosition.frontier(dict.fromkeys(range(PARTITIONS), tick))
            now = tick * INTERVAL
            remap = remap.bound(Timestamp(now), frontier)
            if now > WINDOW:
                remap = remap.compacted(Timestamp(now - WINDOW))
            if tick == TICKS // 100:
                early = len(remap.bindings)

    took = seconds(work)
    return early, len(remap.bindings), took / TICKS


def run() -> list[Measure]:
    measures = []
    for name, busy_every in (("busy", 1), ("busy and idle", 10), ("idle", TICKS + 1)):
        early, late, each = _simulate(busy_every=busy_every)
        measures.append(
            Measure(
                f"bindings after {TICKS:,} {name} ticks (after {TICKS // 100:,}: {early})",
                f"{late}, {each * 1e6:.0f} µs a tick",
                "constant",
                late == early,
            )
        )
    return measures
