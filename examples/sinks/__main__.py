"""A view as a topic, exactly once, across kill -9, and then another view in its place.

Run it with ``python -m examples.sinks``: it starts a real Apache Kafka in a temporary directory
(fetched the first time) and a pipeline in another process that counts events into a topic, kills
that process three times in the middle, and reads the topic as any consumer would, with
``isolation.level=read_committed``: what the topic says is what the view has, no change is there
twice, and timestamps ascend. Then ``ALTER SINK … SET FROM`` goes on with another view.
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

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

import reclock
from reclock.dev.kafka import Broker

PIPELINE = """
CREATE SOURCE events FROM LOAD GENERATOR COUNTER (EVENTS PER TICK 7);
CREATE MATERIALIZED VIEW digits AS
  SELECT counter % 10 AS digit, count(*) AS many FROM events GROUP BY counter % 10;
CREATE SINK out FROM digits INTO KAFKA BROKER '{broker}' TOPIC 'digits'
  KEY (digit) FORMAT JSON ENVELOPE UPSERT WITH (reuse_topic = true);
"""

OTHER = """
CREATE MATERIALIZED VIEW odd AS SELECT digit, many FROM digits WHERE digit % 2 = 1
"""


def live(home: Path, seconds: float) -> None:
    """Let the pipeline run in a process of its own, and kill that."""
    command = [sys.executable, "-m", "reclock", "run", str(home / "pipeline.sql")]
    command += ["--state", str(home / "state")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "event=running" in line:
                break
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGKILL)


def consume(broker: str) -> dict[int, int]:
    """Read the whole topic and return what it has in the end; check what it says on the way."""
    consumer = Consumer(
        {"bootstrap.servers": broker, "group.id": "example", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition("digits", 0, OFFSET_BEGINNING)])
    end = consumer.get_watermark_offsets(TopicPartition("digits", 0))[1]
    held: dict[int, int] = {}
    seen: set[tuple[int, int]] = set()
    last = messages = 0
    while consumer.position([TopicPartition("digits", 0)])[0].offset < end:
        message = consumer.poll(1.0)
        if message is None or message.error():
            continue
        at = int(dict(message.headers())["reclock-timestamp"])
        digit = json.loads(message.key())["digit"]
        assert at >= last, "timestamps ascend"
        assert (at, digit) not in seen, "no change is there twice"
        last, messages = at, messages + 1
        seen.add((at, digit))
        held.pop(digit, None)
        if message.value() is not None:
            held[digit] = json.loads(message.value())["many"]
    consumer.close()
    print(f"  the topic has {messages} messages: {dict(sorted(held.items()))}")
    return held


def agree(db: reclock.Database, broker: str, view: str) -> None:
    """Wait until all that a view has is in the topic, and compare."""
    result = db.execute(f"SELECT digit, many FROM {view}")
    status = "SELECT frontier, state, detail FROM reclock.sink_status"
    while True:
        frontier, state, detail = db.execute(status).rows[0]
        assert state != "failed", detail
        if frontier is not None and result.timestamp is not None and frontier > result.timestamp:
            break
        time.sleep(0.1)
    held = consume(broker)
    assert held.keys() == dict(result.rows).keys()
    assert all(held[digit] >= many for digit, many in result.rows), "it has gone on since"
    print(f"  it is what {view} had at {result.timestamp}, or a later time")


def run(home: Path) -> None:
    """Tell the story."""
    kafka = Broker(home / "kafka")
    broker = kafka.start(0, lambda step: print(f"  {step}")).address
    print(f"Apache Kafka runs at {broker}")
    try:
        (home / "pipeline.sql").write_text(PIPELINE.format(broker=broker))
        for life in range(1, 4):
            live(home, life)
            print(f"the pipeline was killed {life} times")
        with reclock.open(home / "state") as db:
            db.execute("SET statement_timeout = '2 min'")  # for slow machines
            agree(db, broker, "digits")
            print("ALTER SINK out SET FROM odd")
            db.execute(OTHER)
            db.execute("ALTER SINK out SET FROM odd")
            agree(db, broker, "odd")
            print(db.execute("SHOW CREATE SINK out").rows[0][1])
    finally:
        kafka.stop()


def main() -> None:
    """Run it in a temporary directory."""
    with tempfile.TemporaryDirectory() as home:
        run(Path(home))


if __name__ == "__main__":
    main()
