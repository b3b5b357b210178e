"""A real cluster, through confluent-kafka: the questions of a probe, asked in three requests.

Clients are made when first needed and kept for the process, one per connection: making one
costs a handshake, and what it learns of the cluster stays. A cluster is a value that can
be pickled; the clients stay where they are. However many partitions a topic has, a probe
costs one request to describe it and two to its leaders, sent together.

A caller keeps the client until the answer is there: the library never answers what it was asked
through a client that is gone, and another one may have taken its place among those kept.

Tests: tests/connectors/kafka/test_source.py (marked ``kafka``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined] # it is public

from reclock.connectors.kafka.cluster import Topic, Watermarks
from reclock.connectors.kafka.failure import LEADERLESS, LOG, MISSING, Aside, failure
from reclock.connectors.kafka.fetch import fetch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from reclock.connectors.kafka.cluster import Span
    from reclock.connectors.kafka.options import Connection
    from reclock.errors import Error

TIMEOUT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class KafkaCluster:
    """The cluster at ``connection``; ``timeout`` bounds each question."""

    connection: Connection
    timeout: float = TIMEOUT_SECONDS

    def describe(self, topic: str) -> Topic | None:
        """Return the topic, or None if there is none of this name."""
        admin = self._admin
        asked = admin.describe_topics(TopicCollection([topic]), request_timeout=self.timeout)
        try:
            found = asked[topic].result()
        except KafkaException as error:
            if _code(error) in MISSING:
                return None
            raise self._failure(error) from None
        return Topic(str(found.topic_id), tuple(sorted(p.id for p in found.partitions)))

    def watermarks(self, topic: str, partitions: Iterable[int]) -> dict[int, Watermarks]:
        """Return where each partition begins and ends; those without a leader are left out."""
        places = [Place(topic, partition) for partition in partitions]
        admin = self._admin
        low = self._offsets(admin, places, OffsetSpec.earliest())  # type: ignore[no-untyped-call] # has no types
        high = self._offsets(admin, places, OffsetSpec.latest())  # type: ignore[no-untyped-call] # has no types
        lows, highs = self._results(low), self._results(high)
        return {p: Watermarks(lows[p], highs[p]) for p in sorted(lows.keys() & highs.keys())}

    def offsets_at(self, topic: str, partitions: Iterable[int], ms: int) -> dict[int, int | None]:
        """Return the first offset written at or after ``ms``; None where there is none."""
        places = [Place(topic, partition) for partition in partitions]
        admin = self._admin
        found = self._results(self._offsets(admin, places, OffsetSpec.for_timestamp(ms)))
        return {p: offset if offset >= 0 else None for p, offset in found.items()}

    def fetch(
        self, topic: str, spans: Sequence[Span], extra: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield all records of ``spans``."""
        return fetch(self.connection, topic, spans, extra)

    @property
    def _admin(self) -> AdminClient:
        try:
            return admin_of(self.connection)[0]
        except KafkaException as error:
            raise failure(self.connection, error.args[0]) from None

    def _offsets(
        self, admin: AdminClient, places: list[Place], spec: OffsetSpec
    ) -> dict[Place, Any]:
        if not places:
            return {}
        level = (
            IsolationLevel.READ_COMMITTED
            if self.connection.isolation == "read_committed"
            else IsolationLevel.READ_UNCOMMITTED
        )
        return admin.list_offsets(
            dict.fromkeys(places, spec), isolation_level=level, request_timeout=self.timeout
        )

    def _results(self, asked: dict[Place, Any]) -> dict[int, int]:
        answers: dict[int, int] = {}
        for place, answer in asked.items():
            try:
                offset = answer.result().offset
            except KafkaException as error:
                if _code(error) not in LEADERLESS:
                    raise self._failure(error) from None
                continue
            if offset != OFFSET_INVALID:  # no error, and no answer: its broker went meanwhile
                answers[place.partition] = offset
        return answers

    def _failure(self, error: KafkaException) -> Error:
        """Return what to raise; the client reports why no answer came only through its log."""
        reported: KafkaError = error.args[0]
        if reported.code() == KafkaError._TIMED_OUT:  # noqa: SLF001 - so named by the library
            admin, aside = admin_of(self.connection)
            admin.poll(0)
            reported = aside.take() or reported
        return failure(self.connection, reported)


def _code(error: KafkaException) -> int:
    return int(error.args[0].code())


def admin_of(connection: Connection) -> tuple[AdminClient, Aside]:
    """Return a connection's client, and what it says on the side.

    Threads that ask at once get the same one.
    """
    with _making:
        return _made(connection)


_making: Final = Lock()


@lru_cache(maxsize=32)
def _made(connection: Connection) -> tuple[AdminClient, Aside]:
    aside = Aside()
    quick = {"reconnect.backoff.max.ms": "1000", "socket.connection.setup.timeout.ms": "5000"}
    config: dict[str, Any] = {**quick, **connection.config(), "error_cb": aside}
    return AdminClient(config, logger=LOG), aside
