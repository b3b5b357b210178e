"""What FORMAT AVRO accepts, by the writer's types and the columns', and what it refuses."""

from __future__ import annotations

import io
import json
import pickle
import time
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.connectors.format import Decoded, Field, decoder_of
from reclock.connectors.format.avro_decoder import AvroDecoder, RegistryDecoder
from reclock.connectors.format.registry import Registry
from reclock.dataflow.types import arrow_type
from reclock.errors import InvalidDefinition, SourceUnavailable
from reclock.sql import types as t
from reclock.sql.statement.source import Format
from reclock.testing.schema_registry import running_registry

POINT = t.Record((("x", t.INTEGER), ("label", t.TEXT)))
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
LOCAL = AT.replace(tzinfo=None)
MILLIS = 1769860800000


def encode(schema: object, value: object) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def record(kind: object) -> dict[str, object]:
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]}


def field(kind: t.Type, name: str = "f", nullable: bool = True) -> Field:
    return Field(name, kind, arrow_type(kind), nullable)


def decode(
    schema: object, kind: t.Type, *payloads: bytes | None
) -> tuple[list[object], list[object]]:
    decoder = AvroDecoder((field(kind),), json.dumps(schema))
    return read(decoder.decode(pa.array(payloads, pa.binary())))


def read(done: Decoded) -> tuple[list[object], list[object]]:
    (column,) = done.columns
    return column.to_pylist(), [None] * len(
        column
    ) if done.faults is None else done.faults.to_pylist()


@pytest.mark.parametrize(
    ("written", "value", "kind", "expected"),
    [
        ("boolean", True, t.BOOLEAN, True),
        ("int", 5, t.SMALLINT, 5),
        ("long", -(2**63), t.BIGINT, -(2**63)),
        ("long", 7, t.Numeric(4, 2), Decimal("7.00")),
        ("long", 7, t.DOUBLE, 7.0),
        ("float", 0.5, t.REAL, 0.5),
        ("float", 0.1, t.DOUBLE, 0.10000000149011612),
        ("double", float("inf"), t.REAL, float("inf")),
        ("string", "é\x00", t.TEXT, "é\x00"),
        ("string", " 1.005", t.Numeric(4, 2), Decimal("1.01")),
        ("string", "2026-01-31T12:00:00Z", t.TIMESTAMPTZ, AT),
        ({"type": "string", "logicalType": "uuid"}, "0" * 32, t.TEXT, "0" * 32),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", t.TEXT, "B"),
        ("bytes", b"\x00\xff", t.BYTEA, b"\x00\xff"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", t.BYTEA, b"ab"),
        (DECIMAL, Decimal("-12.34"), t.Numeric(6, 2), Decimal("-12.34")),
        (DECIMAL, Decimal("12.35"), t.Numeric(6, 1), Decimal("12.4")),
        (DECIMAL, Decimal("12.35"), t.JSON, "12.35"),
        ({"type": "int", "logicalType": "date"}, date(2026, 1, 31), t.DATE, date(2026, 1, 31)),
        ("int", 20484, t.DATE, date(2026, 1, 31)),
        ({"type": "long", "logicalType": "timestamp-millis"}, AT, t.TIMESTAMPTZ, AT),
        ({"type": "long", "logicalType": "timestamp-micros"}, AT, t.TIMESTAMP, LOCAL),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, LOCAL, t.TIMESTAMP, LOCAL),
        ({"type": "long", "logicalType": "timestamp-nanos"}, MILLIS * 10**6 + 1500, t.TIMESTAMPTZ,
         AT + timedelta(microseconds=2)),
        ("long", MILLIS, t.TIMESTAMPTZ, AT),
        ({"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}, MILLIS * 1000,
         t.TIMESTAMP, LOCAL),
        ({"type": "long", "logicalType": "timestamp-millis"}, AT, t.BIGINT, MILLIS),
        (["null", "long"], None, t.BIGINT, None),
        (["null", "long"], 5, t.BIGINT, 5),
        (["int", "null", "long"], 2**40, t.BIGINT, 2**40),
        ({"type": "array", "items": ["null", "int"]}, [1, None], t.Array(t.BIGINT), [1, None]),
        (["null", record("int")], {"f": 1}, t.Record((("f", t.INTEGER), ("g", t.TEXT))),
         {"f": 1, "g": None}),
        (["null", record("int")], None, t.Record((("f", t.INTEGER),)), None),
        ({"type": "map", "values": "double"}, {"a": 1.5}, t.JSON, '{"a": 1.5}'),
        (["null", "string", {"type": "array", "items": "int"}], [1], t.JSON, "[1]"),
        (["null", "string", {"type": "array", "items": "int"}], "x", t.JSON, '"x"'),
        ({"type": "long", "logicalType": "timestamp-millis"}, AT, t.JSON, '"2026-01-31T12:00:00"'),
        ({"type": "int", "logicalType": "date"}, date(2026, 1, 31), t.JSON, '"2026-01-31"'),
        ("bytes", b"\x00\x01\xff", t.JSON, '"AAH/"'),
        ({"type": "string", "connect.name": "io.debezium.data.Json"}, '{"a":1}', t.JSON,
         '{"a": 1}'),
        ("null", None, t.TEXT, None),
    ],
)  # fmt: skip
def test_values(written: object, value: object, kind: t.Type, expected: object) -> None:
    schema = json.loads(json.dumps(record(written)).replace('"R"', '"Outer"', 1))
    assert decode(schema, kind, encode(schema, {"f": value})) == ([expected], [None])


@pytest.mark.parametrize(
    ("written", "value", "kind", "reason"),
    [
        ("long", 2**40, t.INTEGER, f"{2**40} is out of range for type integer"),
        ("long", 100, t.Numeric(4, 2), "100 is out of range for type numeric(4,2)"),
        ("double", 1e39, t.REAL, "1e+39 is out of range for type real"),
        ("double", float("nan"), t.JSON, "nan is not JSON"),
        ("string", "x", t.BIGINT, "x is not of type bigint"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 200, "scale": 0},
         Decimal(10) ** 180, t.Numeric(38, 0), "a decimal of 75 bytes is out of range"),
        ({"type": "int", "connect.name": "io.debezium.time.Date"}, 2**31 - 1, t.DATE,
         "2147483647 is out of range for type date"),
        ("long", 2**62, t.TIMESTAMP, f"{2**62} is out of range for type timestamp"),
        ({"type": "long", "connect.name": "io.debezium.time.Timestamp"}, 2**62, t.JSON,
         f"{2**62 * 1000} microseconds since 1970 are out of range"),
    ],
)  # fmt: skip
def test_values_out_of_range(written: object, value: object, kind: t.Type, reason: str) -> None:
    schema = record(written)
    payload = encode(schema, {"f": value})
    assert decode(schema, kind, payload) == ([None], [f'field "f": {reason}'])


@pytest.mark.parametrize(
    ("written", "kind", "reason"),
    [
        ("string", t.BOOLEAN, "Avro string cannot be read as boolean"),
        ("double", t.Numeric(4, 2), "Avro double cannot be read as numeric(4,2)"),
        (DECIMAL, t.BIGINT, "Avro bytes (decimal) cannot be read as bigint"),
        ({"type": "int", "logicalType": "time-millis"}, t.TIMESTAMP,
         "Avro int (time-millis) cannot be read as timestamp"),
        ({"type": "map", "values": "int"}, POINT,
         "Avro map cannot be read as record(x integer, label text)"),
        (["null", "int", "string"], t.TEXT,
         "an Avro union of null, int, string cannot be read as text, only as json"),
        ({"type": "array", "items": "string"}, t.Array(POINT),
         "Avro string cannot be read as record(x integer, label text)"),
    ],
)  # fmt: skip
def test_types_that_do_not_suit_are_refused_with_the_statement(
    written: object, kind: t.Type, reason: str
) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        decoder_of(Format("avro", schema=json.dumps(record(written))), [field(kind)], {})
    assert raised.value.detail == f'field "f": {reason}'


@pytest.mark.parametrize(
    ("schema", "detail"),
    [
        ("{", "not an Avro schema: Expecting property name"),
        ('{"type": "recrd"}', "not an Avro schema: "),
        ('{"type": "record", "name": "N", "fields": [{"name": "f", "type": ["null", "N"]}]}',
         'the Avro type "N" contains itself, which is not supported'),
        ('{"type": "array", "items": "null"}',
         "an Avro array of items without bytes is not supported"),
        ('{"type": "array", "items": {"type": "record", "name": "E", "fields": []}}',
         "an Avro array of items without bytes is not supported"),
    ],
)  # fmt: skip
def test_schemas_that_are_refused(schema: str, detail: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        decoder_of(Format("avro", schema=schema), [field(t.TEXT)], {})
    assert raised.value.detail is not None
    assert raised.value.detail.startswith(detail)


def test_columns_that_the_schema_has_not_are_refused() -> None:
    schema = json.dumps(record("int"))
    with pytest.raises(InvalidDefinition, match='the Avro schema has no field "g"'):
        decoder_of(Format("avro", schema=schema), [field(t.TEXT, "g")], {})
    with pytest.raises(InvalidDefinition, match="FORMAT AVRO needs a schema"):
        decoder_of(Format("avro"), [field(t.TEXT)], {})


def test_payloads_that_are_not_of_the_schema() -> None:
    schema = record("string")
    good = encode(schema, {"f": "abc"})
    payloads = [good[:-1], good + b"\x00", b"", b"\x01", b"\x02\xff", good, None]
    values, faults = decode(schema, t.TEXT, *payloads)
    assert values == [None] * 5 + ["abc", None]
    assert faults[:2] == [
        "not of its Avro schema: Expected 3 bytes, read 2",
        "not of its Avro schema: 1 bytes are left",
    ]
    assert all(fault.startswith("not of its Avro schema: ") for fault in faults[2:5])
    assert faults[5:] == [None, None]


@given(st.lists(st.binary(max_size=30), max_size=20))
@settings(max_examples=200, deadline=None)
def test_no_payload_raises(payloads: list[bytes]) -> None:
    inner = {"type": "record", "name": "I", "fields": [{"name": "x", "type": ["null", DECIMAL]}]}
    schema = record({"type": "array", "items": ["null", "long", "double", "string", inner]})
    values, faults = decode(schema, t.JSON, *payloads)
    assert all(
        (value is None) != (fault is None) for value, fault in zip(values, faults, strict=True)
    )


def test_a_count_of_billions_takes_no_time() -> None:
    schema = record({"type": "array", "items": "long"})
    payload = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x02"
    start = time.perf_counter()
    assert decode(schema, t.Array(t.BIGINT), payload)[0] == [None]
    assert time.perf_counter() - start < 5


def test_null_where_it_may_not_be() -> None:
    schema = record(["null", "int"])
    decoder = AvroDecoder((field(t.INTEGER, nullable=False),), json.dumps(schema))
    done = decoder.decode(pa.array([encode(schema, {"f": None})], pa.binary()))
    assert read(done) == ([None], ['field "f" must not be null'])


def test_a_schema_that_is_no_record_fills_one_column() -> None:
    assert decode("long", t.BIGINT, encode("long", 5)) == ([5], [None])
    assert decode(["null", "string"], t.TEXT, encode(["null", "string"], None)) == ([None], [None])
    two = [field(t.BIGINT), field(t.BIGINT, "g")]
    with pytest.raises(InvalidDefinition):
        decoder_of(Format("avro", schema='"long"'), two, {})


def framed(number: int, payload: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + payload


def test_messages_of_many_versions_of_a_schema() -> None:
    first, second = record("int"), record(["null", "long"])
    second["fields"].append({"name": "new", "type": "string"})
    third = record("boolean")
    with running_registry() as registry:
        ids = [registry.register("topic-value", schema) for schema in (first, second, third)]
        fields = [field(t.BIGINT), field(t.TEXT, "new")]
        decoder = decoder_of(Format("avro", registry=registry.url), fields, {})
        payloads = [
            framed(ids[0], encode(first, {"f": 1})),
            framed(ids[1], encode(second, {"f": 2, "new": "x"})),
            framed(ids[1], encode(second, {"f": None, "new": "y"})),
            framed(ids[2], encode(third, {"f": True})),
            framed(99, b""),
            b"\x01\x00\x00\x00\x01",
            b"\x00\x00",
            b"",
            None,
        ]
        for _ in range(2):
            done = pickle.loads(pickle.dumps(decoder)).decode(pa.array(payloads * 30, pa.binary()))
            assert done.columns[0].to_pylist() == [1, 2, None, *[None] * 6] * 30
            assert done.columns[1].to_pylist() == [None, "x", "y", *[None] * 6] * 30
            assert done.faults.to_pylist()[:9] == [
                None,
                None,
                None,
                'field "f": Avro boolean cannot be read as bigint',
                "schema 99 is not in the registry",
                "no schema id: it begins with 01 00 00 00 01",
                "no schema id: it begins with 00 00",
                "no schema id: it begins with nothing",
                None,
            ]
        known = [f"/schemas/ids/{number}" for number in ids]
        assert sorted(registry.asked) == sorted([*known, *["/schemas/ids/99"] * 2])


def test_a_registry_that_is_gone_is_no_fault_of_the_record() -> None:
    with running_registry() as registry:
        url = registry.url
    decoder = RegistryDecoder((field(t.BIGINT),), Registry.of(url, {}))
    with pytest.raises(SourceUnavailable):
        decoder.decode(pa.array([framed(1, b"")], pa.binary()))
    assert decoder.decode(pa.array([None, b"x"], pa.binary())).columns[0].null_count == 2
