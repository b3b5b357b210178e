"""A sink's producer on a real cluster: the client's settings, and why each of them.

===============================  ===========================================================
``transactional.id``             the sink's, for ever: what fencing goes by
``enable.idempotence``           no message twice, none out of order, whatever is sent again
``partitioner``                  ``murmur2_random``, as Java's producer: a key is where every
                                 other client looks for it; messages without keys are spread
``queue.buffering.max.*``        what is produced and not yet sent is bounded
``delivery.report.only.error``   no call of Python for each message that went well
===============================  ===========================================================

These belong to reclock, as does the transaction's timeout (``transaction_timeout``); an option
``kafka.*`` that sets one of them is refused. All others go to librdkafka as they are.

Tests: tests/sinks/test_producer_kafka.py (marked ``kafka``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import Producer as Client

from reclock.connectors.kafka.client import KafkaCluster
from reclock.connectors.kafka.failure import LOG, Aside, failure
from reclock.errors import InvalidValue
from reclock.sinks.access import Access
from reclock.sinks.producer import Patience, Producer

if TYPE_CHECKING:
    from reclock.connectors.kafka.options import Connection
    from reclock.sinks.producer import Target

COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")

SETTINGS: Final[dict[str, Any]] = {
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": 65_536,
    "reconnect.backoff.max.ms": 1_000,
}
"""Speed and memory; options of the connection come before these."""

_OURS: Final = {
    "transactional.id": "it is the sink's own",
    "enable.idempotence": "a sink without it would write twice",
    "acks": "a sink without all of them could lose what it committed",
    "transaction.timeout.ms": "write transaction_timeout, without the prefix",
    "compression.type": "write compression, without the prefix",
    "compression.codec": "write compression, without the prefix",
    "partitioner": "keys are where Java's producer puts them",
    "delivery.report.only.error": "reclock decides",
}


def connect(
    connection: Connection,
    target: Target,
    patience: Patience | None = None,
    compression: str = "none",
) -> Producer:
    """Return the unfenced producer of a sink; nothing is asked of the cluster yet."""
    patience = patience or Patience()
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failed.append(error)

    aside = Aside()
    config: dict[str, Any] = {
        **SETTINGS,
        **checked(connection).config(),
        "transactional.id": target.transactional_id,
        "transaction.timeout.ms": round(patience.transaction * 1_000),
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
        "compression.type": _compression(compression),
        "delivery.report.only.error": True,
        "on_delivery": delivered,
        "error_cb": aside,
    }
    try:
        client = Client(config, logger=LOG)
    except KafkaException as error:
        raise failure(connection, error.args[0]) from None
    uncommitted = KafkaCluster(replace(connection, isolation="read_uncommitted"))
    committed = KafkaCluster(replace(connection, isolation="read_committed"))
    access = Access(
        client,
        failed,
        uncommitted,
        committed,
        connection.brokers,
        connection.secrets,
        aside.refusal,
    )
    return Producer(access, target, patience)


def checked(connection: Connection) -> Connection:
    """Return the connection, if it leaves to reclock what is reclock's."""
    for name, _ in connection.options:
        if name in _OURS:
            message = f'option "kafka.{name}" cannot be set for a sink'
            raise InvalidValue(message, hint=_OURS[name])
    return connection


def _compression(given: str) -> str:
    if given not in COMPRESSIONS:
        message = f'invalid value for option "compression": "{given}"'
        raise InvalidValue(message, hint=f"write one of {', '.join(COMPRESSIONS)}")
    return given
