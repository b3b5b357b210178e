"""A consistency topic and its rows in Avro, as Debezium writes them with a schema registry."""

from __future__ import annotations

import io

import fastavro
import pytest

from reclock.testing.kafka_upstream import Record
from reclock.testing.schema_registry import running_registry

TEXT, LONG = ["null", "string"], ["null", "long"]


def record(name, **fields):
    listed = [{"name": n, "type": kind} for n, kind in fields.items()]
    return {"type": "record", "name": name, "fields": listed}


PLACE = record("place", id="string", total_order="long", data_collection_order="long")
SOURCE = record("Source", lsn="long", sequence=TEXT, snapshot=TEXT, table="string")
ROW = record(
    "Envelope", before=["null", record("Value", id="long", x=TEXT)], after=["null", "Value"],
    source=SOURCE, op="string", ts_ms=LONG, transaction=["null", PLACE],
)  # fmt: skip
COUNT = record("block", data_collection="string", event_count="long")
SAID = record(
    "TransactionMetadataValue", status="string", id="string", event_count=LONG,
    data_collections=["null", {"type": "array", "items": COUNT}],
)  # fmt: skip


@pytest.fixture
def registry():
    with running_registry() as served:
        yield served


def sent(shop, registry, *messages):
    """Write the messages of a connector in Avro."""
    for message in messages:
        value = None
        if message.value is not None:
            is_row = message.topic != shop.metadata
            schema = ROW if is_row else SAID
            number = registry.register(f"{message.topic}-value", schema)
            given = message.value["payload"] if is_row else message.value
            out = io.BytesIO()
            fastavro.schemaless_writer(out, fastavro.parse_schema(schema), given)
            value = b"\0" + number.to_bytes(4, "big") + out.getvalue()
        shop.kafka.produce(message.topic, message.partition, Record(value, b"k"))


@pytest.mark.parametrize("order", ["strict", "complete"])
def test_transactions_in_avro_are_whole_across_sources_and_restarts(shop, registry, order):
    for table in ("orders", "items"):
        shop.db.execute(
            f"CREATE SOURCE {table} (id BIGINT PRIMARY KEY, x TEXT) FROM KAFKA BROKER 'b:1' TOPIC "
            f"'{shop.topics[table]}' FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry.url}' "
            f"ENVELOPE DEBEZIUM WITH (consistency_topic = '{shop.metadata}', "
            f"transaction_order = '{order}')"
        )
    joined = "SELECT o.id, o.x, i.x FROM orders o JOIN items i ON o.id = i.id"
    sent(shop, registry, *shop.transaction(("orders", 1, "a"), ("items", 1, "b")))
    shop.tick()
    assert shop.read(joined) == [(1, "a", "b")]
    begin, row, late, end = shop.transaction(("orders", 1, "c"), ("items", 1, "d"))
    sent(shop, registry, begin, row, end)
    shop.tick()
    assert shop.read(joined) == [(1, "a", "b")]
    assert "lacks 1 of 1 rows" in shop.status("items")[1]
    shop.crash()
    sent(shop, registry, late)
    shop.tick()
    assert shop.read(joined) == [(1, "c", "d")]
    sent(shop, registry, *shop.transaction(("orders", 1, None)))
    shop.tick()
    assert shop.read(joined) == []
    assert shop.db.check() == []
