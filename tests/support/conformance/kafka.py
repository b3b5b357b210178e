"""What a Kafka source must do, on a real broker and on the log in memory.

Each case is a function of an ``Upstream``, the broker as a test drives it. Topics are new
in each case, so that cases can share a broker.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from conformance.store.kit import refused
from reclock.connectors.kafka.source import KafkaSource
from reclock.connectors.kafka.start import Earliest, Latest, Start, StartOffsets, StartTimestamp
from reclock.errors import InvalidValue, PositionsLost, SourceRegressed, SourceUnavailable
from reclock.remap.batch import Range
from reclock.testing.kafka_upstream import Record, Upstream
from reclock.time.position import KafkaPosition, offsets_of
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias


if TYPE_CHECKING:
    Case: TypeAlias = Callable[[Upstream], None]

ALL: Final = ("key", "timestamp", "headers")


def _source(upstream: Upstream, topic: str, *extra: str) -> KafkaSource:
    return KafkaSource.create(upstream.cluster(), topic, extra=extra)[0]


def _ends(source: KafkaSource, bound: Mapping[int, int] | None = None) -> dict[int | str, int]:
    return offsets_of(source.probe(KafkaPosition.frontier(bound or {})))


def _await_ends(source: KafkaSource, bound: dict[int, int], ends: dict[int, int]) -> None:
    """Wait for ends: a broker answers a commit before the end of the transaction is there."""
    deadline = time.monotonic() + 30
    while _ends(source, bound) != ends:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def read_rows(source: KafkaSource, *spans: tuple[int, int, int]) -> list[dict[str, Any]]:
    """Return what is read of (partition, start, stop), by partition and offset."""
    ranges = [Range(part, start, stop, Timestamp(0)) for part, start, stop in spans]
    rows = [row for batch in source.reader.read(ranges) for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def _values(source: KafkaSource, *spans: tuple[int, int, int]) -> list[bytes | None]:
    return [row["value"] for row in read_rows(source, *spans)]


def _numbered(start: int, stop: int) -> list[Record]:
    return [Record(b"%d" % n, b"%d" % (n % 3)) for n in range(start, stop)]


def records_come_back_as_they_were(upstream: Upstream) -> None:
    """Check nulls, a megabyte, empty and unicode values, keys, times and headers."""
    topic = upstream.create_topic(2)
    large = bytes(range(256)) * 3_900
    written = [
        Record(b"value", b"key", 1_000, (("h", b"1"), ("h", None))),
        Record(None, b"tombstone", 2_000),
        Record("Größe 🙂".encode(), None, 3_000),
        Record(large, b"", 4_000),
        Record(b"", b"k", 5_000),
    ]
    upstream.produce(topic, 0, *written)
    upstream.produce(topic, 1, Record(None, None, 9))
    source = _source(upstream, topic, *ALL)
    assert _ends(source) == {0: 5, 1: 1}
    rows = read_rows(source, (0, 0, 5), (1, 0, 1))
    assert [(row["partition"], row["offset"]) for row in rows] == [
        *((0, n) for n in range(5)),
        (1, 0),
    ]
    read = [
        Record(
            row["value"],
            row["key"],
            round(row["timestamp"].timestamp() * 1000),
            tuple((h["key"], h["value"]) for h in row["headers"] or ()),
        )
        for row in rows
    ]
    assert read == [*written, Record(None, None, 9)]


def exactly_the_ranges_are_read(upstream: Upstream) -> None:
    """Check ranges inside of a longer log, read twice, backwards, and empty ones."""
    topic = upstream.create_topic(3)
    for partition in range(3):
        upstream.produce(topic, partition, *_numbered(0, 50))
    source = _source(upstream, topic)
    for _ in range(2):
        assert _values(source, (0, 10, 20), (2, 49, 50)) == [
            b"%d" % n for n in (*range(10, 20), 49)
        ]
        assert _values(source, (0, 0, 7)) == [b"%d" % n for n in range(7)]
    assert _values(source, (1, 5, 5)) == []
    assert _values(source) == []


def a_reading_may_be_given_up(upstream: Upstream) -> None:
    """Check that a reader that stops early is no burden for the next."""
    topic = upstream.create_topic()
    upstream.produce(topic, 0, *_numbered(0, 100))
    source = _source(upstream, topic)
    batches = source.reader.read([Range(0, 0, 100, Timestamp(0))])
    assert next(batches).num_rows > 0
    batches.close()  # type: ignore[attr-defined]
    assert _values(source, (0, 98, 100)) == [b"98", b"99"]


def a_range_ends_by_position(upstream: Upstream) -> None:
    """Check ranges that end in control records and in aborted ones, at and before the end."""
    topic = upstream.create_topic()
    source = _source(upstream, topic)
    for outcome in (True, False, True, False):
        transaction = upstream.begin()
        transaction.produce(topic, 0, Record(b"%d" % outcome), Record(b"%d" % outcome))
        (transaction.commit if outcome else transaction.abort)()
        assert _ends(source)[0] % 3 == 0
    _await_ends(source, {}, {0: 12})
    assert _values(source, (0, 0, 12)) == [b"1"] * 4
    assert _values(source, (0, 0, 3)) == [b"1"] * 2, "stops at a control record"
    assert _values(source, (0, 3, 6)) == [], "nothing but aborted records and their end"
    assert _values(source, (0, 2, 3)) == [], "nothing but a control record"
    assert _values(source, (0, 8, 12)) == [], "control record, aborted records, the end"
    assert [row["offset"] for row in read_rows(source, (0, 0, 12))] == [0, 1, 6, 7]


def an_open_transaction_holds_the_frontier(upstream: Upstream) -> None:
    """Check that what may still be aborted, and all after it, is not there yet."""
    topic = upstream.create_topic(2)
    upstream.produce(topic, 0, Record(b"before"))
    source = _source(upstream, topic)
    transaction = upstream.begin()
    transaction.produce(topic, 0, Record(b"inside"))
    upstream.produce(topic, 0, Record(b"after"))
    upstream.produce(topic, 1, Record(b"beside"))
    assert _ends(source) == {0: 1, 1: 1}
    assert _values(source, (0, 0, 1)) == [b"before"]
    hasty = KafkaSource.create(upstream.cluster("read_uncommitted"), topic)[0]
    assert _ends(hasty) == {0: 3, 1: 1}
    assert _values(hasty, (0, 0, 3)) == [b"before", b"inside", b"after"]
    transaction.commit()
    _await_ends(source, {0: 1, 1: 1}, {0: 4, 1: 1})
    assert _values(source, (0, 1, 4)) == [b"inside", b"after"]


def compaction_leaves_gaps(upstream: Upstream) -> None:
    """Check that what is left keeps its offsets, and ranges over gaps end."""
    topic = upstream.create_topic(compacted=True)
    upstream.produce(topic, 0, *(Record(b"%d" % n, b"k%d" % (n % 2)) for n in range(20)))
    source = _source(upstream, topic)
    upstream.compact(topic)
    (end,) = _ends(source, {0: 20}).values()
    assert [row["offset"] for row in read_rows(source, (0, 0, 20))] == [18, 19]
    assert read_rows(source, (0, 0, 10)) == []
    assert len(read_rows(source, (0, 0, end))) == end - 18


def partitions_may_be_added(upstream: Upstream) -> None:
    """Check that a new partition is progress, and read from its beginning."""
    topic = upstream.create_topic()
    upstream.produce(topic, 0, Record(b"old"))
    source = _source(upstream, topic)
    bound = source.probe(KafkaPosition.frontier({}))
    upstream.add_partitions(topic, 3)
    upstream.produce(topic, 2, Record(b"new"))
    probed = source.probe(bound)
    assert bound.strictly_precedes(probed)
    assert offsets_of(probed) == {0: 1, 1: 0, 2: 1}
    assert _values(source, (2, 0, 1)) == [b"new"]


def lost_records_are_a_lasting_error(upstream: Upstream) -> None:
    """Check truncation before, at and beyond what is bound, and a read of what is gone."""
    topic = upstream.create_topic()
    upstream.produce(topic, 0, *_numbered(0, 10))
    source, origin = KafkaSource.create(upstream.cluster(), topic)
    upstream.truncate(topic, 0, 4)
    assert _ends(source, {0: 4}) == {0: 10}, "what was bound before may go"
    error = refused(PositionsLost, source.probe, KafkaPosition.frontier({0: 3}))
    assert "partition 0" in str(error.detail)
    assert "offset 4" in str(error.detail)
    refused(PositionsLost, source.probe, origin)
    error = refused(PositionsLost, read_rows, source, (0, 1, 8))
    assert "[1, 8) of partition 0" in str(error.detail)
    assert _values(source, (0, 4, 6)) == [b"4", b"5"], "the source can be used on"
    anew, origin = KafkaSource.create(upstream.cluster(), topic)
    assert offsets_of(origin) == {0: 4}
    assert offsets_of(anew.probe(origin)) == {0: 10}


def a_deleted_topic_is_a_lasting_error(upstream: Upstream) -> None:
    """Check deletion, and a recreated topic, with more and with fewer partitions."""
    topic = upstream.create_topic(2)
    upstream.produce(topic, 1, *_numbered(0, 5))
    source = _source(upstream, topic)
    bound = source.probe(KafkaPosition.frontier({}))
    source.verify()
    upstream.delete_topic(topic)
    assert "was deleted" in refused(SourceRegressed, source.probe, bound).message
    upstream.recreate_topic(topic, 1)
    for step in (lambda: source.probe(bound), source.verify):
        assert "recreated" in refused(SourceRegressed, step).message
    fewer = _source(upstream, topic)
    assert "lost partition 1" in refused(SourceRegressed, fewer.probe, bound).message
    shorter = KafkaPosition.frontier({0: 3})
    error = refused(SourceRegressed, fewer.probe, shorter)
    assert "was truncated" in error.message
    assert "below 3" in str(error.detail)
    missing = refused(SourceUnavailable, KafkaSource.create, upstream.cluster(), "no-such-topic")
    assert missing.code == "42P01"


def a_start_is_resolved_once(upstream: Upstream) -> None:
    """Check each way to say where a source begins."""
    topic = upstream.create_topic(2)
    upstream.produce(topic, 0, *(Record(b"", None, 1_000 * n) for n in range(1, 11)))
    upstream.produce(topic, 1, Record(b"", None, 500))
    upstream.truncate(topic, 0, 2)

    def origin(start: Start) -> dict[int | str, int]:
        return offsets_of(KafkaSource.create(upstream.cluster(), topic, start)[1])

    assert origin(Earliest()) == {0: 2, 1: 0}
    assert origin(Latest()) == {0: 10, 1: 1}
    assert origin(StartOffsets((7,))) == {0: 7, 1: 0}
    assert origin(StartOffsets((10, 1))) == {0: 10, 1: 1}
    assert origin(StartTimestamp(5_000)) == {0: 4, 1: 1}
    assert origin(StartTimestamp(4_001)) == {0: 4, 1: 1}
    assert origin(StartTimestamp(0)) == {0: 2, 1: 0}
    assert origin(StartTimestamp(99_000)) == {0: 10, 1: 1}
    refused(PositionsLost, origin, StartOffsets((1,)))
    refused(InvalidValue, origin, StartOffsets((11,)))
    refused(InvalidValue, origin, StartOffsets((2, 0, 0)))


CASES: Final[tuple[Case, ...]] = (
    records_come_back_as_they_were,
    exactly_the_ranges_are_read,
    a_reading_may_be_given_up,
    a_range_ends_by_position,
    an_open_transaction_holds_the_frontier,
    compaction_leaves_gaps,
    partitions_may_be_added,
    lost_records_are_a_lasting_error,
    a_deleted_topic_is_a_lasting_error,
    a_start_is_resolved_once,
)
