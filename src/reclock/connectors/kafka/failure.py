"""Translates errors of the client library into ours, without any secret.

A refusal has its own code: 28000 if the log-in failed, 42501 if a permission is missing.

The client library tells why a connection fails on the side only, to a callback and a log.
``Aside`` remembers the last of it for the error that follows; the log, ``reclock.kafka``,
is silent unless the program configures logging.

Tests: tests/connectors/kafka/test_failure.py.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError

from reclock.errors import Error, InvalidValue, SourceUnavailable
from reclock.secret import scrub

if TYPE_CHECKING:
    from reclock.connectors.kafka.options import Connection

LOG: Final = logging.getLogger("reclock.kafka")
LOG.addHandler(logging.NullHandler())

MISSING: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}  # noqa: SLF001 - so named by the library
)
LEADERLESS: Final = MISSING | {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
}
"""A partition between two leaders, or with a new one that does not know its end yet."""

OUT_OF_RANGE: Final = frozenset({KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET})  # noqa: SLF001
_NOT_LET_IN: Final = frozenset(
    {KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._AUTHENTICATION, KafkaError._SSL}  # noqa: SLF001
)
REFUSED: Final = _NOT_LET_IN | {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}
UNREACHED: Final = (
    "see that the address is right and that the broker runs; what exists already is tried again "
    "by itself"
)
_INVALID: Final = frozenset({KafkaError._INVALID_ARG, KafkaError.INVALID_CONFIG})  # noqa: SLF001


class Aside:
    """What a client said on the side, as its ``error_cb``."""

    def __init__(self) -> None:
        self._said: deque[KafkaError] = deque(maxlen=8)

    def __call__(self, error: KafkaError) -> None:
        """Remember one more error."""
        self._said.append(error)

    def refusal(self) -> KafkaError | None:
        """Return why we are not let in, if that is what was said."""
        return next((error for error in self._said if error.code() in REFUSED), None)

    def take(self) -> KafkaError | None:
        """Return a refusal, else what was said first; forget everything."""
        said = self.refusal() or next(iter(self._said), None)
        self._said.clear()
        return said


def failure(connection: Connection, error: KafkaError) -> Error:
    """Return the error to raise for what the client library reports."""
    said = scrub(str(error.str()), connection.secrets)
    if error.code() in _INVALID:
        message = "the options of a Kafka connection are not valid"
        return InvalidValue(message, detail=said, hint="kafka.* options are librdkafka's")
    if error.code() in REFUSED:
        code = "28000" if error.code() in _NOT_LET_IN else "42501"
        message = f"Kafka at {connection.brokers} refuses us"
        return SourceUnavailable(
            message, detail=said, code=code, hint="look at the kafka.* options"
        )
    message = f"Kafka at {connection.brokers} does not answer"
    return SourceUnavailable(message, detail=said, hint=UNREACHED)
