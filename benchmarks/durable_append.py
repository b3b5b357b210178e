"""One durable append against a bare SQLite commit on the same disk, in the same run.

The bare commit is the least a durable write can cost: one INSERT of a row of the same
size, WAL, ``synchronous=FULL``. Ours compares the upper, appends the bindings of a
four-partition source and advances the upper. The two are interleaved, so that a disk that
has a bad moment is bad for both.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
from pathlib import Path

from benchmarks.bindings import Bindings
from benchmarks.measure import Measure, seconds
from reclock.durable.sqlite import open_sqlite
from reclock.remap.codec import KAFKA
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Timestamp

ROUNDS = 1_000
REQUIRED = 3.0


def run() -> list[Measure]:
    with tempfile.TemporaryDirectory() as directory:
        bare = sqlite3.connect(Path(directory) / "bare.db", isolation_level=None)
        bare.execute("PRAGMA journal_mode = WAL")
        bare.execute("PRAGMA synchronous = FULL")
        bare.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, data TEXT, at INTEGER)")
        store = open_sqlite(Path(directory) / "state")
        busy = Bindings(store, "u1")
        idle = Bindings(store, "u2")
        taken: dict[str, list[float]] = {"bare": [], "busy": [], "idle": [], "compact": []}
        for i in range(1, ROUNDS + 1):
            row = (KAFKA.encode(KafkaPosition.exact(0, i)), i)
            insert = "INSERT INTO rows (data, at) VALUES (?, ?)"
            taken["bare"].append(seconds(lambda: bare.execute(insert, row)))  # noqa: B023
            time = Timestamp(i)
            frontier = KafkaPosition.frontier(dict.fromkeys(range(4), i))
            taken["busy"].append(seconds(lambda: busy.bind(time, frontier)))  # noqa: B023
            taken["idle"].append(seconds(lambda: idle.bind(time, KAFKA.origin)))  # noqa: B023
            if i > 60:
                since = Timestamp(i - 60)
                taken["compact"].append(seconds(lambda: busy.compact(since)))  # noqa: B023
        store.close()
        bare.close()
    median = {name: statistics.median(times) for name, times in taken.items()}
    ratio = {name: median[name] / median["bare"] for name in median}
    return [
        Measure("bare SQLite commit", f"{median['bare'] * 1e3:.2f} ms"),
        Measure(
            "durable append of bindings, 4 partitions",
            f"{median['busy'] * 1e3:.2f} ms, {ratio['busy']:.2f} × bare",
            "≤ 3 × bare",
            ratio["busy"] <= REQUIRED,
        ),
        Measure(
            "durable append while idle",
            f"{median['idle'] * 1e3:.2f} ms, {ratio['idle']:.2f} × bare",
            "≤ 3 × bare",
            ratio["idle"] <= REQUIRED,
        ),
        Measure(
            "durable compaction of one tick",
            f"{median['compact'] * 1e3:.2f} ms, {ratio['compact']:.2f} × bare",
        ),
    ]
