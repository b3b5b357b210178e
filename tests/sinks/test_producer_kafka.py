"""The producer on a real broker: the same suite, and what only a broker does."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.sink import (
    CASES,
    SinkKit,
    chunk,
    committed,
    failing,
    messages_of,
)
from reclock.connectors.kafka.options import Connection
from reclock.errors import InvalidValue
from reclock.failpoints import armed
from reclock.sinks.connect import connect
from reclock.sinks.consistency import frontier_record
from reclock.sinks.failure import NewProducer, Retry, SendFailed, Stop
from reclock.sinks.producer import Patience
from reclock.testing.kafka import USER, running_kafka
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.sink import Case
    from reclock.sinks.consistency import FrontierRecord
    from reclock.sinks.producer import FencedProducer, Producer, Target
    from reclock.testing.kafka import RealKafka

pytestmark = pytest.mark.kafka


def kit_of(kafka: RealKafka, patience: Patience) -> SinkKit:
    def opened(target: Target) -> Producer:
        return connect(Connection.of(kafka.address, {}), target, patience)

    return SinkKit(kafka, opened)


@pytest.fixture
def kit(kafka: RealKafka) -> SinkKit:
    return kit_of(kafka, Patience(progress=0.5))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_conformance(case: Case, kit: SinkKit) -> None:
    case(kit)


def sending(fenced: FencedProducer, target: Target, at_time: int) -> Callable[[], None]:
    record = frontier_record(target.sink, at(at_time + 1), {})
    return lambda: fenced.send([chunk((at_time, b"k", b"v"))], [record])


def test_errors_that_last(kit: SinkKit) -> None:
    target = kit.target()
    fenced = connect(Connection.of(kit.upstream.address, {}), target).fence()  # type: ignore[attr-defined]
    large = chunk((1, b"k", b"v" * 2_000_000))
    assert failing(Stop, lambda: fenced.send([large], [])).error.code == "54000"
    sending(fenced, target, 1)()
    assert len(messages_of(kit, target)) == 1, "the same producer can go on"
    compacted = replace(kit.target(), topic=kit.upstream.create_topic(compacted=True))
    fenced = connect(Connection.of(kit.upstream.address, {}), compacted).fence()  # type: ignore[attr-defined]
    keyless = failing(Stop, lambda: fenced.send([chunk((1, None, b"v"))], [])).error
    assert "KEY" in str(keyless.hint)
    long = kit_of(kit.upstream, Patience(transaction=86_400.0))  # type: ignore[arg-type]
    assert "transaction_timeout" in str(failing(Stop, long.open(kit.target()).fence).error.hint)


def test_a_stranger_is_told_so(kafka: RealKafka, kit: SinkKit) -> None:
    options = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": USER,
        "kafka.sasl.password": "not the one",
    }
    stranger = connect(Connection.of(kafka.guarded, options), kit.target())
    error = failing(Stop, stranger.fence).error
    assert error.code == "28000"
    assert "not the one" not in str(error)


def test_options_that_are_reclocks_own(kit: SinkKit) -> None:
    for option in ("transactional.id", "acks", "partitioner", "compression.type"):
        with pytest.raises(InvalidValue, match=option):
            connect(Connection.of("nobody:1", {f"kafka.{option}": "1"}), kit.target())
    with pytest.raises(InvalidValue, match="compression"):
        connect(Connection.of("nobody:1", {}), kit.target(), compression="rar")
    with pytest.raises(InvalidValue):
        connect(Connection.of("nobody:1", {"kafka.no.such": "1"}), kit.target())


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_compression(kafka: RealKafka, kit: SinkKit, compression: str) -> None:
    target = kit.target()
    connection = Connection.of(kafka.address, {})
    fenced = connect(connection, target, compression=compression).fence()
    fenced.send([chunk(*((1, b"k", b"value") for _ in range(100)))], [])
    assert [m.value for m in messages_of(kit, target)] == [b"value"] * 100
    size = sum(p.stat().st_size for p in kafka.directory.rglob(f"{target.topic}-0/*.log"))
    assert 0 < size < 1_000


def murmur2(data: bytes) -> int:
    """Return the hash by which Java's producer chooses partitions, from its definition."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for at_byte in range(0, whole, 4):
        k = int.from_bytes(data[at_byte : at_byte + 4], "little") * m & mask
        h = (h * m & mask) ^ ((k ^ k >> 24) * m & mask)
    if rest := data[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def test_keys_are_where_java_looks_for_them(kit: SinkKit) -> None:
    target = kit.target(partitions=5)
    keys = [b"key-%d" % n * (n % 3) for n in range(60)]
    kit.open(target).fence().send([chunk(*((1, key, b"") for key in keys))], [])
    seen = committed(kit.upstream, target.topic)
    assert len(seen) == len(keys)
    assert all(s.partition == (murmur2(s.message.key or b"") & 0x7FFFFFFF) % 5 for s in seen)


@pytest.mark.slow(seconds=20)
def test_a_transaction_that_the_broker_ended(kafka: RealKafka) -> None:
    kit = kit_of(kafka, Patience(transaction=1.0))
    target = kit.target()
    fenced = connect(Connection.of(kafka.address, {}), target, Patience(transaction=1.0)).fence()
    with armed({"sink.commit.before": lambda: time.sleep(14)}):
        error = failing(NewProducer, sending(fenced, target, 1)).error
    assert "too long" in error.message
    anew = kit.open(target).fence()
    assert anew.progress() is None
    anew.send([chunk((1, b"k", b"v"))], [frontier_record(target.sink, at(2), {})])
    assert len(messages_of(kit, target)) == 1


@pytest.mark.slow(seconds=40)
def test_a_broker_that_stops_in_a_transaction() -> None:
    patience = Patience(call=3.0)
    with running_kafka() as kafka:
        kit = kit_of(kafka, patience)
        target = kit.target()
        fenced = connect(Connection.of(kafka.address, {}), target, patience).fence()
        sending(fenced, target, 1)()
        for point in ("sink.begin.before", "sink.produce.after", "sink.commit.before"):
            progress = _persist(kit.open(target).fence().progress)
            assert progress is not None
            last = progress.frontier.element()
            fenced = connect(Connection.of(kafka.address, {}), target, patience).fence()
            with armed({point: kafka.stop}), pytest.raises(SendFailed) as raised:
                sending(fenced, target, int(last))()
            assert type(raised.value) in (Retry, NewProducer)
            kafka.start()
            progress = _persist(kit.open(target).fence().progress)
            assert progress is not None
            expected = list(range(1, progress.frontier.element()))
            assert [m.time for m in messages_of(kit, target)] == expected


def _persist(ask: Callable[[], FrontierRecord | None]) -> FrontierRecord | None:
    for _ in range(100):
        try:
            return ask()
        except Retry:
            time.sleep(0.1)
    return ask()
