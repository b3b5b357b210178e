"""Sinks on the real broker, with a real process that is killed: every change once, in order."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time

import pytest
from confluent_kafka import Consumer, TopicPartition

pytestmark = pytest.mark.kafka

PROGRAM = """
import sys, time
import reclock

path, broker, topic, seconds = sys.argv[1:]
with reclock.open(path) as db:
    db.execute("ALTER SYSTEM SET timestamp_interval = '30ms'")
    db.execute("ALTER SYSTEM SET logical_compaction_window = '1ms'")
    db.execute("CREATE SOURCE IF NOT EXISTS n FROM LOAD GENERATOR COUNTER (EVENTS PER TICK 20)")
    db.execute(
        f"CREATE SINK IF NOT EXISTS s FROM n INTO KAFKA BROKER '{broker}' TOPIC '{topic}' "
        "FORMAT JSON ENVELOPE DEBEZIUM WITH (reuse_topic = true)"
    )
    print("ready", flush=True)
    time.sleep(float(seconds))
    if float(seconds) < 100:
        status = "SELECT state, frontier, detail FROM reclock.sink_status"
        deadline = time.monotonic() + 60
        goal = db.execute("SELECT upper FROM reclock.frontiers WHERE object = 'n'").rows[0][0]
        while (db.execute(status).rows[0][1] or 0) < goal:
            assert time.monotonic() < deadline, db.execute(status).rows
            time.sleep(0.05)
        frontier = db.execute(status).rows[0][1]
        print(db.execute(f"SELECT count(*) FROM n AS OF {frontier - 1}").rows[0][0], frontier)
"""


def start(path, kafka, topic, seconds):
    command = [sys.executable, "-c", PROGRAM, str(path), kafka.address, topic, str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "ready"
    return process


def read(kafka, topic):
    """Everything that a read_committed consumer sees."""
    config = {"bootstrap.servers": kafka.address, "group.id": "check", "enable.partition.eof": True,
              "isolation.level": "read_committed", "fetch.wait.max.ms": 10}  # fmt: skip
    consumer = Consumer(config)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := consumer.poll(10)) is not None and message.error() is None:
        headers = dict(message.headers() or [])
        found.append((int(headers["reclock-timestamp"]), json.loads(message.value())))
    consumer.close()
    return found


@pytest.mark.parametrize(
    ("kills", "turn"),
    [(2, 0), *(pytest.param(10, n, marks=pytest.mark.slow(seconds=40)) for n in range(5))],
)
def test_every_change_once_though_the_process_is_killed(kafka, tmp_path, kills, turn):
    topic = f"sink-{kills}-{turn}-{random.randrange(1 << 30)}"
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(kills):
        with start(tmp_path / "state", kafka, topic, 1_000) as process:
            time.sleep(chance.uniform(0.1, 1.2))
            process.kill()
    with start(tmp_path / "state", kafka, topic, 0.5) as process:
        count, frontier = map(int, process.stdout.readline().split())
    messages = [m for m in read(kafka, topic) if m[0] < frontier]
    assert [value["before"] for _, value in messages] == [None] * len(messages)
    numbers = [value["after"]["counter"] for _, value in messages]
    assert sorted(numbers) == list(range(1, count + 1)), "each once"
    times = [time for time, _ in messages]
    assert times == sorted(times)
    assert count >= 20 * kills
