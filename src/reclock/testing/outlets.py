"""The logs of sinks in memory: topics are made as asked, producers can be made to fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.sinks.producer import Patience
from reclock.testing.kafka_producer import Faults, opened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.connectors.kafka.cluster import Cluster, Topic
    from reclock.connectors.kafka.options import Connection
    from reclock.sinks.producer import Producer, Target
    from reclock.sinks.topics import NewTopic
    from reclock.testing.kafka_log import MemoryKafka


class MemoryAdmin:
    """``sinks.topics.Admin``; topics have the settings that they were made with."""

    def __init__(self, kafka: MemoryKafka) -> None:
        self._kafka = kafka

    def describe(self, topic: str) -> Topic | None:
        """Return the topic, or None if there is none of this name."""
        return self._kafka.cluster().describe(topic)

    def settings(self, topic: str) -> Mapping[str, str]:
        """Return what a topic was made with."""
        return {"cleanup.policy": "delete", **self._kafka.settings.get(topic, {})}

    def create(self, topic: NewTopic) -> bool:
        """Make a topic."""
        return self._kafka.create(topic)


class MemoryOutlets:
    """``export.connect.Outlets`` over one broker in memory."""

    def __init__(self, kafka: MemoryKafka) -> None:
        self._kafka = kafka
        self.faults = Faults()

    def cluster(self, connection: Connection) -> Cluster:
        """Return what there is to read."""
        return self._kafka.cluster(connection.isolation)

    def admin(self, connection: Connection) -> MemoryAdmin:
        """Return who makes topics."""
        del connection
        return MemoryAdmin(self._kafka)

    def producer(
        self, connection: Connection, target: Target, patience: Patience, compression: str
    ) -> Producer:
        """Return a new producer, whose steps fail as ``faults`` says; it waits for nothing."""
        del connection, compression
        patience = Patience(patience.transaction, call=0.0, progress=0.0)
        return opened(self._kafka, target, self.faults, patience)
