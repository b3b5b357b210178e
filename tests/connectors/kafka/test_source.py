"""Kafka sources: the conformance suite on the real broker and in memory, and what is left."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from confluent_kafka import OFFSET_INVALID
from confluent_kafka import TopicPartition as Place
from hypothesis import given
from hypothesis import strategies as st

from conformance.kafka import CASES, read_rows
from reclock.connectors.kafka import client, fetch
from reclock.connectors.kafka.client import KafkaCluster
from reclock.connectors.kafka.cluster import Span
from reclock.connectors.kafka.options import Connection
from reclock.connectors.kafka.source import KafkaReader, KafkaSource, spans_of
from reclock.connectors.kafka.start import StartTimestamp, parse_start_offset
from reclock.errors import Error, InvalidValue, SourceUnavailable
from reclock.remap.batch import Range
from reclock.testing.kafka import PASSWORD, USER
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.kafka_upstream import Record
from reclock.time.position import KafkaPosition, offsets_of
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from conformance.kafka import Case
    from reclock.testing.kafka import RealKafka

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_in_memory(case: Case) -> None:
    case(MemoryKafka())


@pytest.mark.kafka
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_on_the_real_broker(case: Case, kafka: RealKafka) -> None:
    case(kafka)


@pytest.mark.kafka
def test_a_broker_that_stops_is_waited_for(
    kafka: RealKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_PATIENCE_SECONDS", 1.0)
    topic = kafka.create_topic(2)
    kafka.produce(topic, 0, Record(b"a"))
    cluster = KafkaCluster(Connection.of(kafka.address, {}), timeout=1.0)
    source, origin = KafkaSource.create(cluster, topic)
    bound = source.probe(origin)
    assert len(read_rows(source, (0, 0, 1))) == 1
    kafka.stop()
    try:
        with pytest.raises(SourceUnavailable):
            source.probe(bound)
        with pytest.raises(SourceUnavailable) as silent:
            read_rows(source, (0, 0, 1))
        assert "waiting for partitions 0" in str(silent.value.detail)
    finally:
        kafka.start()
    kafka.produce(topic, 1, Record(b"b"))
    assert offsets_of(source.probe(bound)) == {0: 1, 1: 1}
    assert [row["value"] for row in read_rows(source, (0, 0, 1), (1, 0, 1))] == [b"a", b"b"]


@pytest.mark.kafka
def test_a_consumer_is_used_again_and_batches_are_bounded(
    kafka: RealKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_BATCH_ROWS", 100)
    monkeypatch.setattr(fetch, "_TAKE", 30)
    topic = kafka.create_topic(2)
    for partition in (0, 1):
        kafka.produce(topic, partition, *(Record(b"%d" % n) for n in range(500)))
    connection = Connection.of(kafka.address, {}, group_prefix="test-")
    cluster = KafkaCluster(connection)
    made = []
    monkeypatch.setattr(fetch, "_connect", lambda c, make=fetch._connect: made.append(c) or make(c))
    for _ in range(3):
        batches = list(cluster.fetch(topic, [Span(0, 100, 400), Span(1, 0, 500)], ()))
        assert len(made) == 1
        assert max(batch.num_rows for batch in batches) < 130
        for partition, start, stop in ((0, 100, 400), (1, 0, 500)):
            offsets = [
                np.asarray(b["offset"])[np.asarray(b["partition"]) == partition] for b in batches
            ]
            assert np.concatenate(offsets).tolist() == list(range(start, stop))


@pytest.mark.kafka
def test_reading_does_not_set_off_the_collector_of_cycles(kafka: RealKafka) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, 0, *(Record(b"%d" % n) for n in range(20_000)))
    collected = []
    gc.callbacks.append(lambda phase, info: collected.append(info))
    try:
        batches = list(kafka.cluster().fetch(topic, [Span(0, 0, 20_000)], ()))
    finally:
        gc.callbacks.pop()
    assert sum(batch.num_rows for batch in batches) == 20_000
    assert len(collected) < 20, "messages are kept until Python counts too many of them"


@pytest.mark.kafka
def test_a_reader_travels(kafka: RealKafka) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, 0, Record(b"a"))
    source, _ = KafkaSource.create(kafka.cluster(), topic)
    reader = pickle.loads(pickle.dumps(source.reader))
    (batch,) = reader.read([Range(0, 0, 1, Timestamp(5))])
    assert batch.schema == reader.schema
    assert batch["value"].to_pylist() == [b"a"]


@pytest.mark.kafka
def test_credentials_let_us_in_and_are_not_shown(
    kafka: RealKafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.create_topic()
    kafka.produce(topic, 0, Record(b"a"))

    def cluster(password: str) -> KafkaCluster:
        options = {
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.username": USER,
            "kafka.sasl.password": password,
        }
        return KafkaCluster(Connection.of(kafka.guarded, options), timeout=1.0)

    source, _ = KafkaSource.create(cluster(PASSWORD), topic)
    assert [row["value"] for row in read_rows(source, (0, 0, 1))] == [b"a"]
    stranger = replace(source, cluster=cluster("swordfish"))
    for step in (stranger.verify, lambda: read_rows(stranger, (0, 0, 1))):
        with pytest.raises(SourceUnavailable, match="refuses us") as caught:
            step()
        assert caught.value.code == "28000"
        shown = f"{caught.value} {caught.value.__dict__} {source} {stranger} {caplog.text}"
        assert PASSWORD not in shown
        assert "swordfish" not in shown
    assert "Authentication failed" in caplog.text, "the log was written, and searched"


def test_nobody_there_is_transient_and_a_secret_is_not_shown() -> None:
    options = {"kafka.sasl.password": "hunter2", "kafka.sasl.username": "joe"}
    sasl = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
    cluster = KafkaCluster(Connection.of(NOWHERE, {**options, **sasl}), timeout=0.2)
    with pytest.raises(SourceUnavailable) as caught:
        KafkaSource.create(cluster, "t")
    assert caught.value.code == "08006"
    assert NOWHERE in caught.value.message
    assert "Connection refused" in str(caught.value.detail)
    assert "hunter2" not in f"{caught.value}{cluster!r}{caught.value.__dict__}"


@pytest.mark.parametrize(
    "options",
    [
        {"kafka.no.such.option": "1"},
        {"kafka.security.protocol": "hunter2", "kafka.sasl.password": "hunter2"},
    ],
)
def test_options_that_the_client_does_not_know_are_refused(options: dict[str, str]) -> None:
    cluster = KafkaCluster(Connection.of(NOWHERE, options), timeout=0.2)
    for ask in (
        lambda: cluster.describe("t"),
        lambda: list(cluster.fetch("t", [Span(0, 0, 1)], ())),
    ):
        with pytest.raises(InvalidValue) as caught:
            ask()
        assert caught.value.detail
        assert "hunter2" not in str(caught.value)


def test_in_memory_nothing_answers_while_it_is_stopped() -> None:
    kafka = MemoryKafka()
    topic = kafka.create_topic()
    source, origin = KafkaSource.create(kafka.cluster(), topic)
    kafka.running = False
    with pytest.raises(SourceUnavailable):
        source.probe(origin)
    with pytest.raises(SourceUnavailable):
        read_rows(source, (0, 0, 1))
    kafka.running = True
    assert source.probe(origin) == origin


steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "commit", "abort", "compact", "grow"]),
        st.integers(0, 2),
        st.integers(0, 3),
    ),
    max_size=20,
)


@given(steps, st.data())
def test_frontiers_only_advance_and_pieces_make_the_whole(
    history: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    """Whatever happens upstream but compaction: what was read before is read again, in any cut."""
    kafka = MemoryKafka()
    topic = kafka.create_topic()
    partitions = 1
    source, bound = KafkaSource.create(kafka.cluster(), topic)
    seen: dict[int, list[tuple[int, bytes]]] = {}
    for what, where, many in history:
        records = [Record(b"%d" % n, b"%d" % n) for n in range(many)]
        if what == "grow":
            partitions += 1
            kafka.add_partitions(topic, partitions)
        elif what == "write":
            kafka.produce(topic, where % partitions, *records)
        elif what == "compact":
            kafka.compact(topic)
            seen.clear()
        else:
            transaction = kafka.begin()
            transaction.produce(topic, where % partitions, *records)
            assert source.probe(bound).precedes(source.probe(bound))
            getattr(transaction, what)()
        probed = source.probe(bound)
        assert bound.precedes(probed)
        bound = probed
        for partition, stop in offsets_of(bound).items():
            cut = data.draw(st.integers(0, stop))
            rows = read_rows(source, (partition, 0, stop))
            halves = [
                *read_rows(source, (partition, 0, cut)),
                *read_rows(source, (partition, cut, stop)),
            ]
            assert rows == halves
            before = seen.get(int(partition), [])
            now = [(row["offset"], row["value"]) for row in rows]
            assert now[: len(before)] == before
            seen[int(partition)] = now


def test_ranges_that_do_not_follow_one_another_are_refused() -> None:
    with pytest.raises(InvalidValue, match="do not follow"):
        spans_of([Range(0, 0, 2, Timestamp(1)), Range(0, 3, 4, Timestamp(2))])


@pytest.mark.parametrize("name", ["partition", "size"])
def test_columns_that_records_do_not_have_are_refused(name: str) -> None:
    with pytest.raises(InvalidValue, match=name):
        KafkaReader(MemoryKafka().cluster(), "t", (name,))


@pytest.mark.parametrize("text", ["", "soon", "1;2", "-1", "1,", "١"])
def test_a_start_offset_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Error, match="invalid start offset"):
        parse_start_offset(text)


def test_a_broker_that_goes_while_it_is_asked_has_not_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client reports no error then, but an offset that is none."""

    class Admin:
        def list_offsets(self, asked: dict[object, object], **_: object) -> dict[object, Future]:
            answers = {place: Future() for place in asked}
            for place, answer in answers.items():
                answer.set_result(Place("t", 0, OFFSET_INVALID if place.partition else 7))
            return answers

    monkeypatch.setattr(client, "admin_of", lambda connection: (Admin(), None))
    cluster = KafkaCluster(Connection.of(NOWHERE, {}))
    assert cluster.watermarks("t", [0, 1]) == {0: (7, 7)}
    assert cluster.offsets_at("t", [0, 1], 5) == {0: 7}


def test_a_client_is_kept_until_it_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library never answers for one that is gone; whoever waited would wait for ever."""

    class Admin:
        def list_offsets(self, asked: dict[object, object], **_: object) -> dict[object, Future]:
            answers = {place: Future() for place in asked}
            threading.Timer(0.05, answer, (weakref.ref(self), answers)).start()
            return answers

    def answer(admin: weakref.ref[Admin], answers: dict[object, Future]) -> None:
        gc.collect()
        for future in answers.values():
            future.set_result(Place("t", 0, 7 if admin() else OFFSET_INVALID))

    monkeypatch.setattr(client, "admin_of", lambda connection: (Admin(), None))
    cluster = KafkaCluster(Connection.of(NOWHERE, {}))
    assert cluster.watermarks("t", [0]) == {0: (7, 7)}
    assert cluster.offsets_at("t", [0], 5) == {0: 7}


def test_threads_that_ask_at_once_share_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    barrier = threading.Barrier(2)

    class Admin:
        def __init__(self, *_: object, **__: object) -> None:
            made.append(self)
            threading.Event().wait(0.1)

    def ask(_: int) -> object:
        barrier.wait(60)
        return client.admin_of(connection)[0]

    monkeypatch.setattr(client, "AdminClient", Admin)
    connection = Connection.of(NOWHERE, {"kafka.client.id": "at once"})
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(ask, range(2))
    client._made.cache_clear()
    assert first is second
    assert made == [first]


def test_a_start_at_a_time_waits_for_every_partition() -> None:
    kafka = MemoryKafka()
    topic = kafka.create_topic(2)
    cluster = kafka.cluster()
    monkey = type("Forgetful", (), {
        "describe": cluster.describe, "watermarks": cluster.watermarks,
        "offsets_at": lambda _, name, parts, ms: {0: None},
    })()  # fmt: skip
    with pytest.raises(SourceUnavailable, match=r"partition 1 of .* has no leader"):
        KafkaSource.create(monkey, topic, StartTimestamp(5))


def test_frontiers_of_topics_without_leaders() -> None:
    class Leaderless:
        def __init__(self, cluster: object) -> None:
            self._cluster = cluster

        def __getattr__(self, name: str) -> object:
            return getattr(self._cluster, name)

        def watermarks(self, topic: str, partitions: tuple[int, ...]) -> dict[int, object]:
            return self._cluster.watermarks(topic, [p for p in partitions if p != 1])

    kafka = MemoryKafka()
    topic = kafka.create_topic(2)
    cluster = Leaderless(kafka.cluster())
    with pytest.raises(SourceUnavailable, match="has no leader"):
        KafkaSource.create(cluster, topic)
    source = KafkaSource(cluster, topic, kafka.cluster().describe(topic).id)
    assert source.probe(KafkaPosition.frontier({})) == KafkaPosition.frontier({0: 0})
    with pytest.raises(SourceUnavailable, match="has no leader"):
        source.probe(KafkaPosition.frontier({0: 0, 1: 0}))
