"""Little work must stay quick: small ticks, latency to a committed sink, the least a job takes."""

from __future__ import annotations

import statistics
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np

import reclock
from benchmarks.measure import Measure
from benchmarks.sink import latency
from reclock.clock import ManualClock
from reclock.testing.kafka import running_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDERS = 100_000
CUSTOMERS = 1_000
REGIONS = 50
CHANGED = 100
ROUNDS = 15
STATEMENTS = f"""
CREATE TABLE customers (id BIGINT, region BIGINT);
CREATE TABLE orders (id BIGINT, cust BIGINT, amount NUMERIC(12,2));
INSERT INTO customers SELECT i, i % {REGIONS} FROM generate_series(0, {CUSTOMERS - 1}) AS g (i);
INSERT INTO orders SELECT i, i % {CUSTOMERS}, i % 1000
FROM generate_series(1, {ORDERS}) AS g (i);
CREATE MATERIALIZED VIEW result AS
SELECT c.region, count(*) AS n, sum(o.amount) AS total
FROM orders o JOIN customers c ON o.cust = c.id GROUP BY c.region;
"""


def run() -> Iterator[Measure]:
    """Measure all three."""
    took = _ticks("driver", "total")
    yield Measure(
        f"{CHANGED} rows through join and aggregate in the driver", f"{took:.1f} ms", "≤ 20 ms",
        took <= 20,
    )  # fmt: skip
    took = _ticks("spark", "compute")
    yield Measure(
        f"{CHANGED} rows through join and aggregate as a job of three stages",
        f"{took / 1e3:.2f} s", "≤ 0.25 s", took <= 250,
    )  # fmt: skip
    with running_kafka() as kafka:
        found, _ = latency(kafka, "100ms")
    p50, p99 = np.quantile(found, [0.5, 0.99]).tolist()
    yield Measure(
        "from produced to committed, 1,000 rows/s, interval 100ms",
        f"p50 {p50:.3f} s, p99 {p99:.3f} s", "p50 ≤ 0.15 s, p99 ≤ 0.5 s",
        p50 <= 0.15 and p99 <= 0.5,
    )  # fmt: skip


def _ticks(execution: str, phase: str) -> float:
    """Return the median milliseconds of a phase of warm small ticks."""
    clock = ManualClock(1_763_280_000_000)
    with (
        tempfile.TemporaryDirectory() as path,
        reclock.open(path, clock=clock, background=False, master="local[2]") as db,
    ):
        db.execute(f"ALTER SYSTEM SET execution = '{execution}'")
        db.execute(STATEMENTS)
        for nth in range(ROUNDS + 5):
            _insert(db, ORDERS + nth * CHANGED)
            clock.advance(1_000)
            db.tick()
        query = f"SELECT millis, place FROM reclock.ticks WHERE phase = '{phase}'"
        found = db.execute(query).rows[-ROUNDS:]
        assert {place for _, place in found} == {execution}, found
        return statistics.median(millis for millis, _ in found)


def _insert(db: Any, first: int) -> None:
    db.execute(
        f"INSERT INTO orders SELECT i, i % {CUSTOMERS}, i % 1000 "
        f"FROM generate_series({first + 1}, {first + CHANGED}) AS g (i)"
    )
