"""The client library, as a sink needs it: a producer, and a reader of existing output.

``Client`` is that part of ``confluent_kafka.Producer``; the log in memory has one too
(``reclock.testing.kafka_producer``), so one text of the protocol runs in all tests.

Tests: tests/sinks/test_producer.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from reclock.secret import scrub

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import KafkaError

    from reclock.connectors.kafka.cluster import Cluster
    from reclock.secret import Secret

    Headers = list[tuple[str, str | bytes | None]]


class Client(Protocol):
    """What is needed of ``confluent_kafka.Producer``; each may raise ``KafkaException``."""

    def init_transactions(self, timeout: float, /) -> None:
        """Fence older producers of the same transactional id."""
        ...

    def begin_transaction(self) -> None:
        """Begin."""
        ...

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int = -1,
        *,
        headers: Headers | None = None,
    ) -> None:
        """Put a message into the queue; ``BufferError`` if that is full."""
        ...

    def poll(self, timeout: float, /) -> int:
        """Serve callbacks for a while."""
        ...

    def flush(self, timeout: float, /) -> int:
        """Wait until all messages are delivered; return how many are not."""
        ...

    def purge(self) -> None:
        """Drop what is not delivered."""
        ...

    def commit_transaction(self, timeout: float, /) -> None:
        """Flush and commit."""
        ...

    def abort_transaction(self, timeout: float, /) -> None:
        """Drop what is queued and abort."""
        ...


@dataclass(frozen=True, slots=True)
class Access:
    """A client, what failed in it so far, and how to read what is there already."""

    client: Client
    failed: list[KafkaError]
    uncommitted: Cluster
    committed: Cluster
    brokers: str
    secrets: tuple[Secret, ...] = ()
    refusal: Callable[[], KafkaError | None] = lambda: None
    """Why the brokers do not let us in, which the library says on the side."""

    def said(self, error: KafkaError) -> str:
        """Return the library's words without secrets."""
        return f"{error.name()}: {scrub(str(error.str()), self.secrets)}"
