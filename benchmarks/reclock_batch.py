"""Batch reclocking: how many offsets a second get their time, on one core.

Offsets of one partition through ``remap.batch``, for few and many bindings, in order (as
a topic is read) and shuffled (the hard case: every look-up misses the cache line of the
one before).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measure import Measure, median_seconds
from reclock.remap.batch import steps_of, times_of
from reclock.remap.codec import KAFKA
from reclock.remap.trace import Binding, Remap
from reclock.time.antichain import Antichain
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reclock.remap.batch import Steps

OFFSETS = 10_000_000
PER_BATCH = 1_000_000
REQUIRED = 20_000_000


def _remap(bindings: int) -> Remap[KafkaPosition]:
    step = OFFSETS // bindings
    made = [Binding(Timestamp(0), KAFKA.origin)]
    made += [
        Binding(Timestamp(i * 1_000), KafkaPosition.frontier({0: i * step, 1: i}))
        for i in range(1, bindings + 1)
    ]
    upper = Antichain.of(made[-1].time.step())
    return Remap(KAFKA.origin, Timestamp(0), upper, tuple(made))


def _reclock(steps: Steps, batches: list[NDArray[np.int64]]) -> None:
    for batch in batches:
        times_of(steps, batch)


def run() -> list[Measure]:
    measures = []
    shuffled = np.random.default_rng(7).permutation(OFFSETS)
    for bindings in (60, 3_600, 86_400):
        steps = steps_of(_remap(bindings), 0)
        for order, offsets in (("in order", np.arange(OFFSETS)), ("shuffled", shuffled)):
            batches = [offsets[i : i + PER_BATCH] for i in range(0, OFFSETS, PER_BATCH)]
            work = partial(_reclock, steps, batches)
            took = median_seconds(work, repeat=3)
            rate = OFFSETS / took
            required = order == "in order"
            measures.append(
                Measure(
                    f"batch reclock, {bindings:,} bindings, {order}",
                    f"{rate / 1e6:.0f} million offsets/s",
                    "≥ 20 million offsets/s" if required else "",
                    rate >= REQUIRED if required else None,
                )
            )
    return measures
