"""Where a sink was left, however long and full of gaps the topic is."""

from __future__ import annotations

from typing import Any

import pytest

from reclock.sinks import progress
from reclock.sinks.consistency import FrontierRecord, frontier_record, transaction_records
from reclock.sinks.progress import last_frontier
from reclock.testing.kafka_log import MemoryCluster, MemoryKafka
from reclock.testing.kafka_upstream import Record
from reclock.time.frontier import at


class Counting(MemoryCluster):
    """Counts the records that are asked for."""

    asked = 0

    def fetch(self, topic: str, spans: Any, extra: Any) -> Any:
        Counting.asked += sum(span.stop - span.start for span in spans)
        return super().fetch(topic, spans, extra)


def ask(kafka: MemoryKafka, topic: str) -> FrontierRecord | None:
    Counting.asked = 0
    reader = Counting(kafka, "read_committed")
    return last_frontier("u1", topic, kafka.cluster("read_uncommitted"), reader, 0.0)


def write(kafka: MemoryKafka, topic: str, time: int, sink: str = "u1") -> None:
    for key, value in (*transaction_records(time, "t", 1), frontier_record(sink, at(time), {})):
        kafka.produce(topic, 0, Record(value, key))


def test_a_long_history_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_SUFFIX", 4)
    kafka = MemoryKafka()
    topic = kafka.create_topic()
    for time in range(500):
        write(kafka, topic, time)
    assert ask(kafka, topic) == FrontierRecord("u1", at(499), {})
    assert Counting.asked == 4


@pytest.mark.parametrize("others", [0, 1, 2, 40])
def test_a_quiet_sink_is_found_behind_others(monkeypatch: pytest.MonkeyPatch, others: int) -> None:
    monkeypatch.setattr(progress, "FIRST_SUFFIX", 4)
    kafka = MemoryKafka()
    topic = kafka.create_topic()
    assert ask(kafka, topic) is None
    write(kafka, topic, 3)
    for time in range(others):
        write(kafka, topic, time, "u2")
    assert ask(kafka, topic) == FrontierRecord("u1", at(3), {})
    kafka.truncate(topic, 0, 3)
    assert ask(kafka, topic) is None


def test_aborted_progress_is_none() -> None:
    kafka = MemoryKafka()
    topic = kafka.create_topic()
    write(kafka, topic, 3)
    for outcome in (False, True):
        transaction = kafka.begin()
        key, value = frontier_record("u1", at(9), {})
        transaction.produce(topic, 0, Record(value, key))
        (transaction.commit if outcome else transaction.abort)()
        assert ask(kafka, topic) == FrontierRecord("u1", at(9 if outcome else 3), {})
