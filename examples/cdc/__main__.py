"""Two captured tables, joined: inserts, updates and deletes as Debezium writes them.

Run it with ``python -m examples.cdc``: it starts a real Apache Kafka (fetched
the first time), writes the topics that a captured database would, and shows a view over a join of
them after every change.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import reclock
from reclock.dev.kafka import Broker

PIPELINE = """
CREATE SOURCE customers (id BIGINT PRIMARY KEY, region TEXT)
  FROM KAFKA BROKER '{broker}' TOPIC 'customers' FORMAT JSON ENVELOPE DEBEZIUM;
CREATE SOURCE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount BIGINT)
  FROM KAFKA BROKER '{broker}' TOPIC 'orders' FORMAT JSON ENVELOPE DEBEZIUM;
CREATE MATERIALIZED VIEW sales AS
  SELECT c.region, count(*) AS orders, sum(o.amount) AS total
  FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region;
"""

Row = dict[str, Any]
NORTH, SOUTH = {"id": 1, "region": "north"}, {"id": 2, "region": "south"}
FIRST, SECOND = {"id": 10, "customer": 1, "amount": 50}, {"id": 11, "customer": 2, "amount": 70}
LARGER = {**FIRST, "amount": 55}

STEPS: list[tuple[str, list[tuple[str, Row | None, Row | None]], list[tuple[Any, ...]]]] = [
    (
        "two customers, two orders",
        [
            ("customers", None, NORTH),
            ("customers", None, SOUTH),
            ("orders", None, FIRST),
            ("orders", None, SECOND),
        ],
        [("north", 1, 50), ("south", 1, 70)],
    ),
    (
        "an order becomes larger",
        [("orders", FIRST, LARGER)],
        [("north", 1, 55), ("south", 1, 70)],
    ),
    (
        "a customer moves",
        [("customers", SOUTH, {**SOUTH, "region": "north"})],
        [("north", 2, 125)],
    ),
    ("an order is deleted", [("orders", LARGER, None)], [("north", 1, 70)]),
]
"""What happens, in which rows, and what the view must be then."""


def send(producer: Producer, topic: str, before: Row | None, after: Row | None) -> None:
    """Write a change as Debezium does."""
    kind = "c" if before is None else "d" if after is None else "u"
    key = {"id": (before or after or {})["id"]}
    value = {"before": before, "after": after, "op": kind}
    producer.produce(topic, json.dumps(value).encode(), json.dumps(key).encode())
    producer.flush()


def run(home: Path, address: str) -> int:
    """Change rows in the captured tables; return after how many steps the view was right."""
    admin = AdminClient({"bootstrap.servers": address})
    for topic in ("customers", "orders"):
        admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": address})
    right = 0
    with reclock.open(home / "state") as db:
        for title, changes, expected in STEPS:
            for change in changes:
                send(producer, *change)
            if not right:
                db.execute(PIPELINE.format(broker=address))
            deadline = time.monotonic() + 60
            rows: list[tuple[Any, ...]] = []
            while rows != expected and time.monotonic() < deadline:
                time.sleep(0.1)
                rows = db.execute("SELECT region, orders, total FROM sales ORDER BY 1").rows
            print(f"{title}: {rows}")
            right += rows == expected
    return right


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
