"""A Kafka broker, as a test drives it: the records and transactions that it writes.

A real broker (``kafka.RealKafka``) and one in memory (``kafka_log.MemoryKafka``) are each an
``Upstream``, so that a test can run with either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from reclock.connectors.kafka.cluster import Cluster


class Record(NamedTuple):
    """A record to write; without ``ms`` the broker's clock decides."""

    value: bytes | None
    key: bytes | None = None
    ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Transaction(Protocol):
    """Records that count together or not at all."""

    def produce(self, topic: str, partition: int, *records: Record) -> None:
        """Write records in the transaction."""
        ...

    def commit(self) -> None:
        """Let the records count."""
        ...

    def abort(self) -> None:
        """Let the records not have been."""
        ...


class Upstream(Protocol):
    """A broker, as a test drives it."""

    def cluster(self, isolation: str = "read_committed") -> Cluster:
        """Return what a source sees."""
        ...

    def create_topic(self, partitions: int = 1, *, compacted: bool = False) -> str:
        """Make a new topic and return its name."""
        ...

    def delete_topic(self, topic: str) -> None:
        """Remove a topic."""
        ...

    def recreate_topic(self, topic: str, partitions: int) -> None:
        """Remove a topic and make an empty one of the same name."""
        ...

    def add_partitions(self, topic: str, total: int) -> None:
        """Let a topic have ``total`` partitions."""
        ...

    def produce(self, topic: str, partition: int, *records: Record) -> None:
        """Write records, outside of any transaction."""
        ...

    def begin(self) -> Transaction:
        """Begin a transaction."""
        ...

    def compact(self, topic: str) -> None:
        """Compact; may append a record to make it possible."""
        ...

    def truncate(self, topic: str, partition: int, before: int) -> None:
        """Remove the records before an offset."""
        ...
