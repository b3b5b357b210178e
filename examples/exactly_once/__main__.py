"""A view as a topic, every change once, across a kill -9.

Run it with ``python -m examples.exactly_once``: it starts a real Apache Kafka
(fetched the first time), runs a pipeline from one topic to another in a process of its own, kills
it in the middle, starts it again, and reads the output as anybody would: ``read_committed``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from reclock.dev.kafka import Broker

ORDERS = 2_000

PIPELINE = """
CREATE SOURCE orders (id BIGINT, customer BIGINT, amount BIGINT)
  FROM KAFKA BROKER '{broker}' TOPIC 'once-orders' FORMAT JSON;
CREATE MATERIALIZED VIEW large AS SELECT id, customer, amount FROM orders WHERE amount >= 50;
CREATE SINK out FROM large INTO KAFKA BROKER '{broker}' TOPIC 'once-large'
  FORMAT JSON ENVELOPE DEBEZIUM WITH (reuse_topic = true, partitions = 1);
"""


def produce(broker: str, first: int, last: int) -> None:
    """Write some orders."""
    producer = Producer({"bootstrap.servers": broker})
    for n in range(first, last):
        order = {"id": n, "customer": n % 7, "amount": n % 100}
        producer.produce("once-orders", json.dumps(order).encode())
    producer.flush()


def consume(broker: str, count: int) -> Counter[int]:
    """Read the output until so many orders are there; return how often each is."""
    consumer = Consumer(
        {"bootstrap.servers": broker, "group.id": "me", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition("once-large", 0, 0)])
    seen: Counter[int] = Counter()
    deadline = time.monotonic() + 120
    while len(seen) < count and time.monotonic() < deadline:
        for message in consumer.consume(1_000, 0.5):
            if message.error() is None:
                seen[json.loads(message.value() or b"")["after"]["id"]] += 1
    consumer.close()
    return seen


def start(command: list[str]) -> subprocess.Popen[str]:
    """Start the pipeline, and return when it runs."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "event=running" in line:
            return process
    raise SystemExit(process.wait())


def run(home: Path, address: str) -> Counter[int]:
    """Tell the story; return how often each order is in the output."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic("once-orders", 4, 1)])["once-orders"].result()
    file = home / "pipeline.sql"
    file.write_text(PIPELINE.format(broker=address))
    command = [sys.executable, "-m", "reclock", "run", str(file), "--state", str(home / "state")]
    with start(command) as process:
        produce(address, 0, ORDERS // 2)
        consume(address, 100)
        process.kill()
    print("killed, with half of the orders written")
    produce(address, ORDERS // 2, ORDERS)
    with start(command) as process:
        seen = consume(address, ORDERS // 2)
        process.terminate()
    print(f"{len(seen)} large orders in the output, {sum(seen.values()) - len(seen)} of them twice")
    return seen


def main() -> None:
    """Run it in a temporary directory, with a broker of its own."""
    with tempfile.TemporaryDirectory() as home:
        broker = Broker(Path(home) / "kafka")
        try:
            run(Path(home), broker.start(0).address)
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
