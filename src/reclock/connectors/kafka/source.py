"""A topic as a source: what is bound, what can be read, and what must never happen.

The frontier of a topic has each partition at its stable end. What was bound before says
what a topic may be now; everything else is a lasting error that names the offsets:

====================================  ===========================================
the topic is gone                     ``SourceRegressed``
its id is another                     ``SourceRegressed``: deleted and recreated
a bound partition is gone             ``SourceRegressed``
a partition ends before what is bound ``SourceRegressed``
a partition begins after              ``PositionsLost``: records that were not read
====================================  ===========================================

A partition without a leader is not an error if nothing of it is bound: it is born when it
has one. If something is bound, ``SourceUnavailable``.

A topic could be recreated between a probe and a read, and its records be taken for those of the old
one: ``verify`` after reading detects that.

Tests: tests/connectors/kafka/test_source.py, on the real broker and in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.connectors.kafka.cluster import ALWAYS, COLUMNS, Span, schema_of
from reclock.connectors.kafka.start import Earliest, Start, resolve
from reclock.errors import InvalidValue, PositionsLost, SourceRegressed, SourceUnavailable
from reclock.time.position import KafkaPosition, offsets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from reclock.connectors.kafka.cluster import Cluster, Topic, Watermarks
    from reclock.remap.batch import Range
    from reclock.time.antichain import Antichain

_ANEW: Final = "what is already bound cannot be read again: drop the source and create it again"


@dataclass(frozen=True, slots=True)
class KafkaReader:
    """Reads exact ranges of a topic; ``extra`` columns are key, timestamp and headers."""

    cluster: Cluster
    topic: str
    extra: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse columns that records do not have."""
        for name in self.extra:
            if name not in COLUMNS or name in ALWAYS:
                message = f'records have no extra column "{name}"'
                raise InvalidValue(message)

    @property
    def schema(self) -> pa.Schema:
        """The columns of what is read."""
        return schema_of(self.extra)

    def visit(self) -> None:
        """Ask the cluster for the topic; raise if it does not answer."""
        self.cluster.describe(self.topic)

    def read(self, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
        """Yield the records of ``ranges``; gaps in the offsets are normal."""
        spans = spans_of(ranges)
        if spans:
            yield from self.cluster.fetch(self.topic, spans, self.extra)

    def grain(self, part: int | str) -> int:
        """Return 1: positions are records."""
        del part
        return 1


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """One topic of a cluster, known by its id."""

    cluster: Cluster
    topic: str
    topic_id: str
    extra: tuple[str, ...] = ()

    @classmethod
    def create(
        cls,
        cluster: Cluster,
        topic: str,
        start: Start = Earliest(),  # noqa: B008 - a frozen value
        extra: tuple[str, ...] = (),
    ) -> tuple[KafkaSource, Antichain[KafkaPosition]]:
        """Return the source of a topic, and the origin at which it begins for ever."""
        found = cluster.describe(topic)
        if found is None:
            message = f'topic "{topic}" does not exist'
            raise SourceUnavailable(message, code="42P01", hint="create the topic first")
        return cls(cluster, topic, found.id, extra), resolve(start, cluster, topic, found)

    @property
    def reader(self) -> KafkaReader:
        """What reads this topic, here or in another process."""
        return KafkaReader(self.cluster, self.topic, self.extra)

    def probe(self, bound: Antichain[KafkaPosition]) -> Antichain[KafkaPosition]:
        """Return each partition's stable end."""
        known: dict[int, int] = offsets_of(bound)  # type: ignore[assignment] # Kafka numbers them
        topic = self._described()
        if gone := sorted(known.keys() - set(topic.partitions)):
            message = f'topic "{self.topic}" lost partition {gone[0]}'
            detail = f"offsets below {known[gone[0]]} of partition {gone[0]} are bound"
            raise SourceRegressed(message, detail=detail, hint=_ANEW)
        marks = self.cluster.watermarks(self.topic, topic.partitions)
        for partition, offset in known.items():
            if partition not in marks:
                message = f'partition {partition} of topic "{self.topic}" has no leader'
                raise SourceUnavailable(message)
            self._check_end(partition, offset, marks[partition])
        for partition, mark in marks.items():
            self._check_beginning(partition, known.get(partition, 0), mark)
        return KafkaPosition.frontier({p: mark.high for p, mark in marks.items()})

    def verify(self) -> None:
        """Refuse if the topic is not the one that was probed any more."""
        self._described()

    def _described(self) -> Topic:
        topic = self.cluster.describe(self.topic)
        if topic is None:
            message = f'topic "{self.topic}" was deleted'
            raise SourceRegressed(message, detail=f"its id was {self.topic_id}", hint=_ANEW)
        if topic.id != self.topic_id:
            message = f'topic "{self.topic}" was deleted and recreated'
            detail = f"its id was {self.topic_id}, and is {topic.id} now"
            raise SourceRegressed(message, detail=detail, hint=_ANEW)
        return topic

    def _check_end(self, partition: int, bound: int, mark: Watermarks) -> None:
        if mark.high < bound:
            message = f'partition {partition} of topic "{self.topic}" was truncated'
            detail = f"offsets below {bound} are bound, but it ends at {mark.high}"
            raise SourceRegressed(message, detail=detail, hint=_ANEW)

    def _check_beginning(self, partition: int, bound: int, mark: Watermarks) -> None:
        if mark.low > bound:
            message = f'topic "{self.topic}" lost records that were not read yet'
            detail = (
                f"partition {partition} begins at offset {mark.low}, {bound} is the next to read"
            )
            hint = (
                "keep records longer than reclock may be down; drop the source and create it again"
            )
            raise PositionsLost(message, detail=detail, hint=hint)


def spans_of(ranges: Sequence[Range]) -> list[Span]:
    """Return one span per partition; ranges of a partition must follow one another.

    >>> from reclock.remap.batch import Range
    >>> from reclock.time.timestamp import Timestamp
    >>> spans_of([Range(0, 5, 7, Timestamp(1)), Range(0, 7, 9, Timestamp(2))])
    [Span(partition=0, start=5, stop=9)]
    """
    spans: dict[int, Span] = {}
    for part, start, stop, _ in sorted(ranges, key=lambda r: (int(r.part), r.start)):
        if start >= stop:
            continue
        partition = int(part)
        before = spans.get(partition)
        if before is not None and before.stop != start:
            message = f"ranges of partition {partition} do not follow one another"
            raise InvalidValue(message, detail=f"[…, {before.stop}) and [{start}, {stop})")
        spans[partition] = Span(partition, before.start if before else start, stop)
    return list(spans.values())
