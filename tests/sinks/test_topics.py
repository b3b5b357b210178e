from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING

import pytest

from reclock.connectors.kafka.client import KafkaCluster
from reclock.connectors.kafka.options import Connection
from reclock.errors import InvalidDefinition, InvalidValue, SinkStopped, SinkUnavailable
from reclock.sinks import admin as admins
from reclock.sinks.admin import KafkaAdmin
from reclock.sinks.topics import (
    CONSISTENCY,
    Admin,
    NewTopic,
    check_name,
    consistency_name,
    own_name,
    prepared,
)
from reclock.testing.kafka_log import MemoryKafka

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.connectors.kafka.cluster import Topic


class MemoryAdmin:
    """An ``Admin`` over the log in memory."""

    def __init__(self) -> None:
        self.kafka = MemoryKafka()

    def describe(self, topic: str) -> Topic | None:
        return self.kafka.described(topic)

    def settings(self, topic: str) -> Mapping[str, str]:
        return self.kafka.settings[topic]

    def create(self, topic: NewTopic) -> bool:
        return self.kafka.create(topic)


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def admin(request: pytest.FixtureRequest) -> Admin:
    if request.param == "memory":
        return MemoryAdmin()
    return KafkaAdmin(Connection.of(request.getfixturevalue("kafka").address, {}))


@pytest.fixture
def name() -> str:
    return f"t-{uuid.uuid4().hex}"


def test_what_is_missing_is_made_once(admin: Admin, name: str) -> None:
    progress = consistency_name(name)
    first = prepared(admin, name, progress, keyed=True, partitions=3)
    assert first.made == {name, progress}
    assert len(first.data.partitions) == 3
    assert len(first.consistency.partitions) == 1
    assert CONSISTENCY.items() <= admin.settings(progress).items()
    again = prepared(admin, name, progress, keyed=False)
    assert again.made == frozenset()
    assert (again.data, again.consistency) == (first.data, first.consistency)
    shared = prepared(admin, name + "2", progress, keyed=True)
    assert shared.made == {name + "2"}


def test_topics_that_do_not_fit_are_refused(admin: Admin, name: str) -> None:
    two, deleting, kept, both, compacted = (f"{name}-{n}" for n in range(5))
    forever = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    admin.create(NewTopic(two, 2))
    week = {"retention.ms": "604800000"}
    admin.create(NewTopic(deleting, 1, None, {"cleanup.policy": "delete", **week}))
    admin.create(NewTopic(kept, 1, None, forever))
    admin.create(NewTopic(both, 1, None, {"cleanup.policy": "compact,delete", **week}))
    admin.create(NewTopic(compacted, 1, None, {"cleanup.policy": "compact"}))
    for progress, word in ((two, "2 partitions"), (deleting, "deletes"), (both, "deletes")):
        with pytest.raises(InvalidDefinition, match=word):
            prepared(admin, name, progress, keyed=True)
    prepared(admin, name, kept, keyed=True)
    with pytest.raises(InvalidDefinition, match="2 partitions, not 3"):
        prepared(admin, two, kept, keyed=True, partitions=3)
    with pytest.raises(InvalidDefinition, match="compacted"):
        prepared(admin, compacted, kept, keyed=False)
    prepared(admin, compacted, kept, keyed=True)
    with pytest.raises(InvalidDefinition, match="its own"):
        prepared(admin, kept, kept, keyed=True)


@pytest.mark.kafka
def test_what_the_cluster_refuses(
    kafka: object, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = kafka.address  # type: ignore[attr-defined]
    admin = KafkaAdmin(Connection.of(address, {}))
    with pytest.raises(SinkStopped, match="replicas") as raised:
        admin.create(NewTopic(name, 1, 9))
    assert raised.value.code == "22023"
    with pytest.raises(SinkStopped):
        admin.settings(name)
    monkeypatch.setattr(admins, "KafkaCluster", partial(KafkaCluster, timeout=0.5))
    nobody = KafkaAdmin(Connection.of("127.0.0.1:1", {}))
    with pytest.raises(SinkUnavailable):
        nobody.describe(name)


@pytest.mark.parametrize("bad", ["", "a b", "ä", ".", "..", "x" * 250, "a/b"])
def test_names_that_kafka_does_not_take(bad: str) -> None:
    with pytest.raises(InvalidValue):
        check_name(bad)


def test_a_name_of_ones_own() -> None:
    assert own_name("p", "u9", 17, "ab") == "p-u9-17-ab"
    check_name(own_name("p" * 200, "u9", 17, "ab"))
