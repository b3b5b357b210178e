"""Reading exact offset ranges: a span ends by position, never by count.

Offsets have gaps: control records of transactions, records of aborted ones, what compaction
removed. So a partition is finished when a record at or beyond its stop arrives, or when
the partition says that its end, which is at or beyond stop, is reached. Not before, and
not later: nothing waits for records that do not exist.

Memory. The client prefetches at most ``_QUEUE_KILOBYTES``; what it holds is taken out at
once, and becomes a batch when it is ``_BATCH_ROWS`` or ``_BATCH_BYTES`` large. Records
are taken without waiting, a few at a time, so a batch is hardly more than that, however
large records are. The records' columns are made by mapping over them in C; what is beyond a
stop is cut with numpy. The library's messages are let go ``_FEW`` at a time, before Python's
collector of cycles counts enough of them to run: it took half of the time of reading.

Consumers are kept for the process and used again, one reader at a time; one that failed is
closed. Nothing is committed and no group is joined: the bindings own the positions.

Errors. Offsets that are gone are ``PositionsLost``. A broker that does not answer for
``_PATIENCE_SECONDS``, or does not know the topic, is ``SourceUnavailable``; until then the
client tries again by itself.

Tests: tests/connectors/kafka/test_source.py, on the real broker. Speed:
benchmarks/kafka_read.py.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Place

from reclock.connectors.kafka.cluster import COLUMNS, schema_of
from reclock.connectors.kafka.failure import LOG, MISSING, OUT_OF_RANGE, Aside, failure
from reclock.errors import PositionsLost, SourceUnavailable
from reclock.secret import scrub

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reclock.connectors.kafka.cluster import Span
    from reclock.connectors.kafka.options import Connection

_BATCH_ROWS: Final = 65_536
_BATCH_BYTES: Final = 16 << 20
_TAKE: Final = 10_000
_FEW: Final = 512
_QUEUE_KILOBYTES: Final = 16_384
_WAIT_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 30.0

SETTINGS: Final = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "fetch.wait.max.ms": "10",
    "fetch.queue.backoff.ms": "5",
    "fetch.max.bytes": str(_BATCH_BYTES),
    "receive.message.max.bytes": str(100 << 20),
    "queued.min.messages": "100000",
    "queued.max.messages.kbytes": str(_QUEUE_KILOBYTES),
    "reconnect.backoff.max.ms": "1000",
}
"""The first four are correctness; the others keep ticks quick and memory bounded."""


class _Client(NamedTuple):
    """A consumer, and what it says on the side."""

    consumer: Consumer
    aside: Aside


_pool: dict[tuple[int, Connection], list[_Client]] = defaultdict(list)
"""Idle consumers by process and connection: a fork must not use its parent's."""


def fetch(
    connection: Connection, topic: str, spans: Sequence[Span], extra: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield all records of ``spans``, in order within each partition."""
    idle = _pool[os.getpid(), connection]
    try:
        client = idle.pop()
    except IndexError:
        client = _connect(connection)
    client.aside.take()
    try:
        yield from _Reading(client, connection, topic, spans, extra).batches()
        client.consumer.unassign()
    except BaseException:  # also a reader that wants no more: its prefetch is in the way
        client.consumer.close()
        raise
    idle.append(client)


def _connect(connection: Connection) -> _Client:
    aside = Aside()
    identity = {"group.id": f"{connection.group_prefix}reclock"}
    isolation = {"isolation.level": connection.isolation}
    config = {**SETTINGS, **connection.config(), **identity, **isolation, "error_cb": aside}
    try:
        return _Client(Consumer(config, logger=LOG), aside)
    except KafkaException as error:
        raise failure(connection, error.args[0]) from None


class _Reading:
    """One reading of spans with one consumer."""

    def __init__(
        self,
        client: _Client,
        connection: Connection,
        topic: str,
        spans: Sequence[Span],
        extra: Sequence[str],
    ) -> None:
        self._consumer, self._aside = client
        self._connection = connection
        self._topic = topic
        self._spans = {span.partition: span for span in spans}
        self._open = set(self._spans)
        self._stops = np.zeros(max(self._spans) + 1, np.int64)
        for span in spans:
            self._stops[span.partition] = span.stop
        self._schema = schema_of(extra)
        self._extra = extra

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield batches until every partition has passed its stop."""
        places = [Place(self._topic, s.partition, s.start) for s in self._spans.values()]
        self._consumer.assign(places)
        self._consumer.resume(places)  # the client remembers what the last reading paused
        pieces: list[pa.RecordBatch] = []
        rows = size = 0
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._open:
            records = self._taken()
            if records.offsets:
                deadline = time.monotonic() + _PATIENCE_SECONDS
            elif (refusal := self._aside.refusal()) is not None:
                raise failure(self._connection, refusal)
            elif time.monotonic() > deadline:
                raise self._silent()
            if records.offsets and (piece := self._piece(records)).num_rows:
                pieces.append(piece)
                rows += piece.num_rows
                size += piece.nbytes
            if rows >= _BATCH_ROWS or size >= _BATCH_BYTES:
                yield pa.concat_batches(pieces)
                pieces, rows, size = [], 0, 0
        if pieces:
            yield pa.concat_batches(pieces)

    def _taken(self) -> _Records:
        """Return what there is, not much more than a batch; wait for one if there is nothing."""
        records = _Records(self._extra)
        taken = self._consumer.consume(min(_FEW, _TAKE), 0)
        taken = taken or self._consumer.consume(1, _WAIT_SECONDS)
        while taken:
            records.add(self._without_events(taken))
            taken.clear()
            few = min(_FEW, _TAKE - len(records.offsets))
            if few > 0 and records.size < _BATCH_BYTES:
                taken = self._consumer.consume(few, 0)
        return records

    def _without_events(self, taken: list[Message]) -> list[Message]:
        """Return the records; note ends of partitions, raise what cannot go on."""
        if not any(map(Message.error, taken)):
            return taken
        records = []
        for message in taken:
            error = message.error()
            if error is None:
                records.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - so named
                self._passed(message.partition() or 0, message.offset() or 0)
            else:
                self._raise_lasting(error, message.partition())
        return records

    def _piece(self, records: _Records) -> pa.RecordBatch:
        """Return the columns of the records before their stops, and close what is passed."""
        partitions = np.array(records.partitions, np.int32)
        offsets = np.array(records.offsets, np.int64)
        columns = [
            pa.array(partitions),
            pa.array(offsets),
            pa.array(records.values, COLUMNS["value"]),
            *map(pa.concat_arrays, records.extra.values()),
        ]
        piece = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        keep = offsets < self._stops[partitions]
        if not keep.all():
            for partition in np.unique(partitions[~keep]):
                self._close(int(partition))
            piece = piece.filter(pa.array(keep))
            partitions, offsets = partitions[keep], offsets[keep]
        for partition in self._open & set(np.unique(partitions).tolist()):
            self._passed(partition, int(offsets[partitions == partition][-1]) + 1)
        return piece

    def _passed(self, partition: int, position: int) -> None:
        """Note that everything of ``partition`` before ``position`` was seen."""
        if partition in self._open and position >= self._spans[partition].stop:
            self._close(partition)

    def _close(self, partition: int) -> None:
        if partition in self._open:
            self._open.discard(partition)
            if self._open:  # else all of it is given up at once
                self._consumer.pause([Place(self._topic, partition)])

    def _raise_lasting(self, error: KafkaError, partition: int | None) -> None:
        """Raise what no waiting mends; at everything else the client goes on trying."""
        self._aside(error)
        if error.code() in OUT_OF_RANGE:
            span = self._spans.get(-1 if partition is None else partition)
            message = f'topic "{self._topic}" no longer has offsets that were to be read'
            place = f"[{span.start}, {span.stop}) of partition {partition}" if span else "some"
            hint = (
                "keep records longer than reclock may be down; drop the source and create it again"
            )
            raise PositionsLost(message, detail=f"they are {place}", hint=hint)
        if error.code() in MISSING:  # or not known yet where we asked: the next probe tells
            message = f"Kafka at {self._connection.brokers} does not know what is read"
            detail = f'it is partition {partition} of topic "{self._topic}"'
            raise SourceUnavailable(message, detail=detail)

    def _silent(self) -> SourceUnavailable:
        message = f"Kafka at {self._connection.brokers} does not answer"
        waiting = ", ".join(map(str, sorted(self._open)))
        detail = f'no record of topic "{self._topic}" in {_PATIENCE_SECONDS:g} s'
        detail += f", waiting for partitions {waiting}"
        if (said := self._aside.take()) is not None:
            detail += f": {scrub(said.str(), self._connection.secrets)}"
        return SourceUnavailable(message, detail=detail)


class _Records:
    """What records hold, as plain values and columns; the records themselves are not kept."""

    def __init__(self, extra: Sequence[str]) -> None:
        self.partitions: list[int | None] = []
        self.offsets: list[int | None] = []
        self.values: list[bytes | None] = []
        self.extra: dict[str, list[pa.Array]] = {name: [] for name in extra}
        self.size = 0

    def add(self, records: list[Message]) -> None:
        """Take what some records hold."""
        self.partitions += map(Message.partition, records)
        self.offsets += map(Message.offset, records)
        values = list(map(Message.value, records))
        self.values += values
        self.size += sum(map(len, filter(None, values)))
        for name, columns in self.extra.items():
            columns.append(_column(name, records))
            self.size += columns[-1].nbytes


def _column(name: str, records: list[Message]) -> pa.Array:
    if name == "key":
        return pa.array(list(map(Message.key, records)), COLUMNS["key"])
    if name == "timestamp":
        kinds_and_times = list(map(Message.timestamp, records))
        times = np.fromiter(map(itemgetter(1), kinds_and_times), np.int64, len(records))
        kinds = np.fromiter(map(itemgetter(0), kinds_and_times), np.int64, len(records))
        return pa.array(times, mask=kinds == TIMESTAMP_NOT_AVAILABLE).cast(COLUMNS["timestamp"])
    return pa.array(list(map(_headers, records)), COLUMNS["headers"])


def _headers(record: Message) -> list[dict[str, Any]] | None:
    found: list[Any] | None = record.headers()  # type: ignore[assignment]  # a list, when read
    return found and [{"key": key, "value": value} for key, value in found]
