"""Two topics as one source: rows, and the consistency topic that says which transactions they are.

A part is a partition of either, named ``topic/partition``; so a position is of both, and a binding
says how far rows and what is said of them were read together. What can go wrong with a topic
is what can go wrong with each (``kafka.source``); a consistency topic has one partition, in
which transactions are in order, and gets no other.

What is said of transactions is read before rows: it is little, and tells which of the rows
have to wait.

Tests: tests/connectors/kafka/test_consistent.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from reclock.errors import SourceRegressed
from reclock.time.position import KafkaPosition, TopicPosition, offsets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reclock.connectors.kafka.source import KafkaReader, KafkaSource
    from reclock.remap.batch import Range
    from reclock.time.antichain import Antichain

TRANSACTION: Final = "transaction"
"""The part whose offset is the number of a transaction; no topic is named so (``reclocked``)."""


def part_of(topic: str, partition: int) -> str:
    """Return the name of a partition among those of two topics.

    >>> part_of("orders", 3), topic_of("orders/3")
    ('orders/3', 'orders')
    """
    return f"{topic}/{partition}"


def topic_of(part: str) -> str:
    """Return the topic of a part."""
    return part.rpartition("/")[0]


def partitions_of(parts: pa.Array) -> pa.Array:
    """Return the numbers of partitions, of parts by name."""
    names = parts.dictionary_encode()
    numbers = pc.replace_substring_regex(names.dictionary, "^.*/", "").cast(pa.int32())
    return numbers.take(names.indices)


@dataclass(frozen=True, slots=True)
class ConsistentReader:
    """Reads exact ranges of both topics."""

    rows: KafkaReader
    metadata: KafkaReader

    def read(self, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
        """Yield the records of ``ranges``, those of the consistency topic first."""
        for reader in (self.metadata, self.rows):
            own = [
                r._replace(part=int(str(r.part).rpartition("/")[2]))
                for r in ranges
                if topic_of(str(r.part)) == reader.topic
            ]
            for batch in reader.read(own):
                numbers = batch.column(0).cast(pa.string())
                parts = pc.binary_join_element_wise(reader.topic, numbers, "/")
                yield batch.set_column(0, "part", parts)

    def grain(self, part: int | str) -> int:
        """Return 1: positions are records."""
        del part
        return 1


@dataclass(frozen=True, slots=True)
class ConsistentSource:
    """Rows of one topic, and the consistency topic of their transactions."""

    rows: KafkaSource
    metadata: KafkaSource

    @property
    def reader(self) -> ConsistentReader:
        """What reads both topics, here or in another process."""
        return ConsistentReader(self.rows.reader, self.metadata.reader)

    def probe(self, bound: Antichain[TopicPosition]) -> Antichain[TopicPosition]:
        """Return the stable end of each partition of both."""
        found: dict[str, int] = {}
        for source in (self.metadata, self.rows):
            known = {
                int(str(part).rpartition("/")[2]): offset
                for part, offset in offsets_of(bound).items()
                if topic_of(str(part)) == source.topic
            }
            ends = offsets_of(source.probe(KafkaPosition.frontier(known)))
            if source is self.metadata and len(ends) > 1:
                message = f'consistency topic "{source.topic}" has {len(ends)} partitions'
                detail = "transactions are in order in one partition alone"
                raise SourceRegressed(message, detail=detail, hint="create it again with one")
            found |= {part_of(source.topic, int(part)): end for part, end in ends.items()}
        return TopicPosition.frontier(found)

    def verify(self) -> None:
        """Refuse if one of them is not what it was."""
        self.metadata.verify()
        self.rows.verify()


def origin_of(
    rows: tuple[str, Antichain[KafkaPosition]], metadata: tuple[str, Antichain[KafkaPosition]]
) -> Antichain[TopicPosition]:
    """Return where both begin, by topic."""
    found = {
        part_of(topic, int(part)): offset
        for topic, origin in (rows, metadata)
        for part, offset in offsets_of(origin).items()
    }
    return TopicPosition.frontier(found)


def without_number(frontier: Antichain[TopicPosition]) -> Antichain[TopicPosition]:
    """Return a frontier without the number of a transaction: what can be read."""
    if frontier.is_closed:
        return frontier
    offsets = {str(p): o for p, o in offsets_of(frontier).items() if p != TRANSACTION}
    return TopicPosition.frontier(offsets)


def with_number(frontier: Antichain[TopicPosition], number: int) -> Antichain[TopicPosition]:
    """Return a frontier of which all transactions before ``number`` are bound."""
    offsets = {str(p): o for p, o in offsets_of(frontier).items()}
    return TopicPosition.frontier({**offsets, TRANSACTION: number})


def number_of(frontier: Antichain[TopicPosition]) -> int | None:
    """Return before which number transactions are bound; None if none are."""
    return offsets_of(frontier).get(TRANSACTION)
