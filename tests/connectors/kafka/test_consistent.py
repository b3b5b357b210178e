"""Two topics as one source: parts by name, both checked, what is said of rows read before them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from reclock.connectors.kafka.consistent import (
    ConsistentSource,
    number_of,
    origin_of,
    partitions_of,
    with_number,
    without_number,
)
from reclock.connectors.kafka.source import KafkaSource
from reclock.errors import PositionsLost, SourceRegressed
from reclock.remap.batch import Range
from reclock.remap.codec import TOPICS
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.kafka_upstream import Record
from reclock.time.position import TopicPosition, offsets_of
from reclock.time.timestamp import Timestamp


class Both:
    def __init__(self):
        self.kafka = MemoryKafka()
        self.rows, self.said = self.kafka.create_topic(3), self.kafka.create_topic(1)
        found = [KafkaSource.create(self.kafka.cluster(), t) for t in (self.rows, self.said)]
        self.source = ConsistentSource(*(source for source, _ in found))
        self.origin = origin_of((self.rows, found[0][1]), (self.said, found[1][1]))

    def probe(self, bound=None):
        return self.source.probe(self.origin if bound is None else bound)


@pytest.fixture
def both():
    return Both()


def test_the_frontier_is_of_both_and_what_is_said_is_read_first(both):
    both.kafka.produce(both.rows, 2, Record(b"r0"), Record(b"r1"))
    both.kafka.produce(both.said, 0, Record(b"s0"))
    end = both.probe()
    wanted = {f"{both.rows}/{p}": n for p, n in ((0, 0), (1, 0), (2, 2))} | {f"{both.said}/0": 1}
    assert offsets_of(end) == wanted
    assert both.origin.precedes(end)
    ranges = [Range(part, 0, stop, Timestamp(0)) for part, stop in wanted.items() if stop]
    read = [
        (part, offset, value)
        for batch in both.source.reader.read(ranges)
        for part, offset, value in zip(*(c.to_pylist() for c in batch.columns[:3]), strict=True)
    ]
    assert read == [
        (f"{both.said}/0", 0, b"s0"), (f"{both.rows}/2", 0, b"r0"), (f"{both.rows}/2", 1, b"r1"),
    ]  # fmt: skip
    both.kafka.add_partitions(both.rows, 4)
    assert end.strictly_precedes(both.probe(end))


def test_either_may_regress(both):
    for topic in (both.rows, both.said):
        both.kafka.produce(topic, 0, Record(b"x"), Record(b"y"))
    bound = both.probe()
    both.kafka.truncate(both.said, 0, 1)
    with pytest.raises(PositionsLost):
        both.probe()
    assert both.probe(bound) == bound
    both.kafka.recreate_topic(both.said, 1)
    for refused in (lambda: both.probe(bound), both.source.verify):
        with pytest.raises(SourceRegressed, match="recreated"):
            refused()


def test_a_consistency_topic_keeps_its_one_partition(both):
    both.kafka.add_partitions(both.said, 2)
    with pytest.raises(SourceRegressed, match="has 2 partitions"):
        both.probe()


def test_the_number_of_a_transaction_is_a_part_beside_the_others(both):
    one, two = with_number(both.origin, 3), with_number(both.origin, 4)
    assert (number_of(both.origin), number_of(one)) == (None, 3)
    assert both.origin.strictly_precedes(one)
    assert one.strictly_precedes(two)
    assert without_number(two) == both.origin
    for position in two:
        assert TOPICS.decode(TOPICS.encode(position)) == position
    assert TopicPosition.frontier({"a/10": 1, "a/9": 2}).precedes(
        TopicPosition.frontier({"a/10": 1, "a/9": 2, "b/0": 0})
    )


def test_partitions_are_numbers_again():
    parts = pa.array(["a.b/2", "a.b/10", "a.b/2"])
    assert partitions_of(parts).to_pylist() == [2, 10, 2]
    assert partitions_of(parts).type == pa.int32()
