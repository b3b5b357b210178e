"""Encoding and writing a sink's changes, against a bare transactional producer of the same bytes.

The changes are ``orders`` (id, cust, amount, ts), in transactions of ``ROWS``, to four partitions
of a broker on this machine, which shares its cores. The bare loop has the bytes of all messages
in lists, keys, values and headers, and does nothing but produce and commit, as any program must.
Rounds alternate, so all see the same machine. ENVELOPE MATERIALIZE puts many rows into one
message, so a bare producer has next to nothing to do there.
"""

from __future__ import annotations

import statistics
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Producer

from benchmarks.measure import Measure, median_seconds, seconds
from reclock.connectors.kafka.options import Connection
from reclock.sinks.connect import SETTINGS, connect
from reclock.sinks.encode.avro_format import AvroFormat
from reclock.sinks.encode.cdcv2 import Cdcv2Encoder, JsonWording
from reclock.sinks.encode.debezium import DebeziumEncoder
from reclock.sinks.encode.json_format import JsonFormat
from reclock.sinks.encode.upsert import UpsertEncoder
from reclock.sinks.log import TIMESTAMP_HEADER
from reclock.sinks.producer import Target
from reclock.sql import types as t
from reclock.sql.schema import Column
from reclock.testing.kafka import running_kafka
from reclock.time.description import Description
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.sinks.encode.encoder import Encoder
    from reclock.testing.kafka import RealKafka

ROWS = 250_000
PARTITIONS = 4
ROUNDS = 5
COLUMNS = (
    Column("id", t.BIGINT),
    Column("cust", t.BIGINT),
    Column("amount", t.Numeric(12, 2)),
    Column("ts", t.TIMESTAMP),
)
FORMAT = JsonFormat(COLUMNS, (0,))
WHOLE = Description(at(0), at(9), at(0))

Prepared = list[tuple[bytes | None, bytes | None, list[tuple[str, str | bytes | None]]]]


def snapshot() -> pa.RecordBatch:
    """Return rows that are all new, at one time."""
    random = np.random.default_rng(7)
    ids = np.arange(ROWS)
    cents = random.integers(100, 100_000, ROWS)
    amounts = pa.array([Decimal(int(c)).scaleb(-2) for c in cents], pa.decimal128(12, 2))
    moments = pa.array(1_767_225_600_000_000 + ids * 1_000, pa.timestamp("us"))
    ones = pa.array(np.ones(ROWS, np.int64))
    columns = [pa.array(ids), pa.array(ids % 50_000), amounts, moments]
    times = pa.array(np.full(ROWS, 5))
    return pa.RecordBatch.from_arrays(
        [*columns, times, ones], names=["c0", "c1", "c2", "c3", "time", "diff"]
    )


def updates() -> pa.RecordBatch:
    """Return half as many rows, replaced by others: as many updates."""
    rows = snapshot().slice(0, ROWS // 2)
    moved = [rows.column(0), pa.array(rows.column(1).to_numpy() + 1), *rows.columns[2:]]
    new = pa.RecordBatch.from_arrays(moved, schema=rows.schema)
    gone = rows.set_column(5, "diff", pa.array(np.full(len(rows), -1)))
    mixed = np.argsort(np.tile(np.arange(len(rows)), 2), kind="stable")
    return pa.concat_batches([gone, new]).take(mixed)


def bare(kafka: RealKafka, topic: str, messages: Prepared) -> None:
    """Write messages that are ready, in one transaction, with the bare producer of a broker."""
    send_all(_bare[kafka.address], topic, messages)


def send_all(producer: Producer, topic: str, messages: Prepared) -> None:
    """Write messages that are ready, in one transaction."""
    producer.begin_transaction()
    produce = producer.produce
    for key, value, headers in messages:
        while True:
            try:
                produce(topic, value, key, headers=headers)
                break
            except BufferError:
                producer.poll(0.1)
    producer.commit_transaction()


_bare: dict[str, Any] = {}


def prepared(encoder: Encoder, delta: pa.RecordBatch) -> Prepared:
    """Return the messages of a delta as the bare loop wants them."""
    return [
        (m.key, m.value, [(TIMESTAMP_HEADER, b"%d" % m.time)])
        for chunk in encoder.encode(delta, WHOLE).chunks()
        for m in chunk
    ]


def run() -> Iterator[Measure]:
    """Measure messages a second, both ways, and encoding alone."""
    cases: dict[str, tuple[Encoder, pa.RecordBatch]] = {
        "upsert, new rows": (UpsertEncoder(FORMAT, (0,)), snapshot()),
        "debezium, new rows": (DebeziumEncoder(FORMAT, (0,)), snapshot()),
        "debezium, replaced rows": (DebeziumEncoder(FORMAT, (0,)), updates()),
        "upsert in Avro, new rows": (
            UpsertEncoder(AvroFormat(COLUMNS, (0,), 1, 2), (0,)),
            snapshot(),
        ),
        "materialize, new rows": (Cdcv2Encoder(JsonWording(FORMAT)), snapshot()),
    }
    with running_kafka() as kafka:
        config = {
            **SETTINGS,
            "bootstrap.servers": kafka.address,
            "transactional.id": "bare",
            "delivery.report.only.error": True,
            "partitioner": "murmur2_random",
        }
        _bare[kafka.address] = Producer(config)
        _bare[kafka.address].init_transactions()
        for name, (encoder, delta) in cases.items():
            yield from _case(kafka, name, encoder, delta)


def _case(
    kafka: RealKafka, name: str, encoder: Encoder, delta: pa.RecordBatch
) -> Iterator[Measure]:
    topic, progress = kafka.create_topic(PARTITIONS), kafka.create_topic()
    target = Target("u1", topic, progress, f"sink-{topic}")
    fenced = connect(Connection.of(kafka.address, {}), target).fence()
    messages = prepared(encoder, delta)

    def encode() -> None:
        for _ in encoder.encode(delta, WHOLE).chunks():
            pass

    def ours() -> None:
        fenced.send(encoder.encode(delta, WHOLE).chunks(), [])

    alone = median_seconds(encode, ROUNDS)
    rounds = [(seconds(ours), seconds(lambda: bare(kafka, topic, messages))) for _ in range(ROUNDS)]
    mine, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    count = len(messages)
    rows = delta.num_rows if count < ROWS // 10 else count
    unit = "rows" if rows != count else "messages"
    share = theirs / mine
    yield Measure(f"{name}: encode", f"{rows / alone / 1e3:,.0f} k {unit}/s")
    yield Measure(f"{name}: bare producer", f"{rows / theirs / 1e3:,.0f} k {unit}/s")
    yield Measure(
        f"{name}: encode and send",
        f"{rows / mine / 1e3:,.0f} k {unit}/s, {share:.0%} of bare",
        "≥ 50 % of bare" if rows == count else "",
        share >= 0.5 if rows == count else None,
    )
