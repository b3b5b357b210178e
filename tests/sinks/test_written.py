"""What a data topic says of its sink: the last time, all records, or that nobody knows."""

from __future__ import annotations

import pytest

from conformance.sink import failing
from reclock.errors import SinkRegressed
from reclock.sinks import written
from reclock.sinks.failure import Retry, Stop
from reclock.sinks.log import TIMESTAMP_HEADER
from reclock.sinks.written import last_time, records
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.kafka_upstream import Record


class Topic:
    """A data topic with two partitions."""

    def __init__(self) -> None:
        self.kafka = MemoryKafka()
        self.name = self.kafka.create_topic(2)

    def write(self, partition: int, *times: int) -> None:
        for time in times:
            headers = ((TIMESTAMP_HEADER, b"%d" % time),)
            self.kafka.produce(self.name, partition, Record(b"v", b"k%d" % time, None, headers))

    def last(self) -> int | None:
        clusters = (self.kafka.cluster(level) for level in ("read_uncommitted", "read_committed"))
        return last_time(self.name, *clusters, 0.0)

    def read(self) -> list[tuple[int, bytes, int]]:
        clusters = (self.kafka.cluster(level) for level in ("read_uncommitted", "read_committed"))
        return [
            (row["partition"], row["key"], int(time))
            for batch, times in records(self.name, *clusters, 0.0)
            for row, time in zip(batch.to_pylist(), times, strict=True)
        ]


@pytest.fixture
def topic() -> Topic:
    return Topic()


def test_the_last_time_is_that_of_all_partitions(topic: Topic) -> None:
    assert topic.last() is None
    topic.write(1, 0)
    assert topic.last() == 0
    topic.write(0, 3, 3, 9)
    topic.write(1, 5)
    assert topic.last() == 9
    assert topic.read() == [(0, b"k3", 3), (0, b"k3", 3), (0, b"k9", 9), (1, b"k0", 0),
                            (1, b"k5", 5)]  # fmt: skip


def test_what_was_aborted_was_never_there(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "FIRST_SUFFIX", 2)
    for n in range(20):
        aborted = topic.kafka.begin()
        headers = ((TIMESTAMP_HEADER, b"%d" % n),)
        aborted.produce(topic.name, 0, Record(b"v", b"k", None, headers))
        aborted.abort()
        if n == 3:
            assert topic.last() is None
            topic.write(0, 7)
    assert topic.last() == 7
    assert topic.read() == [(0, b"k7", 7)]


def test_an_open_transaction_is_waited_for(topic: Topic) -> None:
    topic.write(0, 1)
    stranger = topic.kafka.begin()
    stranger.produce(topic.name, 1, Record(b"?", b"stranger"))
    failing(Retry, topic.last)
    failing(Retry, topic.read)
    stranger.abort()
    assert topic.last() == 1


def test_what_is_gone_is_not_taken_for_nothing(topic: Topic) -> None:
    topic.write(0, 1, 2)
    topic.write(1, 3)
    topic.kafka.truncate(topic.name, 0, 1)
    assert topic.last() == 3, "the end is there"
    assert "beginning" in failing(Stop, topic.read).error.message
    topic.kafka.truncate(topic.name, 1, 1)
    error = failing(Stop, topic.last).error
    assert isinstance(error, SinkRegressed)
    assert "partition 1" in str(error.detail)
    topic.kafka.delete_topic(topic.name)
    assert failing(Stop, topic.last).error.code == "42P01"


@pytest.mark.parametrize(
    "headers",
    [(), (("other", b"1"),), ((TIMESTAMP_HEADER, b"soon"),), ((TIMESTAMP_HEADER, b""),),
     ((TIMESTAMP_HEADER, b"1"), (TIMESTAMP_HEADER, b"2"))],
)  # fmt: skip
def test_what_no_sink_wrote_is_refused(
    topic: Topic, headers: tuple[tuple[str, bytes], ...]
) -> None:
    topic.write(0, 1)
    topic.kafka.produce(topic.name, 0, Record(b"v", b"k", None, headers))
    for call in (topic.last, topic.read):
        assert isinstance(failing(Stop, call).error, SinkRegressed)
