"""What the client says becomes our errors, and never shows a secret."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from reclock.connectors.kafka.failure import Aside, failure
from reclock.connectors.kafka.options import Connection
from reclock.errors import InvalidValue, SourceUnavailable

CONNECTION = Connection.of("a:1", {"kafka.sasl.password": "hunter2"})


@pytest.mark.parametrize(
    ("code", "error", "sqlstate"),
    [
        (KafkaError._TRANSPORT, SourceUnavailable, "08006"),
        (KafkaError._TIMED_OUT, SourceUnavailable, "08006"),
        (KafkaError._AUTHENTICATION, SourceUnavailable, "28000"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, SourceUnavailable, "42501"),
        (KafkaError._INVALID_ARG, InvalidValue, "22023"),
    ],
)
def test_every_failure_has_its_code_and_hides_secrets(
    code: int, error: type[Exception], sqlstate: str
) -> None:
    made = failure(CONNECTION, KafkaError(code, "it was joe:hunter2"))
    assert type(made) is error
    assert made.code == sqlstate
    assert made.detail == "it was joe:***"
    assert made.hint


def test_a_statement_is_not_told_that_it_is_tried_again() -> None:
    made = failure(CONNECTION, KafkaError(KafkaError._TRANSPORT, "nobody there"))
    assert made.hint is not None
    assert made.hint.startswith("see that the address is right")
    assert made.hint.endswith("what exists already is tried again by itself")


def test_a_refusal_explains_more_than_what_came_before_it() -> None:
    aside = Aside()
    assert aside.take() is None
    for code in (KafkaError._TRANSPORT, KafkaError._AUTHENTICATION, KafkaError._ALL_BROKERS_DOWN):
        aside(KafkaError(code))
    assert aside.refusal() is not None
    said = aside.take()
    assert said is not None
    assert said.code() == KafkaError._AUTHENTICATION
    assert aside.take() is None
