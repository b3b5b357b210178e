"""A real process that exports to a real broker, and is killed again and again.

The view is a function of time, so that every process, and the check, computes it for itself.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from conformance.sink import committed
from reclock.connectors.kafka.options import Connection
from reclock.sinks.admin import KafkaAdmin
from reclock.sinks.connect import connect
from reclock.sinks.encode.debezium import DebeziumEncoder
from reclock.sinks.encode.json_format import JsonFormat
from reclock.sinks.export import Exporter, Plan
from reclock.sinks.failure import NewProducer, Retry
from reclock.sinks.gather import Limits
from reclock.sinks.producer import Target
from reclock.sinks.topics import consistency_name, prepared
from reclock.sql import types as t
from reclock.sql.schema import Column
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.testing.kafka import RealKafka
    from reclock.time.frontier import Frontier

TIMES = 1_000
KEYS = 50
ROWS = 20
"""Rows that change at a time."""


def change_at(moment: int) -> list[tuple[int, int, int, int]]:
    """Return what changes: some keys get a new value, every seventh time none does."""
    made = []
    for n in range(ROWS if moment % 7 else 0):
        key = (moment * ROWS + n) % KEYS
        old = moment - 1
        while old >= 0 and (old % 7 == 0 or (key - old * ROWS) % KEYS >= ROWS):
            old -= 1
        if old >= 0:
            made.append((key, old, moment, -1))
        made.append((key, moment, moment, 1))
    return made


def changes(lower: Frontier, upper: Frontier) -> Iterator[pa.RecordBatch]:
    """Yield the changes of each time."""
    for moment in range(int(lower.element()), int(upper.element())):
        rows = change_at(moment)
        if rows:
            arrays = [pa.array(column) for column in np.array(rows, np.int64).T]
            yield pa.RecordBatch.from_arrays(arrays, names=["c0", "c1", "time", "diff"])


def export(address: str, topic: str, consistency: str) -> None:
    """Export until everything is written: what the process does that is killed."""
    target = Target("u9", topic, consistency, f"sink-{topic}")
    format_ = JsonFormat((Column("k", t.BIGINT), Column("v", t.BIGINT)), (0,))
    plan = Plan(
        target, DebeziumEncoder(format_, (0,)), changes, lambda f: {"u1": [*f]}, Limits(200)
    )

    def opened() -> Exporter:
        return Exporter.resume(plan, connect(Connection.of(address, {}), target), at(0))

    exporter = opened()
    while exporter.frontier != at(TIMES):
        try:
            exporter.advance(at(TIMES), 0)
            print(exporter.frontier, flush=True)
        except Retry:
            time.sleep(0.1)
        except NewProducer:
            exporter = opened()


@pytest.mark.kafka
@pytest.mark.slow(seconds=60)
def test_kill_9(kafka: RealKafka) -> None:
    topic = f"killed-{uuid.uuid4().hex}"
    consistency = consistency_name(topic)
    admin = KafkaAdmin(Connection.of(kafka.address, {}))
    prepared(admin, topic, consistency, keyed=True, partitions=3)
    command = [sys.executable, __file__, kafka.address, topic, consistency]
    draw = random.Random(7)
    kills = 0
    while True:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(draw.randrange(1, 20)):
                process.stdout.readline()
            time.sleep(draw.random() * 0.1)
            if process.poll() is None:
                process.kill()
                kills += 1
                continue
        assert process.returncode == 0
        break
    assert kills >= 5, "too fast to be killed"
    sums: Counter[tuple[int, int, int]] = Counter()
    seen = committed(kafka, topic)
    for partition in range(3):
        times = [s.message.time for s in seen if s.partition == partition]
        assert times == sorted(times)
    for _, message in seen:
        value = json.loads(message.value or b"")
        for side, diff in (("before", -1), ("after", 1)):
            if value[side] is not None:
                sums[value[side]["k"], value[side]["v"], message.time] += diff
    rows = [row for moment in range(TIMES) for row in change_at(moment)]
    assert sums == {(key, value, moment): diff for key, value, moment, diff in rows}
    assert len(seen) == sum(diff > 0 for _, _, _, diff in rows), "each change is one pair"


if __name__ == "__main__":
    export(*sys.argv[1:])
