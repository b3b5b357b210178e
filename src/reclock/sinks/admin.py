"""Requests of a sink to a real cluster about its topics.

Clients are the connection's own, kept for the process (``connectors.kafka.client``). A topic
that was just made is waited for, as its brokers learn of it one after another.

Tests: tests/sinks/test_topics.py (those marked ``kafka``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource  # type: ignore[attr-defined] # it is public
from confluent_kafka.admin import NewTopic as Wanted  # type: ignore[attr-defined] # it is public

from reclock.connectors.kafka.client import KafkaCluster, admin_of
from reclock.errors import SinkStopped, SinkUnavailable, SourceUnavailable
from reclock.secret import scrub
from reclock.sinks.failure import explained

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.connectors.kafka.cluster import Topic
    from reclock.connectors.kafka.options import Connection
    from reclock.sinks.topics import NewTopic

_DEFAULT: Final = -1
_PATIENCE_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.02
_REFUSED: Final = ("28000", "42501")


@dataclass(frozen=True, slots=True)
class KafkaAdmin:
    """The cluster at ``connection``, as the maker of topics sees it."""

    connection: Connection

    def describe(self, topic: str) -> Topic | None:
        """Return the topic, or None if there is none of this name."""
        try:
            return KafkaCluster(self.connection).describe(topic)
        except SourceUnavailable as error:
            kind = SinkStopped if error.code in _REFUSED else SinkUnavailable
            raise kind(
                error.message, detail=error.detail, hint=error.hint, code=error.code
            ) from error

    def settings(self, topic: str) -> Mapping[str, str]:
        """Return the settings of a topic that is there."""
        wanted = ConfigResource(ConfigResource.Type.TOPIC, topic)
        admin, _ = admin_of(self.connection)  # kept until it has answered
        asked = admin.describe_configs([wanted], request_timeout=_PATIENCE_SECONDS)
        try:
            found = asked[wanted].result()
        except KafkaException as error:
            self._raise(error)
        return {name: str(entry.value) for name, entry in found.items()}

    def create(self, topic: NewTopic) -> bool:
        """Make a topic; return False if there is one of this name already."""
        wanted = Wanted(
            topic.name,
            _DEFAULT if topic.partitions is None else topic.partitions,
            _DEFAULT if topic.replication is None else topic.replication,
            config=dict(topic.config),
        )
        admin, _ = admin_of(self.connection)  # kept until it has answered
        asked = admin.create_topics([wanted], request_timeout=_PATIENCE_SECONDS)
        try:
            asked[topic.name].result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            self._raise(error)
        self._wait(topic.name)
        return True

    def _wait(self, name: str) -> None:
        """Wait until the topic can be seen and has leaders."""
        cluster = KafkaCluster(self.connection)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            found = self.describe(name)
            if found and len(cluster.watermarks(name, found.partitions)) == len(found.partitions):
                return
            time.sleep(_PAUSE_SECONDS)

    def _raise(self, error: KafkaException) -> NoReturn:
        reported: KafkaError = error.args[0]
        said = f"{reported.name()}: {scrub(str(reported.str()), self.connection.secrets)}"
        raise explained(reported, self.connection.brokers, said) from None
