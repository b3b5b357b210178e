"""Reading a Kafka topic by exact ranges, against a bare consume loop in the same process.

One million JSON rows of about a hundred bytes in four partitions of a broker on this
machine, which shares its cores. The bare loops count messages and look at each value, as
any program must; they make no columns. One has the client's default settings, the other
those that ``read`` uses. Rounds alternate, so all see the same machine.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.measure import Measure, seconds
from reclock.connectors.kafka.fetch import SETTINGS
from reclock.connectors.kafka.source import KafkaSource
from reclock.remap.batch import Range
from reclock.testing.kafka import running_kafka
from reclock.time.position import offsets_of
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.testing.kafka import RealKafka

ROWS = 1_000_000
PARTITIONS = 4
ROUNDS = 3


def fill(kafka: RealKafka) -> str:
    """Write the rows and return the topic."""
    topic = kafka.create_topic(PARTITIONS)
    producer = Producer(
        {"bootstrap.servers": kafka.address, "linger.ms": 50, "queue.buffering.max.messages": ROWS}
    )
    for n in range(ROWS):
        row = {"id": n, "customer": n % 9973, "amount": f"{n % 100_000 / 100:.2f}"}
        text = json.dumps({**row, "at": "2026-01-01T00:00:00Z", "note": "some words here"})
        producer.produce(topic, text.encode(), partition=n % PARTITIONS)
        if n % 10_000 == 0:
            producer.poll(0)
    producer.flush()
    return topic


def bare(consumer: Consumer, topic: str) -> None:
    """Consume everything, as a program does that needs nothing but the values."""
    consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    seen = 0
    while seen < ROWS:
        messages = consumer.consume(10_000, 0.1)
        values = [m.value() for m in messages if m.error() is None]
        seen += len(values)
    consumer.unassign()


def run() -> Iterator[Measure]:
    """Measure rows a second and the memory that reading takes."""
    with running_kafka() as kafka:
        topic = fill(kafka)
        source, origin = KafkaSource.create(kafka.cluster(), topic)
        ends = offsets_of(source.probe(origin))
        ranges = [Range(part, 0, stop, Timestamp(1)) for part, stop in ends.items()]
        one = [Range(0, 0, 1, Timestamp(1))]
        plain = {"bootstrap.servers": kafka.address, "group.id": "bare"}
        default, tuned = Consumer(plain), Consumer({**SETTINGS, **plain})

        def read() -> None:
            assert sum(batch.num_rows for batch in source.reader.read(ranges)) == ROWS

        works = {
            "read": read,
            "tuned": lambda: bare(tuned, topic),
            "default": lambda: bare(default, topic),
        }
        list(source.reader.read(one))  # a consumer is made once
        before = _peak()
        read()
        added = _peak() - before
        rounds = [{name: seconds(work) for name, work in works.items()} for _ in range(ROUNDS)]
        default.close()
        tuned.close()
        rate = {n: ROWS / statistics.median(times[n] for times in rounds) for n in works}
        ratio = rate["read"] / rate["tuned"]
        probes = statistics.median(seconds(lambda: source.probe(origin)) for _ in range(50))
        ticks = statistics.median(seconds(lambda: list(source.reader.read(one))) for _ in range(50))
        yield Measure("Kafka: read() of 1M JSON rows", f"{rate['read'] / 1e6:.2f}M rows/s")
        yield Measure("a bare consume loop, same settings", f"{rate['tuned'] / 1e6:.2f}M rows/s")
        yield Measure("a bare loop, default settings", f"{rate['default'] / 1e6:.2f}M rows/s")
        yield Measure("read() / bare loop, same settings", f"{ratio:.2f}", "≥ 0.6", ratio >= 0.6)
        yield Measure("peak memory added by the first reading", f"{added} MiB")
        yield Measure("probe of 4 partitions", f"{probes * 1000:.1f} ms")
        yield Measure("read() of one record, consumer warm", f"{ticks * 1000:.1f} ms")


def _peak() -> int:
    """Return the most memory this process ever had, in MiB."""
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit
