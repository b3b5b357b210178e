"""How much one transaction of a sink that is behind should hold: ``transaction_rows``.

Four hundred timestamps of five hundred rows each are complete before the sink writes the first of
them; then it writes all, in transactions of at most so many rows. Small ones pay for commits, large
ones keep readers waiting and are lost whole when the process dies: the default is where more rows
no longer make it faster.
"""

from __future__ import annotations

import tempfile
import uuid
from typing import TYPE_CHECKING

import reclock
from benchmarks.measure import Measure, seconds
from benchmarks.sink import COLUMNS, UPSERT, orders
from reclock.clock import ManualClock
from reclock.testing.kafka import running_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMES = 400
ROWS = 500


def run() -> Iterator[Measure]:
    """Write the same backlog in transactions of several sizes."""
    with running_kafka() as kafka:
        for limit in (ROWS, 5_000, 50_000, 500_000):
            taken = backlog(kafka.address, limit)
            rate = TIMES * ROWS / taken / 1e3
            yield Measure(
                f"a backlog of {TIMES} timestamps, transactions of {limit:,} rows",
                f"{rate:,.0f} k messages/s ({taken:.1f} s)",
            )


def backlog(broker: str, limit: int) -> float:
    """Return the seconds that writing the backlog takes."""
    topic = f"backlog-{uuid.uuid4().hex[:8]}"
    clock = ManualClock(1_000)
    with (
        tempfile.TemporaryDirectory() as path,
        reclock.open(path, clock=clock, background=False) as db,
    ):
        db.execute(f"CREATE TABLE orders ({COLUMNS})")
        db.execute(
            f"CREATE SINK s FROM orders INTO KAFKA BROKER '{broker}' TOPIC '{topic}' {UPSERT} "
            f"WITH (reuse_topic = true, partitions = 4, transaction_rows = {limit})"
        )
        db.tick()
        for at in range(TIMES):
            clock.advance(10)
            db.insert("orders", orders(at * ROWS, ROWS))
        clock.advance(1_000)
        taken = seconds(db.tick)
        (messages,) = db.execute("SELECT messages FROM reclock.sink_status").rows[0]
        assert messages == TIMES * ROWS, messages
        return taken
