"""Two views over one topic that agree at every timestamp, across a kill -9.

Run it with ``python -m examples.topics``: it starts a real Apache Kafka in a temporary
directory (fetched the first time), writes orders while a pipeline runs in another process,
kills that process in the middle, starts it again, makes a second view, and compares the
two at every timestamp that is still kept.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import reclock
from reclock.dev.kafka import Broker

TOPIC = "topics-orders"
ORDERS = 3_000

QUERY = """
  SELECT customer, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY customer
"""

PIPELINE = """
CREATE SOURCE orders (id BIGINT, customer BIGINT, amount NUMERIC(12,2))
  FROM KAFKA BROKER '{broker}' TOPIC 'topics-orders' FORMAT JSON;
CREATE MATERIALIZED VIEW first AS {query};
"""


def produce(producer: Producer, begin: int, end: int) -> None:
    """Write some orders, a few at a time."""
    for n in range(begin, end):
        order = {"id": n, "customer": n % 7, "amount": n % 100 / 4}
        producer.produce(TOPIC, json.dumps(order).encode(), key=str(n).encode())
        if n % 100 == 0:
            producer.flush()
            time.sleep(0.05)
    producer.flush()


def run(home: Path, address: str) -> None:
    """Tell the story."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(TOPIC, 4, 1)])[TOPIC].result()
    producer = Producer({"bootstrap.servers": address})
    file = home / "pipeline.sql"
    file.write_text(PIPELINE.format(broker=address, query=QUERY))
    command = [sys.executable, "-m", "reclock", "run", str(file), "--state", str(home / "state")]
    print("the pipeline runs in a process of its own, and is killed in the middle")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            print(f"  {line.rstrip()}")
            if "event=running" in line:
                break
        produce(producer, 0, ORDERS // 2)
        os.kill(process.pid, signal.SIGKILL)
    produce(producer, ORDERS // 2, ORDERS)
    compare(home / "state")


def compare(state: Path) -> None:
    """Open the state that the killed process left, and compare two views of it."""
    with reclock.open(state) as db:
        db.execute(f"CREATE MATERIALIZED VIEW second AS {QUERY}")
        while db.execute("SELECT sum(orders) FROM second").rows != [(ORDERS,)]:
            time.sleep(0.2)
        differ = "SELECT * FROM first EXCEPT ALL SELECT * FROM second"
        since = max(row[0] for row in db.execute("SELECT since FROM reclock.frontiers").rows)
        upper = min(row[0] for row in db.execute("SELECT upper FROM reclock.frontiers").rows)
        times = sorted({*range(since, upper, max(1, (upper - since) // 10)), upper - 1})
        for at in times:
            rows = db.execute(f"{differ} AS OF {at}").rows
            print(f"  at {at}: {len(rows)} rows differ")
            assert not rows
        counts = db.execute("SELECT count(*), count(DISTINCT id) FROM orders").rows
        print(f"{ORDERS} orders, each once: {counts}")


def main() -> None:
    """Run it in a temporary directory, with a broker of its own."""
    with tempfile.TemporaryDirectory() as home:
        broker = Broker(Path(home) / "kafka")
        try:
            run(Path(home), broker.start(0, print).address)
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
