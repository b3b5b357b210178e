"""From a Kafka topic to a typed, timestamped, durable collection, against a bare consume loop.

The same million JSON rows (id, cust, amount, ts; about eighty bytes) in four partitions of a
broker on this machine, which shares its cores. The bare loop consumes with the same client and
settings and decodes every thousand messages' JSON with ``polars.read_ndjson`` into the same
types; it keeps nothing. Ours is a user's: ``CREATE SOURCE`` on a running database, until all
rows are durable and can be read at a timestamp. Rounds alternate.

``RECLOCK_BENCH_BACKLOG=5000000`` measures memory with another backlog.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from confluent_kafka import Consumer, Producer, TopicPartition

import reclock
from benchmarks.measure import Measure, seconds
from reclock.connectors.kafka.fetch import SETTINGS
from reclock.testing.kafka import running_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.testing.kafka import RealKafka

ROWS = 1_000_000
BACKLOG = int(os.environ.get("RECLOCK_BENCH_BACKLOG", "5000000"))
PARTITIONS = 4
ROUNDS = 3
TAKE = 10_000
VIEWS = 16
COLUMNS = "(id BIGINT, cust BIGINT, amount NUMERIC(12,2), ts TIMESTAMP)"


def fill(kafka: RealKafka, rows: int) -> str:
    """Write the rows and return the topic."""
    topic = kafka.create_topic(PARTITIONS)
    producer = Producer(
        {
            "bootstrap.servers": kafka.address,
            "linger.ms": 50,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for n in range(rows):
        amount, second = n % 100_000 / 100, n % 60
        text = (
            f'{{"id": {n}, "cust": {n % 50_000}, "amount": {amount:.2f}, '
            f'"ts": "2026-01-01T00:00:{second:02}"}}'
        )
        producer.produce(topic, text.encode(), partition=n % PARTITIONS)
        if n % 10_000 == 0:
            producer.poll(0)
    producer.flush()
    return topic


def bare(consumer: Consumer, topic: str) -> None:
    """Consume and decode everything; keep nothing."""
    consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    schema = {"id": pl.Int64, "cust": pl.Int64, "amount": pl.Float64, "ts": pl.String}
    seen = 0
    while seen < ROWS:
        messages = consumer.consume(TAKE, 0.1)
        values = [m.value() or b"" for m in messages if m.error() is None]
        if values:
            frame = pl.read_ndjson(b"\n".join(values), schema=schema)
            frame = frame.with_columns(
                pl.col("amount").cast(pl.Decimal(12, 2)), pl.col("ts").str.to_datetime()
            )
            seen += len(frame)
    consumer.unassign()


def load(kafka_address: str, topic: str, rows: int, views: int = 0) -> float:
    """Load a topic into a new database; return the seconds from CREATE SOURCE to the end."""
    with tempfile.TemporaryDirectory() as path, reclock.open(Path(path) / "state") as db:
        begun = time.perf_counter()
        db.execute(
            f"CREATE SOURCE orders {COLUMNS} FROM KAFKA BROKER '{kafka_address}' "
            f"TOPIC '{topic}' FORMAT JSON"
        )
        for n in range(views):
            db.execute(
                f"CREATE MATERIALIZED VIEW v{n} AS SELECT id, cust FROM orders WHERE id = {n}"
            )
        query = "SELECT state, bound, rows FROM reclock.source_status"
        while True:
            state, bound, read = db.execute(query).rows[0]
            if bound == rows:
                taken = time.perf_counter() - begun
                break
            assert state != "failed", state
            time.sleep(0.02)
        assert read == rows, "the topic was read more than once"
        if not views:
            total = db.execute("SELECT count(*) FROM orders").rows[0][0]
            assert total == rows, total
    return taken


def run() -> Iterator[Measure]:
    """Measure rows a second, the reads of many views, and the memory of a backlog."""
    with running_kafka() as kafka:
        topic = fill(kafka, ROWS)
        consumer = Consumer({**SETTINGS, "bootstrap.servers": kafka.address, "group.id": "bare"})
        ours, loop = [], []
        for _ in range(ROUNDS):
            loop.append(seconds(lambda: bare(consumer, topic)))
            ours.append(load(kafka.address, topic, ROWS))
        consumer.close()
        rate = ROWS / statistics.median(ours)
        plain = ROWS / statistics.median(loop)
        yield Measure("Kafka JSON → durable collection", f"{rate / 1e6:.2f}M rows/s")
        yield Measure("bare consume loop + polars", f"{plain / 1e6:.2f}M rows/s")
        ratio = rate / plain
        yield Measure("ours / bare", f"{ratio:.2f}", "≥ 0.6", ratio >= 0.6)
        took = load(kafka.address, topic, ROWS, VIEWS)
        yield Measure(
            f"{VIEWS} views over it: rows read from the broker", f"{ROWS:,} in {took:.1f} s",
            f"{ROWS:,}", met=True,
        )  # fmt: skip
        backlog = fill(kafka, BACKLOG)
        peak = _peak_of(kafka.address, backlog)
        yield Measure(f"peak memory, backlog of {BACKLOG:,}", f"{peak} MiB", "< 2048", peak < 2048)


def _peak_of(address: str, topic: str) -> int:
    """Load the backlog in a process of its own and return its peak resident memory in MiB."""
    code = (
        "import resource, sys; from benchmarks.ingest import load; "
        "load(sys.argv[1], sys.argv[2], int(sys.argv[3])); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    command = [sys.executable, "-c", code, address, topic, str(BACKLOG)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])
