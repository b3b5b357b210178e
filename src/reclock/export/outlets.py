"""The logs of real clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.connectors.kafka.client import KafkaCluster
from reclock.sinks.admin import KafkaAdmin
from reclock.sinks.connect import connect

if TYPE_CHECKING:
    from reclock.connectors.kafka.cluster import Cluster
    from reclock.connectors.kafka.options import Connection
    from reclock.sinks.log import Unfenced
    from reclock.sinks.producer import Patience, Target
    from reclock.sinks.topics import Admin


class KafkaOutlets:
    """Clusters, as librdkafka reaches them."""

    def cluster(self, connection: Connection) -> Cluster:
        """Return what there is to read."""
        return KafkaCluster(connection)

    def admin(self, connection: Connection) -> Admin:
        """Return who makes topics."""
        return KafkaAdmin(connection)

    def producer(
        self, connection: Connection, target: Target, patience: Patience, compression: str
    ) -> Unfenced:
        """Return a new producer; nothing is asked yet."""
        return connect(connection, target, patience, compression)


KAFKA_OUTLETS: Final = KafkaOutlets()
