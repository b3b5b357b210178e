"""From Kafka through a view to Kafka, exactly once: the two workloads that engines are compared by.

A joins ``orders`` (a million JSON rows id, cust, amount, ts; four partitions) with ``customers``
(fifty thousand; region = id % 5000) and writes the changes of ``count(*)``, ``sum(amount)`` by
region. B writes the ``orders`` of 500 and more. The topics are filled before. A process of its
own opens a new database; measured is from then, the first CREATE, until the committed frontier
of the sink covers all input: seconds on the wall, and of the processor, of that process and of
the JVM if Spark takes part. Then a separate read_committed consumer reads the whole topic and
compares it with what numpy computes from the same rows: nothing missing, nothing twice.

``RECLOCK_BENCH_ROUNDS=3`` takes the median of so many runs of each, in turns.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from confluent_kafka import Consumer, Producer, TopicPartition

import reclock
from benchmarks.ingest import PARTITIONS, ROWS, fill
from benchmarks.measure import Measure, cpu_seconds
from reclock.connectors.kafka.fetch import SETTINGS
from reclock.sinks.log import TIMESTAMP_HEADER
from reclock.testing.kafka import running_kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reclock.testing.kafka import RealKafka

ROUNDS = int(os.environ.get("RECLOCK_BENCH_ROUNDS", "1"))
CUSTOMERS = 50_000
REGIONS = 5_000
LEAST = 500
PATIENCE = 240.0

SOURCES = """
CREATE SOURCE customers (id BIGINT, region BIGINT)
FROM KAFKA BROKER '{broker}' TOPIC '{customers}' FORMAT JSON;
CREATE SOURCE orders (id BIGINT, cust BIGINT, amount NUMERIC(12,2), ts TIMESTAMP)
FROM KAFKA BROKER '{broker}' TOPIC '{orders}' FORMAT JSON;
"""
TOTALS = """
CREATE MATERIALIZED VIEW result AS
SELECT c.region, count(*) AS n, sum(o.amount) AS total
FROM orders o JOIN customers c ON o.cust = c.id GROUP BY c.region;
CREATE SINK written FROM result INTO KAFKA BROKER '{broker}' TOPIC '{written}'
KEY (region) FORMAT JSON ENVELOPE UPSERT WITH (reuse_topic = true, partitions = 4);
"""
LARGE = f"""
CREATE MATERIALIZED VIEW result AS
SELECT id, cust, amount FROM orders WHERE amount >= {LEAST};
CREATE SINK written FROM result INTO KAFKA BROKER '{{broker}}' TOPIC '{{written}}'
FORMAT JSON ENVELOPE DEBEZIUM WITH (reuse_topic = true, partitions = 4);
"""


class Workload(NamedTuple):
    """What is run, how its output is checked, and what others need.

    ``peers`` are processor seconds: Spark's or Flink's, the fewer, then Pathway's; ``rate`` is
    Pathway's.
    """

    name: str
    sql: str
    check: Callable[[Iterable[list[Any]], int], int]
    peers: tuple[float, float]
    rate: float


def customers(kafka: RealKafka) -> str:
    """Write the customers and return their topic."""
    topic = kafka.create_topic(PARTITIONS)
    producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 50})
    for n in range(CUSTOMERS):
        text = f'{{"id": {n}, "region": {n % REGIONS}}}'
        producer.produce(topic, text.encode(), partition=n % PARTITIONS)
    producer.flush()
    return topic


def drive(broker: str, sql: str, topics: dict[str, str]) -> None:
    """Run a workload in this process until all of it is committed; print what that took."""
    sizes = {"orders": ROWS, "customers": CUSTOMERS}
    with tempfile.TemporaryDirectory() as path, reclock.open(Path(path) / "state") as db:
        begun, spent = time.perf_counter(), cpu_seconds()
        db.execute(sql.format(broker=broker, **topics))
        query = "SELECT source, bound FROM reclock.source_status"
        while any(bound != sizes[name] for name, bound in db.execute(query).rows):
            _wait(0.1, begun)
        bound = db.execute("SELECT timestamp FROM reclock.bindings").rows
        last = max(timestamp for (timestamp,) in bound)
        query = "SELECT state, frontier, messages, detail FROM reclock.sink_status"
        while True:
            state, frontier, messages, detail = db.execute(query).rows[0]
            assert state != "failed", detail
            if frontier is not None and frontier > last:
                break
            _wait(0.02, begun)
        taken = time.perf_counter() - begun
        spent = cpu_seconds() - spent
        ticks = db.execute("SELECT timestamp FROM reclock.ticks WHERE phase = 'total'").rows
        print(json.dumps([taken, spent, len(ticks), messages]))


def _wait(pause: float, begun: float) -> None:
    assert time.perf_counter() < begun + PATIENCE, "it takes too long"
    time.sleep(pause)


def committed(broker: str, topic: str) -> Iterator[list[Any]]:
    """Yield all messages of a topic that an ordinary read_committed consumer gets."""
    group = {"group.id": "check", "isolation.level": "read_committed"}
    consumer = Consumer({**SETTINGS, "bootstrap.servers": broker, **group})
    parts = sorted(consumer.list_topics(topic, 10).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, part, 0) for part in parts])
    ended = 0
    while ended < len(parts):
        messages = consumer.consume(10_000, 1.0)
        ended += sum(message.error() is not None for message in messages)
        if found := [message for message in messages if message.error() is None]:
            yield found
    consumer.close()


def cents(rows: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the amounts of all orders, as ``fill`` writes them, in hundredths."""
    return np.arange(rows) % 100_000


def check_totals(messages: Iterable[list[Any]], rows: int) -> int:
    """Compare the last message of each region; return how many are there twice."""
    held: dict[bytes, bytes] = {}
    moments: set[tuple[bytes, bytes]] = set()
    sent = 0
    for some in messages:
        held |= {message.key(): message.value() for message in some}
        moments |= {(m.key(), dict(m.headers())[TIMESTAMP_HEADER]) for m in some}
        sent += len(some)
    region = np.arange(rows) % CUSTOMERS % REGIONS
    count, total = np.bincount(region), np.bincount(region, cents(rows)).astype(np.int64)
    last = map(json.loads, held.values())
    found = {row["region"]: (row["n"], round(row["total"] * 100)) for row in last}
    wanted = dict(enumerate(zip(count.tolist(), total.tolist(), strict=True)))
    assert found == wanted, "the totals in the topic are wrong"
    return sent - len(moments)


def check_large(messages: Iterable[list[Any]], rows: int) -> int:
    """Compare all rows; return how many are there twice."""
    texts = (b"\n".join(m.value() for m in some) for some in messages)
    read = [pl.read_ndjson(text)["after"].struct.unnest() for text in texts]
    found = pl.concat(read) if read else pl.DataFrame(schema=["id", "cust", "amount"])
    wanted = np.flatnonzero(cents(rows) >= LEAST * 100)
    once = found.unique("id").sort("id")
    assert np.array_equal(once["id"], wanted), "rows are missing in the topic, or too many"
    assert np.array_equal((once["amount"] * 100).round().cast(pl.Int64), cents(rows)[wanted])
    assert np.array_equal(once["cust"], wanted % CUSTOMERS)
    return len(found) - len(once)


WORKLOADS = (
    Workload("A", SOURCES + TOTALS, check_totals, (16.2, 14.7), 102_000),
    Workload("B", SOURCES.partition(";")[2] + LARGE, check_large, (14.5, 10.7), 157_000),
)


def run() -> Iterator[Measure]:
    """Measure both workloads."""
    with running_kafka() as kafka:
        topics = {"orders": fill(kafka, ROWS), "customers": customers(kafka)}
        taken: dict[str, list[list[float]]] = {work.name: [] for work in WORKLOADS}
        for _ in range(ROUNDS):
            for work in WORKLOADS:
                written = f"result-{uuid.uuid4().hex[:8]}"
                figures = _driven(kafka.address, work, {**topics, "written": written})
                twice = work.check(committed(kafka.address, written), ROWS)
                taken[work.name].append([*figures, twice])
        for work in WORKLOADS:
            columns = zip(*taken[work.name], strict=True)
            wall, cpu, ticks, messages, twice = map(statistics.median, columns)
            rate = ROWS / wall
            yield Measure(
                f"{work.name}: rows to a committed sink",
                f"{rate / 1e3:.0f} thousand rows/s ({wall:.1f} s, {ticks:.0f} ticks, "
                f"{messages:,.0f} messages)",
                f"> {work.rate / 1e3:.0f} thousand rows/s (Pathway)",
                rate > work.rate,
            )
            for name, most in zip(("Spark's and Flink's", "Pathway's"), work.peers, strict=True):
                yield Measure(
                    f"{work.name}: processor time", f"{cpu:.1f} s", f"≤ {most} s ({name})",
                    cpu <= most,
                )  # fmt: skip
            yield Measure(
                f"{work.name}: messages that are there twice, none missing", f"{twice:.0f}", "0",
                twice == 0,
            )  # fmt: skip


def _driven(broker: str, work: Workload, topics: dict[str, str]) -> list[float]:
    """Run a workload in a process of its own and return what it printed."""
    code = (
        "import json, sys; from benchmarks.pipeline import drive; drive(*json.loads(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, json.dumps([broker, work.sql, topics])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    made: list[float] = json.loads(done.stdout.splitlines()[-1])
    return made
