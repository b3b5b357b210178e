"""What an arrangement costs: probes and look-ups as the state grows, builds, merges.

A probe asks a shard for 10,000 keys, as a tick with that many changed rows does. The
shard's pages are in memory, the processor's cache is not warm: between two probes it is
filled with something else, as the rest of a tick would do. The least of many runs counts,
because the machine may be busy with other things.
"""

from __future__ import annotations

import tempfile
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measure import Measure, seconds
from graphs.build import build
from reclock.arrangement.cache import RunCache
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import Layout
from reclock.arrangement.merge import merge
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.shard import Shard
from reclock.arrangement.store import LocalStore
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.arrangement.run import RunRef

LAYOUT = Layout.of(
    {"id": pa.int64()},
    {"customer": pa.int64(), "amount": pa.decimal128(12, 2), "name": pa.string()},
)
CHANGED = 10_000
SIZES = (100_000, 1_000_000, 10_000_000)


def at(time: int) -> Antichain[Timestamp]:
    return Antichain.of(Timestamp(time))


SPAN = Description(at(0), at(1), at(0))


def hashed(keys: np.ndarray) -> np.ndarray:
    """Mix integers into 64 bits (splitmix64), as xxhash64 would."""
    z = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).view(np.int64)


def updates(keys: np.ndarray, time: int) -> pa.Table:
    size = len(keys)
    small = pa.array((keys % 1_000_000).astype(np.int32))
    amounts = small.cast(pa.decimal128(10, 0)).cast(pa.decimal128(12, 2))
    names = pc.binary_join_element_wise("name", small.cast(pa.string()), "-")
    times, diffs = np.full(size, time), np.ones(size, np.int64)
    columns = [hashed(keys), keys, keys % 1_000, amounts, names, times, diffs]
    return pa.Table.from_arrays([pa.array(c) for c in columns], schema=LAYOUT.schema)


def least(work: Callable[[], object], times: int) -> float:
    """Return the seconds of the fastest run, each after the processor's cache was used."""
    other = np.ones(8 << 20)
    return min(seconds(work) for _ in range(times) if other.sum())


def write(store: LocalStore, rows: int, count: int) -> list[RunRef]:
    """Write a shard of ``rows`` as ``count`` runs, each a quarter of the one before."""
    refs: list[RunRef] = []
    keys = np.arange(rows)
    shares = np.cumsum([0, *(0.25**i for i in range(count))])
    bounds = (shares / shares[-1] * rows).astype(int)
    for time in range(count):
        table = updates(keys[bounds[time] : bounds[time + 1]], time)
        with SegmentWriter(store, f"t{rows}-{count}-{time}") as writer:
            description = Description(at(time), at(time + 1), at(0))
            build(writer, "bench/0", LAYOUT, table, description)
            refs += writer.finish()
    return refs


def probes(store: LocalStore, count: int) -> tuple[list[float], float]:
    """Return the seconds of a probe at each size, and of a look-up of one key at the last."""
    rng = np.random.default_rng(0)
    took = []
    point = 0.0
    for rows in SIZES:
        shard = Shard.open(LAYOUT, write(store, rows, count), store, RunCache())
        keys = [rng.integers(0, rows, CHANGED) for _ in range(8)]
        asked = cycle(pa.table([hashed(k), k], names=["kh", "id"]) for k in keys)
        took.append(least(lambda: shard.lookup(next(asked)), 40))  # noqa: B023
        now = Timestamp(count - 1)
        point = least(lambda: shard.lookup_at(next(asked).slice(0, 1), now), 40)  # noqa: B023
    return took, point


def run() -> list[Measure]:
    measures = []
    with tempfile.TemporaryDirectory() as directory:
        store = LocalStore(Path(directory))
        for count in (1, 4):
            took, point = probes(store, count)
            figures = ", ".join(f"{t * 1e3:.1f}" for t in took)
            ratio = took[-1] / took[0]
            measures += [
                Measure(
                    f"probe of 10,000 keys in 0.1, 1, 10 million rows, {count} runs",
                    f"{figures} ms, last/first {ratio:.2f}",
                ),
                Measure(
                    f"look-up of one key in 10 million rows, {count} runs",
                    f"{point * 1e3:.2f} ms",
                    "≤ 5 ms",
                    point <= 0.005,
                ),
            ]
        rows = 1_000_000
        keys = np.random.default_rng(0).permutation(rows)
        table = LAYOUT.conform(updates(keys, 0))
        unique = least(lambda: consolidate(LAYOUT, table), 3)
        twice = LAYOUT.conform(updates(keys // 2, 0))
        pairs = least(lambda: consolidate(LAYOUT, twice), 3)

        def build_one() -> None:
            with SegmentWriter(store, "built") as writer:
                build(writer, "bench/0", LAYOUT, pa.Table.from_batches([table]), SPAN)
                writer.finish()

        built = least(build_one, 3)
        cache = RunCache()
        runs = [cache.open(store, ref, LAYOUT) for ref in write(store, SIZES[-1], 4)]

        def merge_all() -> None:
            with SegmentWriter(store, "merged") as writer:
                merge(writer, "bench/0", LAYOUT, runs, at(3))
                writer.finish()

        merged = seconds(merge_all)
    return [
        *measures,
        Measure("consolidate 1 million distinct rows", f"{unique:.2f} s", "≤ 1 s", unique <= 1),
        Measure("consolidate 1 million rows, all in pairs", f"{pairs:.2f} s"),
        Measure("build and write a run", f"{rows / built / 1e6:.2f} million rows/s"),
        Measure(
            "merge 4 runs of 10 million rows in all",
            f"{SIZES[-1] / merged / 1e6:.2f} million rows/s",
        ),
    ]
