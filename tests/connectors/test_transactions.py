"""What a consistency topic says, and the transactions of rows: JSON, wrapped, Avro, and wrong."""

from __future__ import annotations

import io
import json
import pickle

import fastavro
import pyarrow as pa
import pytest

from reclock.connectors.debezium import DebeziumDecode, fields_of, transaction_fields
from reclock.connectors.format.choose import decoder_of
from reclock.connectors.format.decoder import Field
from reclock.connectors.records import decoded
from reclock.connectors.transactions import TransactionsDecode, metadata_decoder
from reclock.dataflow.envelope import TRANSACTIONS, envelope_fields, input_types
from reclock.sinks.consistency import frontier_record, transaction_records
from reclock.sql.statement.source import Format
from reclock.sql.types import BIGINT, TEXT
from reclock.testing.schema_registry import running_registry
from reclock.time.frontier import at

FIELDS = [
    Field("id", BIGINT, pa.int64(), nullable=False),
    Field("x", TEXT, pa.string(), nullable=True),
]
ROW = (pa.int64(), pa.string())
NAMES = ["part", "at", "id", "x", *(f.name for f in envelope_fields(TRANSACTIONS, ROW))]
JSON = Format("json")


def decode_of(form=JSON, topic="shop.public.orders", collection=None):
    rows = DebeziumDecode(
        ROW, decoder_of(form, fields_of(FIELDS, transactional=True), {}),
        (("id", True), ("x", False)), transaction=decoder_of(form, transaction_fields(), {}),
    )  # fmt: skip
    return TransactionsDecode(rows, metadata_decoder(form, {}), topic, "tx", collection)


def raw(part, *values, headers=None):
    made = [v if v is None or isinstance(v, bytes) else json.dumps(v).encode() for v in values]
    given = {
        "part": pa.array([part] * len(made), pa.string()),
        "offset": pa.array(range(5, 5 + len(made)), pa.int64()),
        "value": pa.array(made, pa.binary()),
    }
    if headers is not None:
        kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
        given["headers"] = pa.array(headers, kind)
    return pa.record_batch(given)


def rows_of(batch):
    assert [*batch.schema.types[2:]] == [*input_types(TRANSACTIONS, ROW)]
    columns = [c.to_pylist() for c in batch.columns]
    return [dict(zip(NAMES, row, strict=True)) for row in zip(*columns, strict=True)]


def end(name, **counts):
    listed = [{"data_collection": n.replace("_", "."), "event_count": c} for n, c in counts.items()]
    return {"status": "END", "id": name, "event_count": 9, "data_collections": listed, "ts_ms": 1}


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: {"schema": {}, "payload": m}])
def test_what_is_said_of_transactions(wrap):
    begin = {"status": "BEGIN", "id": "7:1", "event_count": None, "data_collections": None}
    said = [begin, end("7:1", public_orders=2, public_items=1), end("8:2", public_items=1)]
    made = rows_of(decode_of()(raw("tx/0", *map(wrap, said), None)))
    assert [(r["status"], r["transaction"], r["count"], r["order"]) for r in made] == [
        ("BEGIN", "7:1", None, 5), ("END", "7:1", 2, 6), ("END", "8:2", None, 7),
    ]  # fmt: skip
    assert made[2]["collections"] == '"public.items"'
    assert {r["code"] for r in made} == {None}


@pytest.mark.parametrize(
    ("topic", "collection", "count"),
    [
        ("shop.public.orders", None, 2),
        ("public.orders", None, 2),
        ("orders", None, None),
        ("shop.otherpublic.orders", None, 3),
        ("shop.public.items", "public.orders", 2),
        ("shop.public.orders", "elsewhere", None),
    ],
)
def test_which_collection_is_the_sources(topic, collection, count):
    said = end("a", public_orders=2, otherpublic_orders=3, items=4)
    (made,) = rows_of(decode_of(topic=topic, collection=collection)(raw("tx/0", said)))
    assert made["count"] == count


def test_what_others_write_there_is_left_out_and_what_is_wrong_is_a_fault():
    sink = [*transaction_records(9, "shop.public.orders", 3), frontier_record("u1", at(10), {})]
    wrong = [
        b"no JSON", {"status": "MIDDLE", "id": "a"}, {"status": "END"},
        {"status": "END", "id": "a", "event_count": 3, "data_collections": None},
        {"status": "END", "id": "a", "data_collections": [{"data_collection": "x"}]},
    ]  # fmt: skip
    decode = pickle.loads(pickle.dumps(decode_of()))
    made = rows_of(decode(raw("tx/0", *(r.value for r in sink), *wrong)))
    assert [(r["status"], r["transaction"], r["count"]) for r in made[:2]] == [
        ("BEGIN", "9", None), ("END", "9", 3),
    ]  # fmt: skip
    assert [r["transaction"] for r in made[2:]] == [None] * len(wrong)
    assert all("partition tx/0, offset" in r["message"] for r in made[2:])
    nothing = {"status": "END", "id": "a", "event_count": 0, "data_collections": None}
    assert rows_of(decode(raw("tx/0", nothing)))[0]["code"] is None


def test_rows_have_the_place_of_their_transaction():
    place = {"id": "7:1", "total_order": 4, "data_collection_order": 2}
    row = {"before": None, "after": {"id": 1, "x": "a"}, "op": "c", "transaction": place}
    wrong = {**row, "after": {"id": "one"}}
    made = rows_of(
        decode_of()(
            raw("shop.public.orders/2", row, {"payload": row}, None, wrong,
                {**row, "transaction": None})
        )
    )  # fmt: skip
    assert [(r["transaction"], r["total_order"], r["collection_order"]) for r in made] == [
        ("7:1", 4, 2), ("7:1", 4, 2), ("7:1", 4, 2), (None, None, None),
    ]  # fmt: skip
    assert next((r["part"], r["partition"], r["order"]) for r in made) == (
        "shop.public.orders/2", 2, 5,
    )  # fmt: skip
    assert [r["code"] is None for r in made] == [True, True, False, True]
    assert {r["status"] for r in made} == {None}


def test_messages_of_sinks_say_it_in_a_header():
    row = {"before": None, "after": {"id": 1, "x": "a"}}
    headers = [
        [{"key": "reclock-timestamp", "value": b"1000"}], None,
        [{"key": "other", "value": b"1"}, {"key": "reclock-timestamp", "value": None}],
    ]  # fmt: skip
    made = rows_of(decode_of()(raw("shop.public.orders/0", row, row, row, headers=headers)))
    assert [r["transaction"] for r in made] == ["1000", None, None]


def test_a_batch_that_breaks_the_decoder_has_faults():
    class Broken:
        def decode(self, data):
            raise RuntimeError("x" * len(data))

    decode = TransactionsDecode(decode_of().rows, Broken(), "t", "tx")
    made = rows_of(decoded(decode, raw("tx/0", {}, {}), input_types(TRANSACTIONS, ROW)))
    assert [r["code"] is not None for r in made] == [True, True]


COLLECTION = {
    "type": "record", "name": "block", "fields": [
        {"name": "data_collection", "type": "string"}, {"name": "event_count", "type": "long"},
    ],
}  # fmt: skip
VALUE = {
    "type": "record", "name": "TransactionMetadataValue", "fields": [
        {"name": "status", "type": "string"}, {"name": "id", "type": "string"},
        {"name": "event_count", "type": ["null", "long"], "default": None},
        {"name": "data_collections", "type": ["null", {"type": "array", "items": COLLECTION}],
         "default": None},
        {"name": "ts_ms", "type": "long"},
    ],
}  # fmt: skip


def avro(number, schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + out.getvalue()


def test_avro_with_a_registry_and_json_beside_it():
    begin = {"status": "BEGIN", "id": "7:1", "ts_ms": 1}
    with running_registry() as registry:
        number = registry.register("tx-value", VALUE)
        messages = [avro(number, VALUE, said) for said in (begin, end("7:1", public_orders=2))]
        decode = decode_of(Format("avro", registry=registry.url))
        for more in ((), (end("8:1", public_orders=3), b"\1")):
            made = rows_of(decode(raw("tx/0", *messages, *more)))
            assert [(r["status"], r["count"]) for r in made[:2]] == [("BEGIN", None), ("END", 2)]
        assert [(r["status"], r["count"], r["code"] is None) for r in made[2:]] == [
            ("END", 3, True), (None, None, False),
        ]  # fmt: skip
