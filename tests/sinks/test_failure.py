from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from reclock.errors import Fenced, SinkStopped, SinkUnavailable
from reclock.sinks.failure import Verdict, explained, unknown, verdict


def error(code: int, *flags: str) -> KafkaError:
    return KafkaError(code, "words", **dict.fromkeys(flags, True))


@pytest.mark.parametrize(
    ("reported", "decision", "shown", "code"),
    [
        (error(KafkaError._FENCED, "fatal"), Verdict.FENCED, Fenced, "57P04"),
        (error(KafkaError.PRODUCER_FENCED, "fatal"), Verdict.FENCED, Fenced, "57P04"),
        (error(KafkaError.INVALID_PRODUCER_EPOCH, "fatal"), Verdict.FENCED, Fenced, "57P04"),
        (error(KafkaError.MSG_SIZE_TOO_LARGE), Verdict.STOP, SinkStopped, "54000"),
        (error(KafkaError.TOPIC_AUTHORIZATION_FAILED), Verdict.STOP, SinkStopped, "42501"),
        (error(KafkaError.SASL_AUTHENTICATION_FAILED), Verdict.STOP, SinkStopped, "28000"),
        (error(KafkaError._UNKNOWN_TOPIC), Verdict.STOP, SinkStopped, "42P01"),
        (error(KafkaError.INVALID_TRANSACTION_TIMEOUT), Verdict.STOP, SinkStopped, "22023"),
        (error(KafkaError.INVALID_RECORD), Verdict.STOP, SinkStopped, "22023"),
        (error(KafkaError._INVALID_ARG), Verdict.STOP, SinkStopped, "22023"),
        (error(KafkaError._TIMED_OUT, "retriable"), Verdict.AGAIN, SinkUnavailable, "08006"),
        (error(-192, "txn_requires_abort"), Verdict.ABORT, SinkUnavailable, "08006"),
        (error(KafkaError._TRANSPORT, "retriable"), Verdict.AGAIN, SinkUnavailable, "08006"),
        (error(KafkaError._FATAL, "fatal"), Verdict.RENEW, SinkUnavailable, "08006"),
        (error(KafkaError._STATE), Verdict.RENEW, SinkUnavailable, "08006"),
    ],
)  # fmt: skip
def test_the_table(
    reported: KafkaError, decision: Verdict, shown: type[Exception], code: str
) -> None:
    assert verdict(reported) is decision
    made = explained(reported, "here:1", "words")
    assert type(made) is shown
    assert made.code == code
    assert made.detail == "words"
    assert made.hint


def test_a_fence_after_the_timeout_may_be_the_brokers() -> None:
    for code in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH):
        assert verdict(error(code, "fatal"), overdue=True) is Verdict.RENEW


@pytest.mark.parametrize("flags", [(), ("retriable",), ("txn_requires_abort",)])
def test_what_one_message_meets_ends_its_transaction(flags: tuple[str, ...]) -> None:
    assert verdict(error(KafkaError._STATE, *flags), message=True) is Verdict.ABORT
    assert verdict(error(KafkaError._STATE, "fatal"), message=True) is Verdict.RENEW
    assert verdict(error(KafkaError.MSG_SIZE_TOO_LARGE), message=True) is Verdict.STOP


def test_an_unknown_outcome_says_so() -> None:
    assert unknown("here:1", "words").code == "40003"
