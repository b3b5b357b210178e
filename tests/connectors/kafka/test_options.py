"""Options of a connection: passed through, secrets hidden, ours refused."""

from __future__ import annotations

import pickle

import pytest

from reclock.connectors.kafka.options import Connection
from reclock.errors import InvalidValue


def test_only_kafka_options_reach_the_client_and_without_their_prefix() -> None:
    connection = Connection.of(
        "a:1,b:2", {"kafka.security.protocol": "ssl", "timestamp_interval": "1s"}
    )
    assert connection.config() == {
        "bootstrap.servers": "a:1,b:2",
        "client.id": "reclock",
        "security.protocol": "ssl",
    }


@pytest.mark.parametrize(
    "name",
    ["sasl.password", "ssl.key.password", "ssl.key.pem", "sasl.oauthbearer.client.secret"],
)
def test_secrets_are_hidden_from_all_but_the_client(name: str) -> None:
    connection = Connection.of("a:1", {f"kafka.{name}": "hunter2"})
    assert "hunter2" not in f"{connection} {connection!r} {connection.options}"
    assert connection.config()[name] == "hunter2"
    assert pickle.loads(pickle.dumps(connection)) == connection
    assert [s.reveal() for s in connection.secrets] == ["hunter2"]


@pytest.mark.parametrize("name", ["auto.offset.reset", "isolation.level", "bootstrap.servers"])
def test_options_on_which_correctness_rests_are_refused(name: str) -> None:
    with pytest.raises(InvalidValue, match=name) as caught:
        Connection.of("a:1", {f"kafka.{name}": "x"})
    assert caught.value.hint


def test_an_isolation_level_that_kafka_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidValue, match="serializable"):
        Connection.of("a:1", {}, "serializable")
