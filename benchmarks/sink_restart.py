"""How soon a sink goes on after a restart, whatever its history, against the start of Spark.

From opening a state until a sink has committed something new, for a view that needs Spark: for a
state that is new, and for one of many ticks and rows with a sink that wrote them all, each in a
process of its own, as is the start of Spark alone. Medians of rounds that alternate.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import reclock
from benchmarks.measure import Measure
from benchmarks.sink import COLUMNS, UPSERT, orders, sink
from reclock.clock import ManualClock, SystemClock
from reclock.spark.session import Spark
from reclock.testing.kafka import running_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 1_000_000
TICKS = 200
ROUNDS = 2


def build(broker: str, path: str, name: str, rows: int, ticks: int) -> None:
    """Make a state with a sink over a view that needs Spark, after a long life or none."""
    clock = ManualClock(SystemClock().now_ms() - (ticks + 60) * 1_000)
    with reclock.open(path, clock=clock, background=False) as db:
        db.execute(f"CREATE TABLE orders ({COLUMNS})")
        db.execute("CREATE MATERIALIZED VIEW large AS SELECT id, cust FROM orders WHERE cust >= 0")
        db.execute(sink(f"plain-{name}", "large", broker, UPSERT))
        db.insert("orders", orders(0, rows))
        for tick in range(ticks):
            db.insert("orders", orders(rows + 10 * tick, 10))
            clock.advance(1_000)
            db.tick()
        db.execute(
            "CREATE MATERIALIZED VIEW doubled AS SELECT id, amount * 2 AS twice FROM orders "
            "WHERE id < 0"
        )
        db.execute(sink(f"doubled-{name}", "doubled", broker, "FORMAT JSON ENVELOPE DEBEZIUM"))
        db.execute("INSERT INTO orders VALUES (-1000, 1, 1, NULL)")  # its ticks need Spark
        clock.advance(1_000)
        db.tick()


def restart(path: str, id_: int) -> None:
    """Print how long after opening a state in this process its sink had written something new."""
    begun = time.perf_counter()
    with reclock.open(path) as db:
        db.execute("INSERT INTO orders VALUES ($1, 1, 1, NULL)", (id_,))
        query = "SELECT sink, messages FROM reclock.sink_status"
        while not dict(db.execute(query).rows)["to_doubled"]:
            time.sleep(0.1)  # to look costs milliseconds, of the cores that Spark starts on
        print(json.dumps(time.perf_counter() - begun))


def start_spark() -> None:
    """Print how long the start of Spark takes in this process, with its first small job."""
    begun = time.perf_counter()
    spark = Spark()
    spark.session.createDataFrame(pa.table({"x": [1]})).selectExpr("x * 2").toArrow()
    print(json.dumps(time.perf_counter() - begun))
    spark.close()


def _called(call: str) -> Any:
    """Return what a function prints in a process of its own, if anything."""
    code = f"from benchmarks.sink_restart import *; {call}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout else None


def run() -> Iterator[Measure]:
    """Measure how soon a sink goes on after a restart."""
    with running_kafka() as kafka, tempfile.TemporaryDirectory() as path:
        lives = {"new": (10, 1), "old": (ROWS, TICKS)}
        for name, (rows, ticks) in lives.items():
            _called(f"build({kafka.address!r}, {path + '/' + name!r}, {name!r}, {rows}, {ticks})")
        calls = ["start_spark()", *(f"restart({path + '/' + name!r}, {{}})" for name in lives)]
        taken = [
            [_called(call.format(-round_)) for call in calls] for round_ in range(1, ROUNDS + 1)
        ]
    spark, new, old = map(statistics.median, zip(*taken, strict=True))
    yield Measure("start of Spark", f"{spark:.1f} s")
    yield Measure("restart of a new state to the first new commit", f"{new:.1f} s")
    yield Measure(
        f"the same after {TICKS:,} ticks and {ROWS:,} rows",
        f"{old:.1f} s",
        "≤ start of Spark + 3 s",
        old <= spark + 3,
    )
