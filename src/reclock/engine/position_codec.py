"""The codec of a source's positions, by its statement."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reclock.connectors.kafka.consistent import origin_of
from reclock.remap.codec import FILES, KAFKA, LSN, TOPICS
from reclock.sql.statement.source import FileConnection, KafkaConnection, PostgresConnection
from reclock.time.antichain import Antichain

if TYPE_CHECKING:
    from reclock.catalog.item import Source
    from reclock.remap.codec import Codec


def codec_of(item: Source) -> Codec[Any]:
    """Return how the positions of a source are written, and where it begins."""
    match item.statement.connection:
        case KafkaConnection():
            origin = Antichain(map(KAFKA.decode, item.facts["origin"]))
            if (consistency := item.statement.consistency_topic) is None:
                return replace(KAFKA, origin=origin)
            begun = Antichain(map(KAFKA.decode, item.facts["counter"]["origin"]))
            topic = item.statement.connection.topic
            return replace(TOPICS, origin=origin_of((topic, origin), (consistency, begun)))
        case FileConnection():
            return FILES
        case PostgresConnection():
            return LSN
    return KAFKA
