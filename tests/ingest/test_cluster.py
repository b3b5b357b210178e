"""On a cluster: executors that share nothing with the driver read Kafka, decode, and agree."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from reclock.testing.kafka_upstream import Record

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow(seconds=40)]

PROGRAM = """
import sys, time
import reclock

path, broker, topic = sys.argv[1:]
with reclock.open(path, master="local-cluster[2,1,1024]") as db:
    db.execute("ALTER SYSTEM SET execution = 'spark'")
    db.execute(
        f"CREATE SOURCE s (id BIGINT, x TEXT) FROM KAFKA BROKER '{broker}' TOPIC '{topic}' "
        "FORMAT JSON INCLUDE PARTITION, OFFSET WITH (on_error = 'inline')"
    )
    deadline = time.monotonic() + 240
    while db.execute("SELECT state FROM reclock.source_status").rows != [("running",)]:
        assert time.monotonic() < deadline, db.execute("SELECT * FROM reclock.source_status").rows
        time.sleep(0.2)
    print(db.execute("SELECT count(*), count(id), sum(id) FROM s").rows)
"""


def test_executors_read_the_topic(kafka, tmp_path):
    topic = kafka.create_topic(4)
    for n in range(4):
        rows = [Record(json.dumps({"id": n * 1_000 + i, "x": "é"}).encode()) for i in range(500)]
        kafka.produce(topic, n, *rows, Record(b"nope"))
    ids = [n * 1_000 + i for n in range(4) for i in range(500)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "state"), kafka.address, topic],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert f"[(2004, 2000, Decimal('{sum(ids)}'))]" in done.stdout, done.stdout + done.stderr
