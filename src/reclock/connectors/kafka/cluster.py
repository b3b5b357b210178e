"""The requests of a source to a Kafka cluster: the seam between deciding and talking.

Offsets are as the isolation level sees them: with ``read_committed``, the default, a
partition ends at its last stable offset, the first one of the oldest open transaction, and
records of aborted transactions do not exist. All methods raise ``SourceUnavailable`` where
the cluster does not answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Topic(NamedTuple):
    """A topic as it is now; a recreated topic of the same name has another ``id``."""

    id: str
    partitions: tuple[int, ...]


class Watermarks(NamedTuple):
    """Records of a partition are in ``[low, high)``; ``high`` is stable."""

    low: int
    high: int


class Span(NamedTuple):
    """Offsets ``[start, stop)`` of a partition, to be read."""

    partition: int
    start: int
    stop: int


HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

COLUMNS: Final = {
    "partition": pa.int32(),
    "offset": pa.int64(),
    "value": pa.binary(),
    "key": pa.binary(),
    "timestamp": pa.timestamp("ms", tz="UTC"),
    "headers": HEADERS,
}
"""What a record consists of. The first three are always read, the others if wanted."""

ALWAYS: Final = ("partition", "offset", "value")


def schema_of(extra: Sequence[str]) -> pa.Schema:
    """Return the schema of batches with the ``extra`` columns.

    >>> schema_of(["key"]).names
    ['partition', 'offset', 'value', 'key']
    """
    return pa.schema([(name, COLUMNS[name]) for name in (*ALWAYS, *extra)])


class Cluster(Protocol):
    """A Kafka cluster; it can be pickled where its readers run in other processes."""

    def describe(self, topic: str) -> Topic | None:
        """Return the topic, or None if there is none of this name."""
        ...

    def watermarks(self, topic: str, partitions: Iterable[int]) -> dict[int, Watermarks]:
        """Return where each partition begins and ends; those without a leader are left out."""
        ...

    def offsets_at(self, topic: str, partitions: Iterable[int], ms: int) -> dict[int, int | None]:
        """Return the first offset written at or after ``ms``; None where there is none."""
        ...

    def fetch(
        self, topic: str, spans: Sequence[Span], extra: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield all records of ``spans``, at most one per partition, in bounded batches.

        ``PositionsLost`` if a span begins before what the partition still has.
        """
        ...
