"""How long writers and readers wait while a statement computes: views, indexes, writes of queries.

Into a small table a row is written, and a view of it read, strictly, over and over: that is as fast
as ticks are. Beside it, one at a time, statements compute over a million rows: a materialized view,
an index, a subscription to a query, INSERT … SELECT, UPDATE and DELETE; and once more INSERT …
SELECT while its input changes all the time. Were they under the lock of the ticks, somebody would
wait as long as they take.

``RECLOCK_BENCH_ROWS`` is how many rows there are; by default a million.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import reclock
from benchmarks.measure import Measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock import Database

ROWS = int(os.environ.get("RECLOCK_BENCH_ROWS", "1000000"))
ALONE_SECONDS = 5.0
MOST = 0.34
"""The longest wait may be so much of what the statement takes."""

STATEMENTS = {
    "CREATE MATERIALIZED VIEW": (
        "CREATE MATERIALIZED VIEW made AS SELECT a.g, b.v % 100 AS r, count(*) AS n, sum(a.v) AS s "
        "FROM big a JOIN big b ON a.k = b.k GROUP BY a.g, b.v % 100"
    ),
    "CREATE INDEX": "CREATE INDEX ON big (v)",
    "SUBSCRIBE to a query": (
        "SUBSCRIBE (SELECT v % 1000 AS r, max(k) AS m FROM big GROUP BY v % 1000)"
    ),
    "INSERT … SELECT": "INSERT INTO results SELECT g, sum(v), count(*) FROM big GROUP BY g",
    "INSERT … SELECT of what changes": (
        "INSERT INTO results SELECT a.g, sum(a.v), count(*) FROM big a JOIN small b ON a.g = b.k "
        "GROUP BY a.g"
    ),
    "UPDATE": "UPDATE big SET v = v + 1 WHERE k % 100 = 7",
    "DELETE": "DELETE FROM big WHERE k % 100 = 8",
}


def _round_trips(db: Database, done: Callable[[], bool], numbers: Iterator[int]) -> list[float]:
    """Write and read until it is enough; return how long each took."""
    took = []
    with db.session() as session:
        while not done():
            begun = perf_counter()
            session.execute("INSERT INTO small VALUES ($1, 1)", [next(numbers)])
            session.execute("SELECT n FROM counted")
            took.append(perf_counter() - begun)
    return took


def _beside(db: Database, sql: str, numbers: Iterator[int]) -> tuple[float, list[float]]:
    """Return how long a statement took, and the round trips beside it."""
    seconds: list[float] = []
    errors: list[BaseException] = []

    def run() -> None:
        begun = perf_counter()
        try:
            with db.session() as session:
                if sql.startswith("SUBSCRIBE"):
                    next(iter(session.subscribe(sql)))
                else:
                    session.execute(sql)
        except BaseException as error:
            errors.append(error)
        seconds.append(perf_counter() - begun)

    thread = threading.Thread(target=run)
    thread.start()
    took = _round_trips(db, lambda: bool(seconds), numbers)
    thread.join()
    if errors:
        raise errors[0]
    return seconds[0], took


def run() -> Iterator[Measure]:
    """Measure, and check the rows that were written."""
    with (
        tempfile.TemporaryDirectory() as home,
        reclock.open(Path(home) / "state", background=True) as db,
    ):
        db.execute("ALTER SYSTEM SET timestamp_interval = '100ms'")
        db.execute("CREATE TABLE big (k bigint PRIMARY KEY, g int, v bigint)")
        db.execute("CREATE TABLE small (k bigint, a int)")
        db.execute("CREATE TABLE results (g int, s bigint, n bigint)")
        db.execute("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM small")
        keys = np.arange(ROWS)
        rows = {"k": keys, "g": (keys % 1_000).astype(np.int32), "v": keys * 7 % 100_003}
        db.insert("big", pa.table(rows))
        db.execute("SELECT n FROM counted")
        numbers = count()
        end = perf_counter() + ALONE_SECONDS
        alone = _round_trips(db, lambda: perf_counter() > end, numbers)
        yield Measure(
            "a write and a strict read, alone",
            f"p50 {statistics.median(alone) * 1e3:.0f} ms, longest {max(alone) * 1e3:.0f} ms",
        )
        for name, sql in STATEMENTS.items():
            seconds, took = _beside(db, sql, numbers)
            longest, usual = max(took), statistics.median(took)
            yield Measure(
                f"the same during {name} over {ROWS:,} rows",
                f"p50 {usual * 1e3:.0f} ms, longest {longest:.2f} s of {seconds:.1f} s",
                f"≤ {MOST:.0%} of it, or 1 s",
                longest <= max(1.0, MOST * seconds),
            )
