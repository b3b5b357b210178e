"""What keeping views costs: as the state grows, against Spark, and for many views at once.

Everything goes through ``reclock.open``; only ``tick`` is timed unless a line says otherwise.
Where two things are compared they take turns in the same process, so that a busy machine is
busy for both, and medians count, after rounds that do not, and after the merges that follow a
first load. A round changes half as many
rows as it says by adding new ones, and half by taking away those of the round before.

``RECLOCK_BENCH_ROWS=10000000`` is the full run; by default the large state has a million
rows, which takes a few minutes. The ratio that is required between the large state and the
small one (100 thousand rows) is the same for both.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy

import reclock
from benchmarks.measure import Measure, median_seconds, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

SMALL = 100_000
LARGE = int(os.environ.get("RECLOCK_BENCH_ROWS", "1000000"))
ROUNDS = int(os.environ.get("RECLOCK_BENCH_ROUNDS", "15"))
WARM_UP = 6
WARM_JOBS = 50
"""After so many jobs Spark's own code is compiled, and an empty one as fast as it gets."""
CHUNK = 1_000_000

JOINED = "orders o JOIN customers c ON o.customer = c.id"
TOTALS = f"SELECT c.region, count(*) AS n, sum(o.amount) AS s FROM {JOINED} GROUP BY c.region"
DOUBLED = TOTALS.replace("o.amount", "o.amount * 2")
ROWS = f"SELECT o.id, c.region, o.amount FROM {JOINED}"
GROWING = {
    "join + aggregate": (10_000, TOTALS),
    "count": (1_000, "SELECT customer, count(*) AS n FROM orders GROUP BY customer"),
    "sum": (1_000, "SELECT customer, sum(amount) AS s FROM orders GROUP BY customer"),
    "min and max": (1_000, "SELECT batch, min(amount) AS a, max(id) AS b FROM orders GROUP BY 1"),
    "top 10": (1_000, "SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 10"),
    "distinct": (1_000, "SELECT DISTINCT customer, amount FROM orders"),
    "left outer join": (
        1_000,
        "SELECT o.id, c.region FROM orders o LEFT JOIN customers c ON o.customer = c.id",
    ),
}
AGGREGATES = ("count(*)", "sum(amount)", "avg(amount)", "sum(id)", "count(customer)")
PLAIN = [
    f"SELECT {key}, {aggregate} AS x FROM orders GROUP BY {key}"
    for aggregate in AGGREGATES
    for key in ("customer", "amount", "batch", "customer, amount")
]
COMPUTED = [f"SELECT amount % {i} AS k, sum(id) AS x FROM orders GROUP BY 1" for i in range(2, 22)]


class Shop:
    """A database of orders and customers, one customer for ten orders."""

    def __init__(self, directory: Path, rows: int) -> None:
        self.rows = rows
        self.directory = directory
        self._customers = rows // 10
        self._next, self._batch = rows, 0
        self._clock = reclock.ManualClock(1_000)
        self.db = reclock.open(directory, clock=self._clock, background=False)
        columns = "customer BIGINT NOT NULL, amount BIGINT NOT NULL, batch BIGINT NOT NULL"
        self.db.execute(f"CREATE TABLE orders (id BIGINT PRIMARY KEY, {columns})")
        self.db.execute("CREATE TABLE customers (id BIGINT PRIMARY KEY, region TEXT NOT NULL)")
        self.db.execute("CREATE INDEX ON orders (batch)")
        self.db.execute("CREATE INDEX ON orders (customer)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    def orders(self, first: int, count: int, batch: int) -> pa.Table:
        """Return orders with ids from ``first`` on; a batch of the load is one in a hundred."""
        ids = np.arange(first, first + count)
        mixed = ids * 7_919 + 13
        batches = ids % 100 - 100 if batch == 0 else np.full(count, batch)
        return pa.table(
            {
                "id": ids,
                "customer": mixed % self._customers,
                "amount": (mixed // 7) % 1_000,
                "batch": batches,
            }
        )

    def customers(self) -> pa.Table:
        """Return the customers, of a hundred regions."""
        ids = np.arange(self._customers)
        return pa.table({"id": ids, "region": [f"region {i % 100}" for i in ids]})

    def load(self) -> float:
        """Fill the tables; return how many seconds that took."""

        def work() -> None:
            self.db.insert("customers", self.customers())
            for first in range(0, self.rows, CHUNK):
                self.db.insert("orders", self.orders(first, min(CHUNK, self.rows - first), 0))
                self._advance()

        return seconds(work)

    def view(self, name: str, query: str) -> float:
        """Create a view; return how many seconds that took."""
        return seconds(lambda: self.db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}"))

    def change(self, count: int) -> None:
        """Change orders; the next tick has the change."""
        added = max(count // 2, 1)
        self._batch += 1
        if count > 1:
            self.db.execute("DELETE FROM orders WHERE batch = $1", (self._batch - 1,))
        self.db.insert("orders", self.orders(self._next, added, self._batch))
        self._next += added

    def tick(self, count: int) -> float:
        """Change orders and return how many seconds the tick took."""
        self.change(count)
        return seconds(self._advance)

    def settle(self) -> None:
        """Let the merges that a load has left to do come to their end."""
        for _ in range(2):
            self.tick(2)
            self.db._core.merger.wait()  # noqa: SLF001

    def _advance(self) -> None:
        self._clock.advance(1_000)
        self.db.tick()


def turns(*work: Callable[[], float]) -> list[float]:
    """Return the median of what each returns, taking turns, after rounds that do not count."""
    taken = [[one() for one in work] for _ in range(WARM_UP + ROUNDS)][WARM_UP:]
    return [statistics.median(times) for times in zip(*taken, strict=True)]


def ratio(name: str, one: float, other: float, most: float, required: str | None = None) -> Measure:
    """Return the line that compares two durations."""
    figure = f"{one * 1e3:.1f} ms / {other * 1e3:.1f} ms = {one / other:.2f}"
    return Measure(name, figure, required or f"≤ {most:g}", one / other <= most)


@contextmanager
def largest_resident() -> Iterator[dict[str, int]]:
    """Give the largest memory of this process, by kind, in KiB, once the block has ended."""
    largest = {"RssAnon": 0, "RssFile": 0}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            for line in Path("/proc/self/status").read_text().splitlines():
                kind, _, size = line.partition(":")
                if kind in largest:
                    largest[kind] = max(largest[kind], int(size.split()[0]))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield largest
    finally:
        done.set()
        watcher.join()


@contextmanager
def counted_syncs() -> Iterator[list[str]]:
    """Give a list that gets an entry per fsync, of ours or of a durable commit."""
    seen: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        seen.append("fsync")
        real(fd)

    def commit(_: object) -> None:
        seen.append("commit")

    os.fsync = fsync
    sqlalchemy.event.listen(sqlalchemy.Engine, "commit", commit)
    try:
        yield seen
    finally:
        os.fsync = real
        sqlalchemy.event.remove(sqlalchemy.Engine, "commit", commit)


def spark_as_it_comes(shop: Shop) -> SparkSession:
    """Return a session of the database's Spark with Spark's own defaults."""
    session: SparkSession = shop.db.dataframe("SELECT 1").sparkSession
    return session.newSession()


def loading(shop: Shop) -> list[Measure]:
    with largest_resident() as largest:
        took = shop.load()
    peak = ", ".join(f"{kind} {size / 1024:.0f} MiB" for kind, size in largest.items())
    stored = sum(file.stat().st_size for file in shop.directory.rglob("*") if file.is_file())
    return [
        Measure(
            f"load of {shop.rows:,} orders into a table with two indexes",
            f"{shop.rows / took / 1e3:.0f} thousand rows/s",
        ),
        Measure("largest memory of the process meanwhile", f"{peak}; {stored >> 20} MiB on disk"),
        first_load(shop, "join + aggregate", TOTALS),
        first_load(shop, "join + aggregate with an expression", DOUBLED),
    ]


def first_load(shop: Shop, name: str, query: str) -> Measure:
    """Create a view twice, and return how fast it was the second time."""
    for _ in range(2):
        made = shop.view("v", query)
        shop.db.execute("DROP MATERIALIZED VIEW v")
    speed = shop.rows / made
    return Measure(
        f"first load of a {name} view over {shop.rows:,} orders",
        f"{speed / 1e3:.0f} thousand rows/s",
        "≥ 400 thousand rows/s",
        speed >= 400_000,
    )


def growing(small: Shop, large: Shop) -> Iterator[Measure]:
    """Compare ticks of the two states, one kind of view after the other."""
    for name, (count, query) in GROWING.items():
        for shop in (small, large):
            shop.view("v", query)
            shop.settle()
        at_small, at_large = turns(lambda: small.tick(count), lambda: large.tick(count))  # noqa: B023
        for shop in (small, large):
            shop.db.execute("DROP MATERIALIZED VIEW v")
        sizes = f"{large.rows:,} / {small.rows:,} orders"
        yield ratio(f"{name}: tick of {count:,} rows, {sizes}", at_large, at_small, 1.2)


def against_recomputing(shop: Shop) -> Iterator[Measure]:
    shop.view("v", ROWS)
    (tick,) = turns(lambda: shop.tick(1))
    shop.db.execute("DROP MATERIALIZED VIEW v")
    spark = spark_as_it_comes(shop)
    for name, table in (("customers", shop.customers()), ("orders", shop.orders(0, shop.rows, 0))):
        file = shop.directory / f"{name}.parquet"
        pq.write_table(table, file)
        spark.read.parquet(str(file)).createOrReplaceTempView(name)
    again = spark.sql(ROWS).write.format("noop").mode("overwrite")
    again.save()
    batch = median_seconds(again.save, 3)
    figure = f"{batch * 1e3:.0f} ms / {tick * 1e3:.1f} ms = {batch / tick:.0f}"
    name = f"recomputing a join view of {shop.rows:,} rows with Spark / tick of one row"
    yield Measure(name, figure, "≥ 50", batch / tick >= 50)


def against_a_job(shop: Shop) -> Iterator[Measure]:
    for name, query in (("", TOTALS), (" with an expression", DOUBLED)):
        shop.view("v", query)
        spark = spark_as_it_comes(shop)
        for _ in range(WARM_JOBS):
            spark.range(1).collect()
        tick, job = turns(
            lambda: shop.tick(100),
            lambda: seconds(spark.range(1).collect),  # noqa: B023
        )
        shop.db.execute("DROP MATERIALIZED VIEW v")
        yield ratio(f"tick of 100 rows, join + aggregate{name} / empty Spark job", tick, job, 3)


def twenty(directory: Path) -> Iterator[Measure]:
    for name, queries in (("", PLAIN), (" with expressions", COMPUTED)):
        with ExitStack() as stack:
            home = directory / f"twenty{len(name)}"
            one, many = (stack.enter_context(Shop(home / n, SMALL)) for n in ("one", "many"))
            for shop, views in ((one, queries[:1]), (many, queries)):
                shop.load()
                for i, query in enumerate(views):
                    shop.view(f"v{i}", query)
            of_many, of_one = turns(lambda: many.tick(100), lambda: one.tick(100))  # noqa: B023
            yield ratio(f"tick of 100 rows, twenty views{name} / one", of_many, of_one, 6)
            if queries is PLAIN:
                yield writes(many)


def writes(shop: Shop) -> Measure:
    """Count what a small tick over twenty views writes."""
    files, syncs = [], []
    for _ in range(ROUNDS):
        shop.change(100)
        before = {file for file in shop.directory.rglob("*") if file.is_file()}
        with counted_syncs() as seen:
            shop._advance()  # noqa: SLF001
        after = {file for file in shop.directory.rglob("*") if file.is_file()}
        files.append(len(after - before))
        syncs.append(len(seen))
    most = max(statistics.median(files), statistics.median(syncs))
    figure = f"{statistics.median(files):g} files, {statistics.median(syncs):g} syncs"
    return Measure("written by such a tick over twenty views", figure, "≤ 3 each", most <= 3)


def look_ups(shop: Shop) -> Iterator[Measure]:
    keys = np.random.default_rng(0).integers(0, shop.rows // 10, WARM_UP + ROUNDS).tolist()
    jobs = spark_as_it_comes(shop).sparkContext.statusTracker()
    for column in ("id", "customer"):
        query = f"SELECT * FROM orders WHERE {column} = $1"
        before = len(jobs.getJobIdsForGroup(None))
        took = [seconds(lambda: shop.db.execute(query, (key,))) for key in keys][WARM_UP:]  # noqa: B023
        ran = len(jobs.getJobIdsForGroup(None)) - before
        figure = f"{statistics.median(took) * 1e3:.1f} ms, {ran} Spark jobs"
        met = statistics.median(took) <= 0.02 and ran == 0
        name = f"look-up by {column} in {shop.rows:,} orders"
        yield Measure(name, figure, "≤ 20 ms, no Spark job", met)


def run() -> Iterator[Measure]:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        home = Path(directory)
        small, large = (stack.enter_context(Shop(home / str(n), n)) for n in (SMALL, LARGE))
        small.load()
        yield from loading(large)
        yield from growing(small, large)
        yield from against_a_job(small)
        yield from against_recomputing(large)
        yield from look_ups(large)
        yield from twenty(home)
