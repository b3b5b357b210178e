"""Sources over a broker: a real one, or the log in memory; time is the test's, or passes."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from conditions import assert_facts_agree
from databases import Opener, _no_power_is_lost, db, make_opener, opener
from debezium import Change, Connector
from reclock import ManualClock
from reclock.connectors.kafka import fetch
from reclock.connectors.kafka.client import KafkaCluster
from reclock.engine.place import segments_of
from reclock.session.database import Database
from reclock.spark.engine import SparkEngine
from reclock.spark.session import Spark
from reclock.testing.kafka import RealKafka
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.kafka_upstream import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from reclock.connectors.kafka.cluster import Cluster
    from reclock.connectors.kafka.options import Connection

__all__ = ["Opener", "_no_power_is_lost", "db", "make_opener", "opener"]

PATIENCE = 40.0


class NoSpark(Spark):
    """What a tick that only moves rows can do without."""

    @property
    def session(self) -> Any:
        pytest.fail("this needs Spark")

    bulk = session


class Lab:
    """A broker and one state directory, opened as often as a test likes, without Spark."""

    def __init__(self, path: Path, kafka: RealKafka | MemoryKafka) -> None:
        self.path = path
        self.kafka = kafka
        self.clock = ManualClock(1_000)
        self.timeout = 2.0
        """How long a broker that does not answer is asked."""
        self.wrap: Callable[[Cluster], Cluster] = lambda cluster: cluster
        self._opened: list[Database] = []
        self._before = set(threading.enumerate())

    def open(self, *, background: bool = False) -> Database:
        engine = SparkEngine(segments_of(self.path))
        engine._spark = NoSpark()
        db = Database(
            self.path, engine, clock=None if background else self.clock, background=background,
            clusters=self._cluster,
        )  # fmt: skip
        self._opened.append(db)
        return db

    def _cluster(self, connection: Connection) -> Cluster:
        if isinstance(self.kafka, MemoryKafka):
            return self.wrap(self.kafka.cluster(connection.isolation))
        return self.wrap(KafkaCluster(connection, self.timeout))

    def reopened(self, db: Database) -> Database:
        db.close()
        self._opened.remove(db)
        return self.open()

    def source(
        self,
        db: Database,
        topic: str,
        rest: str = "FORMAT JSON",
        name: str = "s",
        columns: str = "(id BIGINT, x TEXT)",
    ) -> None:
        broker = self.kafka.address if isinstance(self.kafka, RealKafka) else "memory"
        db.execute(
            f"CREATE SOURCE {name} {columns} FROM KAFKA BROKER '{broker}' TOPIC '{topic}' {rest}"
        )

    def send(self, topic: str, partition: int, *values: Any) -> None:
        """Write values: objects as JSON, bytes as they are; a pair is (key, value)."""
        made = []
        for given in values:
            key, value = given if isinstance(given, tuple) else (None, given)
            made.append(Record(_bytes(value), _bytes(key)))
        self.kafka.produce(topic, partition, *made)

    def tick(self, db: Database, count: int = 1) -> None:
        for _ in range(count):
            self.clock.advance(1_000)
            db.tick()

    def caught_up(self, db: Database, total: int, name: str = "s") -> None:
        """Tick until offsets that sum up to ``total`` are bound, or wait for it."""
        query = f"SELECT bound FROM reclock.source_status WHERE source = '{name}'"

        def done() -> bool:
            if db._core.loop is None:
                self.tick(db)
            return db.execute(query).rows == [(total,)]

        self.eventually(done)

    def threads(self) -> list[str]:
        """Return the names of threads that databases of this lab have left behind."""
        began = (t for t in threading.enumerate() if t not in self._before)
        return [t.name for t in began if t.name.startswith("reclock-")]

    @staticmethod
    def eventually(done: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.02)

    @staticmethod
    def change_log(db: Database, name: str, since: int, upper: int) -> Counter[tuple[int, Any]]:
        """Return every change of an object in ``[since, upper)``; what was before is at ``since``.

        Two objects with the same log are equal at every time of the interval.
        """
        found: Counter[tuple[int, Any]] = Counter()
        with db.subscribe(f"SUBSCRIBE TO {name} AS OF {since} UP TO {upper}", timeout=30) as came:
            for update in came:
                found[int(update.timestamp), tuple(update.row)] += update.diff
        return Counter({change: diff for change, diff in found.items() if diff})

    def close(self) -> None:
        for opened in self._opened:
            opened.close()


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.kafka)])
def upstream(request: pytest.FixtureRequest) -> RealKafka | MemoryKafka:
    return MemoryKafka() if request.param == "memory" else request.getfixturevalue("kafka")


@pytest.fixture
def lab(
    tmp_path: Path, upstream: RealKafka | MemoryKafka, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lab]:
    """Both kinds of broker."""
    monkeypatch.setattr(fetch, "_PATIENCE_SECONDS", 2.0)
    made = Lab(tmp_path / "state", upstream)
    yield made
    made.close()


@pytest.fixture
def real(tmp_path: Path, kafka: RealKafka, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """The real broker."""
    monkeypatch.setattr(fetch, "_PATIENCE_SECONDS", 2.0)
    made = Lab(tmp_path / "state", kafka)
    yield made
    made.close()


class Shop:
    """A database that Debezium captures, and sources over it."""

    def __init__(self, opener: Any, partitions: int = 3) -> None:
        self.opener, self.kafka = opener, opener.kafka
        self.connector = Connector(self.kafka.create_topic(1), ("orders", "items"), partitions)
        self.metadata, self.topics = self.connector.metadata, self.connector.topics
        self.rows = self.connector.rows
        for topic in self.topics.values():
            self.kafka._make(topic, partitions)
        self.db = opener()

    def create(
        self,
        table: str = "orders",
        name: str | None = None,
        *,
        rest: str = "",
        options: str = "RETAIN HISTORY FOR '1 h'",
        columns: str = "(id BIGINT PRIMARY KEY, x TEXT)",
        topic: str | None = None,
    ) -> None:
        given = f"consistency_topic = '{topic or self.metadata}'"
        self.db.execute(
            f"CREATE SOURCE {name or table} {columns} FROM KAFKA BROKER 'b:1' TOPIC "
            f"'{self.topics[table]}' FORMAT JSON ENVELOPE DEBEZIUM {rest} WITH ({given}, {options})"
        )

    def transaction(self, *changes: Any, name: str | None = None) -> Any:
        return self.connector.transaction(*(Change(*c) for c in changes), name=name)

    def send(self, *messages: Any) -> None:
        for message in messages:
            self.kafka.produce(message.topic, message.partition, message.record)

    def commit(self, *changes: Any) -> Any:
        messages = self.transaction(*changes)
        self.send(*messages)
        return messages

    def tick(self, ms: int = 0) -> Any:
        self.opener.clock.advance(ms)
        return self.db.tick()

    def read(self, query: str) -> Any:
        return sorted(self.db.execute(query).rows, key=repr)

    def status(self, source: str = "orders") -> Any:
        assert_facts_agree(self.db)
        query = f"SELECT state, detail FROM reclock.source_status WHERE source = '{source}'"
        return self.db.execute(query).rows[0]

    def crash(self) -> None:
        self.db = self.opener.reopened(self.db)


@pytest.fixture
def shop(opener: Any) -> Shop:
    return Shop(opener)


@pytest.fixture(scope="session")
def make_shop() -> Callable[[Any], Shop]:
    """For hypothesis: a shop of its own per example."""
    return Shop


class Feed:
    """A topic of CDCv2 messages, and a source over it."""

    def __init__(self, opener: Any, partitions: int = 2) -> None:
        self.opener = opener
        self.kafka = opener.kafka
        self.topic = self.kafka.create_topic(partitions)
        self.db = opener()

    def create(
        self, name: str = "cdc", options: str = "RETAIN HISTORY FOR '1 h'", topic: str | None = None
    ) -> None:
        self.db.execute(
            f"CREATE SOURCE {name} (id BIGINT, x TEXT) FROM KAFKA BROKER 'b:1' TOPIC "
            f"'{topic or self.topic}' FORMAT JSON ENVELOPE MATERIALIZE WITH ({options})"
        )

    def send(self, *messages: Any, partition: int = 0, topic: str | None = None) -> None:
        values = (m if isinstance(m, bytes) else json.dumps(m).encode() for m in messages)
        self.kafka.produce(topic or self.topic, partition, *map(Record, values))

    def tick(self, ms: int = 0) -> Any:
        self.opener.clock.advance(ms)
        return self.db.tick()

    def rows(self, query: str) -> Any:
        return sorted(self.db.execute(query).rows, key=repr)

    def status(self, columns: str = "state, detail", source: str = "cdc") -> Any:
        assert_facts_agree(self.db)
        query = f"SELECT {columns} FROM reclock.source_status WHERE source = '{source}'"
        return self.db.execute(query).rows[0]

    def crash(self) -> None:
        self.db = self.opener.reopened(self.db)


@pytest.fixture
def feed(opener: Any) -> Feed:
    return Feed(opener)


@pytest.fixture(scope="session")
def make_feed() -> Callable[[Any], Feed]:
    """For hypothesis: a topic of its own per example."""
    return Feed
