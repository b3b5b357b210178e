"""Kafka in memory: topics whose records, transactions and gaps behave as a broker's.

A partition is a list of entries with offsets of their own. Ending a transaction writes a
*control record* to each partition it wrote to, which takes an offset and is no record. The
last stable offset is the first one of the oldest transaction that is open; aborted records
are there for ``read_uncommitted`` alone. Compaction and truncation remove entries and
leave the offsets of the others: gaps. A recreated topic has a new id.

A transactional id has an epoch: a fence raises it, which ends the open transaction of the one
before and bars it. A transaction that times out is ended the same way.

``MemoryKafka`` is the broker as tests drive it (``reclock.testing.kafka_upstream``),
``cluster`` what a source sees of it, ``reclock.testing.kafka_producer`` what a sink does. While
it is stopped, nothing answers.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reclock.connectors.kafka.cluster import Span, Topic, Watermarks, schema_of
from reclock.errors import PositionsLost, SourceRegressed, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from reclock.connectors.kafka.cluster import Cluster
    from reclock.sinks.topics import NewTopic
    from reclock.testing.kafka_upstream import Record

_BATCH_ROWS = 3
"""So small that every test of more than a few records sees several batches."""


@dataclass(frozen=True, slots=True)
class _Entry:
    offset: int
    record: Record | None  # None for a control record
    transaction: _Transaction | None = None

    def visible(self, isolation: str) -> bool:
        if self.record is None:
            return False
        aborted = self.transaction is not None and self.transaction.outcome is False
        return not (aborted and isolation == "read_committed")


@dataclass(slots=True)
class _Partition:
    entries: list[_Entry] = field(default_factory=list)
    low: int = 0
    high: int = 0

    def append(self, record: Record | None, transaction: _Transaction | None = None) -> None:
        self.entries.append(_Entry(self.high, record, transaction))
        self.high += 1

    def stable(self, isolation: str) -> int:
        unfinished = (
            e.offset
            for e in self.entries
            if e.transaction is not None and e.transaction.outcome is None
        )
        return self.high if isolation == "read_uncommitted" else min(unfinished, default=self.high)


class _Transaction:
    """Records that count together or not at all; ``outcome`` is None while it is open."""

    def __init__(self, kafka: MemoryKafka) -> None:
        self._kafka = kafka
        self._touched: dict[int, _Partition] = {}
        self.outcome: bool | None = None

    def produce(self, topic: str, partition: int, *records: Record) -> None:
        """Write records that ``read_committed`` readers do not see yet."""
        log = self._kafka.partition(topic, partition)
        self._touched[id(log)] = log
        for record in records:
            log.append(record, self)

    def commit(self) -> None:
        """Let the records count."""
        self._end(outcome=True)

    def abort(self) -> None:
        """Let the records not have been."""
        self._end(outcome=False)

    def _end(self, *, outcome: bool) -> None:
        if not self._kafka.running:
            raise _silence()
        self.outcome = outcome
        for log in self._touched.values():
            log.append(None)


@dataclass(slots=True)
class _Instance:
    """The latest instance of a transactional id."""

    epoch: int = -1
    transaction: _Transaction | None = None

    def advance(self) -> int:
        if self.transaction is not None and self.transaction.outcome is None:
            self.transaction.abort()
        self.epoch += 1
        return self.epoch


class MemoryKafka:
    """A broker that is an object."""

    def __init__(self) -> None:
        self._topics: dict[str, tuple[str, list[_Partition]]] = {}
        self._ids = count(1)
        self._instances: dict[str, _Instance] = defaultdict(_Instance)
        self.settings: dict[str, dict[str, str]] = {}
        self.running = True
        self.batch_rows = _BATCH_ROWS

    def cluster(self, isolation: str = "read_committed") -> Cluster:
        """Return what a source sees."""
        return MemoryCluster(self, isolation)

    def create_topic(self, partitions: int = 1, *, compacted: bool = False) -> str:
        """Make a new topic and return its name."""
        name = f"topic-{next(self._ids)}"
        self._make(name, partitions)
        self.settings[name] = {"cleanup.policy": "compact" if compacted else "delete"}
        return name

    def create(self, topic: NewTopic) -> bool:
        """Make a topic, as a sink asks for it; return False if there is one of this name."""
        if self.described(topic.name) is not None:
            return False
        self._make(topic.name, topic.partitions or 1)
        self.settings[topic.name] = dict(topic.config)
        return True

    def delete_topic(self, topic: str) -> None:
        """Remove a topic."""
        del self._topics[topic]

    def recreate_topic(self, topic: str, partitions: int) -> None:
        """Remove a topic and make an empty one of the same name."""
        self._make(topic, partitions)

    def add_partitions(self, topic: str, total: int) -> None:
        """Let a topic have ``total`` partitions."""
        partitions = self._topics[topic][1]
        partitions += [_Partition() for _ in range(total - len(partitions))]

    def produce(self, topic: str, partition: int, *records: Record) -> None:
        """Write records, outside of any transaction."""
        for record in records:
            self.partition(topic, partition).append(record)

    def begin(self) -> _Transaction:
        """Begin a transaction."""
        return _Transaction(self)

    def fence(self, transactional_id: str) -> int:
        """End the open transaction of the instance before, bar it, and return the new epoch."""
        if not self.running:
            raise _silence()
        return self._instances[transactional_id].advance()

    def begin_as(self, transactional_id: str, epoch: int) -> _Transaction:
        """Begin a transaction of the instance with this epoch, which must be the latest."""
        assert self.is_latest(transactional_id, epoch), "barred"
        made = self._instances[transactional_id].transaction = _Transaction(self)
        return made

    def is_latest(self, transactional_id: str, epoch: int) -> bool:
        """Return whether no other instance fenced since, and no transaction timed out."""
        return self._instances[transactional_id].epoch == epoch

    def time_out(self, transactional_id: str) -> None:
        """End the open transaction as a broker does whose patience is over."""
        self._instances[transactional_id].advance()

    def compact(self, topic: str) -> None:
        """Remove what a later record of the same key replaces; the last entry always stays."""
        for log in self._topics[topic][1]:
            latest = {e.record.key: e.offset for e in log.entries if e.record is not None}
            log.entries = [
                e
                for e in log.entries
                if e.offset == log.high - 1
                or (e.record is not None and latest[e.record.key] == e.offset)
            ]

    def truncate(self, topic: str, partition: int, before: int) -> None:
        """Remove the records before an offset."""
        log = self.partition(topic, partition)
        log.low = before
        log.entries = [e for e in log.entries if e.offset >= before]

    def partition(self, topic: str, partition: int) -> _Partition:
        """Return a partition's log, if the broker runs and has it."""
        if not self.running:
            raise _silence()
        if topic not in self._topics:
            message = f'topic "{topic}" was deleted while it was read'
            raise SourceRegressed(message)
        return self._topics[topic][1][partition]

    def described(self, topic: str) -> Topic | None:
        """Return a topic's id and partitions."""
        if not self.running:
            raise _silence()
        if topic not in self._topics:
            return None
        identity, partitions = self._topics[topic]
        return Topic(identity, tuple(range(len(partitions))))

    def _make(self, topic: str, partitions: int) -> None:
        self._topics[topic] = (f"id-{next(self._ids)}", [_Partition() for _ in range(partitions)])


def _silence() -> SourceUnavailable:
    return SourceUnavailable("Kafka in memory does not answer")


@dataclass(frozen=True, slots=True)
class MemoryCluster:
    """A ``Cluster`` over a ``MemoryKafka``."""

    kafka: MemoryKafka
    isolation: str

    def describe(self, topic: str) -> Topic | None:
        """Return the topic, or None if there is none of this name."""
        return self.kafka.described(topic)

    def watermarks(self, topic: str, partitions: Iterable[int]) -> dict[int, Watermarks]:
        """Return where each partition begins and ends."""
        logs = {p: self.kafka.partition(topic, p) for p in partitions}
        return {p: Watermarks(log.low, log.stable(self.isolation)) for p, log in logs.items()}

    def offsets_at(self, topic: str, partitions: Iterable[int], ms: int) -> dict[int, int | None]:
        """Return the first offset written at or after ``ms``; None where there is none."""
        return {
            p: next(
                (
                    e.offset
                    for e in self.kafka.partition(topic, p).entries
                    if e.record is not None and e.record.ms is not None and e.record.ms >= ms
                ),
                None,
            )
            for p in partitions
        }

    def fetch(
        self, topic: str, spans: Sequence[Span], extra: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield all records of ``spans``."""
        rows: list[dict[str, Any]] = []
        for partition, start, stop in spans:
            log = self.kafka.partition(topic, partition)
            if start < log.low:
                message = f'topic "{topic}" no longer has offsets that were to be read'
                detail = f"they are [{start}, {stop}) of partition {partition}"
                raise PositionsLost(message, detail=detail)
            rows += [
                _row(partition, e)
                for e in log.entries
                if start <= e.offset < stop and e.visible(self.isolation)
            ]
        size = self.kafka.batch_rows
        for first in range(0, len(rows), size):
            yield pa.RecordBatch.from_pylist(rows[first : first + size], schema_of(extra))


def _row(partition: int, entry: _Entry) -> dict[str, Any]:
    record = entry.record
    assert record is not None, "a visible entry"
    headers = record.headers and [{"key": k, "value": v} for k, v in record.headers]
    return {
        "partition": partition,
        "offset": entry.offset,
        "value": record.value,
        "key": record.key,
        "timestamp": record.ms,
        "headers": headers or None,
    }
