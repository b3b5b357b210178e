"""A sink as a whole: how much it writes, and how soon that can be read.

*Output* is a tick with many changes, from the tick to the committed transaction, against a bare
transactional producer that has the bytes of the same messages in lists; rounds alternate.
*Latency* is from ``produce`` into a topic that a source reads until an ordinary read_committed
consumer has the row from the topic of the sink, at a thousand rows a second; the engine is a
process of its own.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition

import reclock
from benchmarks.measure import Measure, seconds
from benchmarks.pipeline import committed
from benchmarks.sink_encode import send_all
from reclock.clock import ManualClock
from reclock.sinks.connect import SETTINGS
from reclock.testing.kafka import running_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.testing.kafka import RealKafka

ROWS = 250_000
ROUNDS = 5
RATE = 1_000
SECONDS = 20
COLUMNS = "id BIGINT PRIMARY KEY, cust BIGINT, amount BIGINT, ts TIMESTAMP"


def orders(first: int, count: int) -> pa.Table:
    """Return new rows."""
    ids = np.arange(first, first + count)
    moments = pa.array(1_767_225_600_000_000 + ids * 1_000, pa.timestamp("us"))
    return pa.table({"id": ids, "cust": ids % 50_000, "amount": ids % 1_000, "ts": moments})


def sink(name: str, relation: str, broker: str, rest: str) -> str:
    """Return the statement for a sink into a topic of its name."""
    return (
        f"CREATE SINK to_{name.partition('-')[0]} FROM {relation} INTO KAFKA BROKER '{broker}' "
        f"TOPIC '{name}' {rest} WITH (reuse_topic = true, partitions = 4)"
    )


UPSERT = "KEY (id) FORMAT JSON ENVELOPE UPSERT"


def output(kafka: RealKafka) -> Iterator[Measure]:
    """Measure messages a second of whole ticks, and of a bare producer."""
    topic = f"output-{uuid.uuid4().hex[:8]}"
    clock = ManualClock(1_000)
    ours, bare = [], []
    with (
        tempfile.TemporaryDirectory() as path,
        reclock.open(path, clock=clock, background=False) as db,
    ):
        db.execute(f"CREATE TABLE orders ({COLUMNS})")
        db.execute(sink(topic, "orders", kafka.address, UPSERT))
        producer = _producer(kafka.address)
        messages: list[Any] = []
        copy = kafka.create_topic(4)
        for round_ in range(ROUNDS + 1):
            db.insert("orders", orders(round_ * ROWS, ROWS))
            clock.advance(1_000)
            taken = seconds(db.tick)
            if not messages:  # the first round warms up
                found = [m for some in committed(kafka.address, topic) for m in some]
                messages = [(m.key(), m.value(), m.headers()) for m in found]
                assert len(messages) == ROWS, len(messages)
                continue
            ours.append(taken)
            bare.append(seconds(partial(send_all, producer, copy, messages)))
    mine, theirs = statistics.median(ours), statistics.median(bare)
    yield Measure("bare transactional producer", f"{ROWS / theirs / 1e3:,.0f} k messages/s")
    yield Measure(
        "sink, from the tick to the commit",
        f"{ROWS / mine / 1e3:,.0f} k messages/s, {theirs / mine:.0%} of bare",
        "≥ 50 % of bare",
        theirs / mine >= 0.5,
    )


def _producer(broker: str) -> Producer:
    config = {
        **SETTINGS,
        "bootstrap.servers": broker,
        "transactional.id": "bare",
        "delivery.report.only.error": True,
        "partitioner": "murmur2_random",
        "log_level": 0,
    }
    producer = Producer(config)
    producer.init_transactions()
    return producer


def serve(broker: str, read: str, written: str, interval: str) -> None:
    """Run a pipeline in this process until standard input ends; print how long ticks took."""
    with tempfile.TemporaryDirectory() as path, reclock.open(path) as db:
        db.execute(f"ALTER SYSTEM SET timestamp_interval = '{interval}'")
        db.execute(
            f"CREATE SOURCE events (id BIGINT, ns BIGINT) FROM KAFKA BROKER '{broker}' "
            f"TOPIC '{read}' FORMAT JSON"
        )
        db.execute("CREATE MATERIALIZED VIEW kept AS SELECT id, ns FROM events WHERE id >= 0")
        db.execute(sink(written, "kept", broker, "FORMAT JSON ENVELOPE DEBEZIUM"))
        query = "SELECT state FROM reclock.sink_status"
        while db.execute(query).rows[0][0] != "running":
            time.sleep(0.05)
        print("ready", flush=True)
        sys.stdin.read()
        query = "SELECT millis, rows FROM reclock.ticks WHERE phase = 'total'"
        took = [millis for millis, rows in db.execute(query).rows if rows]
        print(json.dumps(statistics.median(took) / 1e3))


def latency(kafka: RealKafka, interval: str) -> tuple[list[float], float]:
    """Return the seconds from produced to read, and those of a tick."""
    read, written = kafka.create_topic(4), f"latency-{uuid.uuid4().hex[:8]}"
    call = f"serve({kafka.address!r}, {read!r}, {written!r}, {interval!r})"
    with _child(call, stdin=subprocess.PIPE) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == "ready\n"
        found = _through(kafka.address, read, written)
        told, _ = engine.communicate()
    return found, json.loads(told)


def _through(broker: str, read: str, written: str) -> list[float]:
    """Send rows at their pace; return how long after that each was there to be read."""
    producer = Producer({"bootstrap.servers": broker, "linger.ms": 0})
    group = {"group.id": "latency", "isolation.level": "read_committed"}
    consumer = Consumer(
        {"bootstrap.servers": broker, **group, "fetch.wait.max.ms": 10, "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(written, part, 0) for part in range(4)])
    found: list[float] = []
    begun = time.monotonic()
    sent = 0
    while len(found) < RATE * SECONDS:
        now = time.monotonic()
        assert now < begun + 3 * SECONDS, f"{len(found)} of {sent} rows came"
        for id_ in range(sent, min(int((now - begun) * RATE), RATE * SECONDS)):
            text = f'{{"id": {id_}, "ns": {time.monotonic_ns()}}}'
            producer.produce(read, text.encode(), partition=id_ % 4)
            sent += 1
        producer.poll(0)
        for message in consumer.consume(1_000, 0.005):
            if message.error() is None:
                row = json.loads(message.value())["after"]
                found.append((time.monotonic_ns() - row["ns"]) / 1e9)
    consumer.close()
    return found[RATE:]  # the first ones warm up


def latencies(kafka: RealKafka) -> Iterator[Measure]:
    """Measure latency at the default interval and at a short one."""
    for interval in ("1s", "100ms"):
        found, tick = latency(kafka, interval)
        most = 1.0 + 2 * tick if interval == "1s" else 0.5
        p50, p99 = np.quantile(found, [0.5, 0.99]).tolist()
        rule = f"interval + 2 × a tick ({tick * 1e3:.0f} ms)" if interval == "1s" else "0.5 s"
        yield Measure(
            f"from produced to read, {RATE:,} rows/s, interval {interval}",
            f"p50 {p50:.3f} s, p99 {p99:.3f} s",
            f"p50 ≤ {rule}",
            p50 <= most,
        )


def _child(call: str, **streams: Any) -> subprocess.Popen[str]:
    code = f"from benchmarks.sink import *; {call}"
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, **streams
    )


def run() -> Iterator[Measure]:
    """Measure output and latency."""
    with running_kafka() as kafka:
        yield from output(kafka)
        yield from latencies(kafka)
