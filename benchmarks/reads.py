"""Reads while ticks go on: how long they take, and how long strict ones wait.

One database with its background loop at the default interval, a table of a hundred thousand
rows, a join + aggregate view, and a writer that never rests. Reads of an indexed key under
``serializable`` need no wait; under ``strict serializable`` each follows a write of its own
session, so it always waits for the tick that has it. What a tick takes is read from
``reclock.ticks`` in the same run.
"""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import reclock
from benchmarks.measure import Measure, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 100_000
READS = 400
STRICT_READS = 100
VIEW = """
    SELECT c.region, count(*) AS n, sum(o.amount) AS s
    FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region
"""


def _fill(db: reclock.Database) -> None:
    db.execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount BIGINT)")
    db.execute("CREATE TABLE customers (id BIGINT PRIMARY KEY, region TEXT)")
    ids = np.arange(ROWS)
    orders = {"id": ids, "customer": ids * 7_919 % 1_000, "amount": ids % 97}
    db.insert("orders", pa.table(orders))
    regions = [f"region {i % 10}" for i in range(1_000)]
    db.insert("customers", pa.table({"id": np.arange(1_000), "region": regions}))
    db.execute("CREATE INDEX ON orders (customer)")
    db.execute(f"CREATE MATERIALIZED VIEW totals AS {VIEW}")


def _write(db: reclock.Database, stop: threading.Event) -> None:
    with db.session() as session:
        for number in range(ROWS, 1 << 60):
            if stop.wait(0.01):
                return
            session.execute("INSERT INTO orders VALUES ($1, $2, 1)", (number, number % 1_000))


def _p99(taken: list[float]) -> float:
    return float(np.percentile(taken, 99))


def run() -> Iterator[Measure]:
    with tempfile.TemporaryDirectory() as home, reclock.open(Path(home) / "state") as db:
        _fill(db)
        stop = threading.Event()
        writer = threading.Thread(target=_write, args=(db, stop))
        writer.start()
        try:
            yield from _measured(db)
        finally:
            stop.set()
            writer.join()


def _measured(db: reclock.Database) -> Iterator[Measure]:
    keys = np.random.default_rng(0).integers(0, 1_000, READS).tolist()
    with db.session() as session:
        session.execute("SET transaction_isolation = 'serializable'")
        look_up = "SELECT * FROM orders WHERE customer = $1"
        session.execute(look_up, (0,))
        taken = [seconds(lambda: session.execute(look_up, (key,))) for key in keys]  # noqa: B023
        median, worst = np.median(taken), _p99(taken)
        figure = f"median {median * 1e3:.1f} ms, p99 {worst * 1e3:.1f} ms"
        name = "serializable read of an indexed key while ticks run"
        yield Measure(name, figure, "p99 ≤ 50 ms", worst <= 0.05)
    with db.session() as session:
        taken = []
        for number in range(STRICT_READS):
            session.execute("INSERT INTO customers VALUES ($1, 'new')", (1_000_000 + number,))
            key = (1_000_000 + number,)
            found = []

            def strict() -> None:
                answer = session.execute("SELECT * FROM customers WHERE id = $1", key)  # noqa: B023
                found.extend(answer.rows)  # noqa: B023

            taken.append(seconds(strict))
            assert len(found) == 1, "a strict read has not seen the write before it"
        ticks = session.execute("SELECT millis FROM reclock.ticks WHERE phase = 'total'").rows
        tick = _p99([millis / 1e3 for (millis,) in ticks])
        worst = _p99(taken)
        figure = f"p99 {worst * 1e3:.0f} ms, tick p99 {tick * 1e3:.0f} ms"
        name = "strict read after a write of its own"
        yield Measure(name, figure, "p99 ≤ one tick + 300 ms", worst <= tick + 0.3)
