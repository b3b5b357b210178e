"""The meaning of each broker error for a sink: try again, start over, or stop.

============  =====================================================================
``Retry``      nothing was written, nothing ever will be of it; the same producer may
               send it again, after a while
``NewProducer``  all of it was written, or nothing, or nothing can be written any more with
               this producer: make a new one, fence, read progress, go on from there
``Stop``       no waiting mends it: a person has to act, as the hint says
============  =====================================================================

Each carries ``error``, an ``errors.Error`` for that person. How an error of the client library
becomes one of them, by what the library says of it and by its code::

    fenced                     Stop(Fenced): another instance took over. But NewProducer, if our
                               transaction was open longer than its timeout: then the broker
                               ended it, and says the same
    lasting code               Stop, after an abort; the table ``_LASTING`` has the hints
    abortable, and whatever    abort, Retry
    a message alone meets
    retriable                  the same call again until patience ends; then an abort and Retry,
                               or NewProducer if the call was the commit or the abort
    fatal, anything else       NewProducer

A new producer after a timeout that was none, but a zombie's, would fence the instance that took
over: its maker must own the sink's state first.

Tests: tests/sinks/test_failure.py has the table, row by row.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

from confluent_kafka import KafkaError

from reclock.errors import (
    Error,
    Fenced,
    OutcomeUnknown,
    SinkStopped,
    SinkUnavailable,
)


class SendFailed(Exception):
    """A transaction was not reported as committed; ``error`` says why, to a person."""

    def __init__(self, error: Error) -> None:
        super().__init__(str(error))
        self.error = error


class Retry(SendFailed):
    """Nothing was written; the same producer may send it again."""


class TooLong(Retry):
    """Nothing was written, because it took too long for one transaction."""


class NewProducer(SendFailed):
    """The outcome is unknown, or this producer can do nothing more."""


class Stop(SendFailed):
    """No waiting mends it."""


class Verdict(enum.Enum):
    """What to do after an error, before anything is raised."""

    AGAIN = "the same call again, until patience ends"
    ABORT = "abort the transaction, then Retry"
    STOP = "abort the transaction if there is one, then Stop"
    FENCED = "Stop: this instance is not the one any more"
    RENEW = "NewProducer"


FENCED: Final = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}  # noqa: SLF001 - so named by the library
)


class _Lasting(NamedTuple):
    sqlstate: str
    message: str
    hint: str


_UNKNOWN_TOPIC: Final = _Lasting(
    "42P01",
    "a topic of the sink does not exist",
    "make the topic again, or drop the sink and create it again",
)
_REFUSED: Final = _Lasting(
    "42501",
    "the broker does not allow what the sink does",
    "allow WRITE and DESCRIBE on its topics and its transactional id, READ on the consistency"
    " topic, and IDEMPOTENT_WRITE on the cluster",
)
_STRANGER: Final = _Lasting(
    "28000", "the broker does not let the sink in", "look at the kafka.* options"
)
_TOO_LARGE: Final = _Lasting(
    "54000",
    "a message is larger than the broker takes",
    "raise max.message.bytes of the topic and kafka.message.max.bytes of the sink",
)
_INVALID: Final = _Lasting(
    "22023", "the options of a sink are not valid", "kafka.* options are librdkafka's"
)
_LASTING: Final = {
    KafkaError.MSG_SIZE_TOO_LARGE: _TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE: _TOO_LARGE,
    KafkaError.INVALID_MSG_SIZE: _TOO_LARGE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _REFUSED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _REFUSED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: _REFUSED,
    KafkaError.SASL_AUTHENTICATION_FAILED: _STRANGER,
    KafkaError._AUTHENTICATION: _STRANGER,  # noqa: SLF001
    KafkaError._SSL: _STRANGER,  # noqa: SLF001
    KafkaError.UNKNOWN_TOPIC_OR_PART: _UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_TOPIC: _UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION: _UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError.INVALID_TRANSACTION_TIMEOUT: _Lasting(
        "22023",
        "the broker does not allow transactions that long",
        "lower transaction_timeout, or raise transaction.max.timeout.ms of the broker",
    ),
    KafkaError.INVALID_RECORD: _Lasting(
        "22023",
        "the topic refuses the sink's messages",
        "a compacted topic takes messages with keys alone: give the sink a KEY",
    ),
    KafkaError._INVALID_ARG: _INVALID,  # noqa: SLF001
    KafkaError.INVALID_CONFIG: _INVALID,
    KafkaError.INVALID_REPLICATION_FACTOR: _Lasting(
        "22023",
        "there are not as many brokers as a topic is to have replicas",
        "lower replication_factor",
    ),
    KafkaError.INVALID_PARTITIONS: _Lasting(
        "22023", "a topic cannot have that many partitions", "change partitions"
    ),
    KafkaError.POLICY_VIOLATION: _Lasting(
        "42501", "a policy of the broker refuses what the sink does", "ask who made the policy"
    ),
}


def verdict(error: KafkaError, *, overdue: bool = False, message: bool = False) -> Verdict:
    """Return what to do.

    ``overdue`` if the transaction was open longer than its timeout, ``message`` if one message
    met the error and not a call for the whole transaction.
    """
    if error.code() in FENCED:
        return Verdict.RENEW if overdue else Verdict.FENCED
    if error.code() in _LASTING:
        return Verdict.STOP
    if error.fatal():
        return Verdict.RENEW
    if error.txn_requires_abort() or message:
        return Verdict.ABORT
    return Verdict.AGAIN if error.retriable() else Verdict.RENEW


def explained(error: KafkaError, brokers: str, said: str, *, overdue: bool = False) -> Error:
    """Return the error for a person; ``said`` is the library's text without secrets."""
    code = error.code()
    if code in FENCED and overdue:
        message = f"Kafka at {brokers} ended a transaction that was open for too long"
        return SinkUnavailable(message, detail=said, hint="it is tried again by itself")
    if code in FENCED:
        message = "another instance of this sink took over"
        hint = "this one wrote nothing since; run one instance over one state directory"
        return Fenced(message, detail=said, hint=hint)
    if (lasting := _LASTING.get(code)) is not None:
        message = f"{lasting.message}, at {brokers}"
        return SinkStopped(message, detail=said, hint=lasting.hint, code=lasting.sqlstate)
    message = f"Kafka at {brokers} did not take what a sink writes"
    hint = "see that the address is right and that the broker runs; "
    hint += "a sink that exists is tried again by itself"
    return SinkUnavailable(message, detail=said, hint=hint)


def unknown(brokers: str, said: str) -> OutcomeUnknown:
    """Return the error of a commit that was sent and not answered."""
    message = f"Kafka at {brokers} did not say whether it committed a transaction"
    return OutcomeUnknown(message, detail=said, hint="the sink looks itself, with a new producer")
