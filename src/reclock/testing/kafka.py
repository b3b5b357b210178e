"""A real Apache Kafka for tests, leaving nothing behind however they end.

``running_kafka`` starts a broker of its own in a temporary directory (``reclock.dev``) and
yields a ``RealKafka``: the broker as the conformance suite drives it, which can also be
stopped and started. A shell waits for the tests' end of a pipe and removes everything, so
the broker ends with tests that are killed, too. In reclock's own tests the fixture ``kafka``
is one broker for the whole session.

Durability is Kafka's own; the cleaner and the deletion of files do not take their time.

Checked by tests/testing/test_kafka.py and tests/connectors/kafka/test_source.py.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined] # they are public

from reclock.connectors.kafka.client import KafkaCluster
from reclock.connectors.kafka.cluster import Span
from reclock.connectors.kafka.options import Connection
from reclock.dev.kafka import Broker, claim_port
from reclock.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.connectors.kafka.cluster import Topic
    from reclock.testing.kafka_upstream import Record

USER: Final = "joe"
PASSWORD: Final = "hunter2"

_SETTINGS: Final = {
    "log.cleaner.backoff.ms": "20",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.segment.delete.delay.ms": "0",
    "log.initial.task.delay.ms": "0",
    "auto.create.topics.enable": "false",
}
_COMPACTED: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0",
    "segment.ms": "1",
}
_UNTIL_STDIN_ENDS: Final = 'read -r _; read -r pid _ <"$0/broker" && kill -9 "$pid"; rm -rf "$0"'
_PATIENCE_SECONDS: Final = 30.0


@contextmanager
def running_kafka() -> Iterator[RealKafka]:
    """Run a broker inside the block."""
    directory = Path(tempfile.mkdtemp(prefix="reclock-kafka-"))
    shell = ["/bin/sh", "-c", _UNTIL_STDIN_ENDS, str(directory)]
    with subprocess.Popen(
        shell, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ):
        yield RealKafka(directory)


class RealKafka:
    """A broker, as a test drives it; stopped and started it keeps its ports and topics.

    ``address`` is open to all, ``guarded`` to the one who knows ``PASSWORD``.
    """

    def __init__(self, directory: Path) -> None:
        self.port, controller, guarded = (claim_port(0) for _ in range(3))
        self.address = f"127.0.0.1:{self.port}"
        self.guarded = f"127.0.0.1:{guarded}"
        self.directory = directory
        self._broker = Broker(directory, _SETTINGS | _listeners(self.port, controller, guarded))
        self.start()
        self._admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        self._producer = Producer(self._config())

    def stop(self) -> None:
        """Stop the broker cleanly."""
        self._broker.stop()

    def start(self) -> None:
        """Start it again, as it was."""
        self._broker.start(self.port)

    def cluster(self, isolation: str = "read_committed") -> KafkaCluster:
        """Return what a source sees."""
        return KafkaCluster(Connection.of(self.address, {}, isolation))

    def create_topic(self, partitions: int = 1, *, compacted: bool = False) -> str:
        """Make a new topic and return its name."""
        name = f"topic-{uuid.uuid4().hex[:12]}"
        self._make(name, partitions, _COMPACTED if compacted else {})
        return name

    def delete_topic(self, topic: str) -> None:
        """Remove a topic."""
        self._admin.delete_topics([topic])[topic].result()
        self._wait(topic, lambda found: found is None)

    def recreate_topic(self, topic: str, partitions: int) -> None:
        """Remove a topic and make an empty one of the same name."""
        if self.cluster().describe(topic) is not None:
            self.delete_topic(topic)
        self._make(topic, partitions, {})

    def add_partitions(self, topic: str, total: int) -> None:
        """Let a topic have ``total`` partitions."""
        self._admin.create_partitions([NewPartitions(topic, total)])[topic].result()
        self._wait(topic, lambda found: found is not None and len(found.partitions) == total)
        self._producer.list_topics(topic, _PATIENCE_SECONDS)  # or it would not know them

    def produce(self, topic: str, partition: int, *records: Record) -> None:
        """Write records, outside of any transaction."""
        _write(self._producer, topic, partition, records)

    def begin(self) -> RealTransaction:
        """Begin a transaction."""
        return RealTransaction(self._config())

    def compact(self, topic: str) -> None:
        """Begin a new segment, so that what is before it is compacted, and wait for that."""
        time.sleep(0.01)
        self._producer.produce(topic, b"", b"begins a new segment", 0)
        self._producer.flush()
        reader = self.cluster()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            old = Span(0, 0, reader.watermarks(topic, [0])[0].high - 1)
            keys = [k for b in reader.fetch(topic, [old], ["key"]) for k in b["key"].to_pylist()]
            if len(keys) == len(set(keys)):
                return
            time.sleep(0.05)
        message = f"topic {topic} was not compacted in time"
        raise Error(message)

    def truncate(self, topic: str, partition: int, before: int) -> None:
        """Remove the records before an offset."""
        place = TopicPartition(topic, partition, before)
        self._admin.delete_records([place])[place].result()

    def _config(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.address, "log_level": 0, "linger.ms": 0}

    def _make(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        new = NewTopic(topic, partitions, 1, config=config)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                self._admin.create_topics([new])[topic].result()
                break
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        self._wait(topic, lambda found: found is not None and len(found.partitions) == partitions)

    def _wait(self, topic: str, done: Callable[[Topic | None], bool]) -> None:
        """Wait until the topic is as it should be, and its partitions have leaders."""
        cluster = self.cluster()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            found = cluster.describe(topic)
            if done(found):
                led = cluster.watermarks(topic, found.partitions) if found else {}
                if found is None or len(led) == len(found.partitions):
                    return
            if time.monotonic() > deadline:
                message = f"topic {topic} did not change in time"
                raise Error(message)
            time.sleep(0.01)


def _listeners(port: int, controller: int, guarded: int) -> dict[str, str]:
    """Return settings by which the broker listens twice, once with a guard at the door."""
    clients = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{guarded}"
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "listeners": f"{clients},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": clients,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{plain} required user_{USER}="{PASSWORD}";'
        ),
    }


class RealTransaction:
    """A transaction of a producer of its own."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._producer = Producer({**config, "transactional.id": uuid.uuid4().hex})
        self._producer.init_transactions()
        self._producer.begin_transaction()

    def produce(self, topic: str, partition: int, *records: Record) -> None:
        """Write records in the transaction."""
        _write(self._producer, topic, partition, records)

    def commit(self) -> None:
        """Let the records count."""
        self._producer.commit_transaction()

    def abort(self) -> None:
        """Let the records not have been."""
        self._producer.abort_transaction()


def _write(producer: Producer, topic: str, partition: int, records: tuple[Record, ...]) -> None:
    failed: list[str] = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            failed.append(str(error))

    for record in records:
        options: dict[str, Any] = {} if record.ms is None else {"timestamp": record.ms}
        if record.headers:
            options["headers"] = list(record.headers)
        producer.produce(
            topic, record.value, record.key, partition, on_delivery=delivered, **options
        )
    if producer.flush(_PATIENCE_SECONDS) or failed:
        message = f"records were not written to {topic}"
        raise Error(message, detail="; ".join(failed[:3]))
