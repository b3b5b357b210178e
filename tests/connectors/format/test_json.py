"""What FORMAT JSON accepts, type by type, and what it says of the rest."""

from __future__ import annotations

import pickle
import time
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from reclock.connectors.format import Field
from reclock.connectors.format.json_decoder import JsonDecoder
from reclock.dataflow.types import arrow_type
from reclock.sql import types as t

MONEY = t.Numeric(6, 2)
POINT = t.Record((("x", t.INTEGER), ("at", t.TIMESTAMP)))


def decode(
    kind: t.Type, *payloads: bytes | None, nullable: bool = True, strict: bool = False
) -> tuple[list[object], list[str | None]]:
    field = Field("f", kind, arrow_type(kind), nullable)
    done = JsonDecoder((field,), strict).decode(pa.array(payloads, pa.binary()))
    (column,) = done.columns
    assert column.type == arrow_type(kind)
    faults = [None] * len(payloads) if done.faults is None else done.faults.to_pylist()
    return column.to_pylist(), faults


def value_of(kind: t.Type, text: str) -> object:
    (value,), (fault,) = decode(kind, f'{{"f": {text}}}'.encode())
    assert fault is None
    return value


def fault_of(kind: t.Type, text: str) -> str:
    (value,), (fault,) = decode(kind, f'{{"f": {text}}}'.encode())
    assert value is None
    assert fault is not None
    return fault


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (t.BOOLEAN, "true", True),
        (t.SMALLINT, "-32768", -32768),
        (t.BIGINT, "9223372036854775807", 2**63 - 1),
        (t.BIGINT, "-9223372036854775808", -(2**63)),
        (t.BIGINT, '"9223372036854775807"', 2**63 - 1),
        (t.BIGINT, "1.0", 1),
        (t.BIGINT, "1e2", 100),
        (t.BIGINT, "-0", 0),
        (MONEY, "0.1", Decimal("0.10")),
        (MONEY, '"12.5"', Decimal("12.50")),
        (MONEY, "0.125", Decimal("0.13")),
        (MONEY, "-0.125", Decimal("-0.13")),
        (MONEY, "1e-999999999", Decimal("0.00")),
        (t.Numeric(38, 9), "12345678901234567890123456789.123456789",
         Decimal("12345678901234567890123456789.123456789")),
        (t.DOUBLE, "0.1", 0.1),
        (t.DOUBLE, "9007199254740993", 9007199254740992.0),
        (t.DOUBLE, '"-Infinity"', float("-inf")),
        (t.REAL, "0.1", 0.10000000149011612),
        (t.TEXT, '"a\\nb\\u0000\\ud83d\\ude00"', "a\nb\x00\U0001f600"),
        (t.BYTEA, '"AAH/"', b"\x00\x01\xff"),
        (t.DATE, '"2026-01-31"', date(2026, 1, 31)),
        (t.DATE, "20484", date(2026, 1, 31)),
        (t.TIMESTAMP, '"2026-01-31T12:00:00.25Z"', datetime(2026, 1, 31, 12, 0, 0, 250_000)),  # noqa: DTZ001
        (t.TIMESTAMP, "1769860800000", datetime(2026, 1, 31, 12)),  # noqa: DTZ001
        (t.TIMESTAMPTZ, '"2026-01-31 12:00+02:00"', datetime(2026, 1, 31, 10, tzinfo=UTC)),
        (t.TIMESTAMPTZ, "1769860800001", datetime(2026, 1, 31, 12, 0, 0, 1000, tzinfo=UTC)),
        (t.INTERVAL, '"1 year 2 days 03:00"', {"days": 2, "micros": 10_800_000_000, "months": 12}),
        (t.JSON, '{"b":[1.0,1e2],"a":"é"}', '{"b": [1.0, 1e2], "a": "\\u00e9"}'),
        (t.JSON, "12345678901234567890123", "12345678901234567890123"),
        (t.Array(t.BIGINT), "[1, null, 3]", [1, None, 3]),
        (t.Array(t.Array(t.TEXT)), '[["a"], [], null]', [["a"], [], None]),
        (POINT, '{"x": 1, "at": "2026-01-31"}', {"x": 1, "at": datetime(2026, 1, 31)}),  # noqa: DTZ001
        (POINT, '{"y": 1}', {"x": None, "at": None}),
        (t.Array(POINT), '[null, {"x": 1}]', [None, {"x": 1, "at": None}]),
    ],
)  # fmt: skip
def test_values(kind: t.Type, text: str, expected: object) -> None:
    assert value_of(kind, text) == expected


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (t.BOOLEAN, "1", "1 is not of type boolean"),
        (t.BOOLEAN, '"true"', '"true" is not of type boolean'),
        (t.SMALLINT, "32768", "32768 is out of range for type smallint"),
        (t.BIGINT, "9223372036854775808", "9223372036854775808 is out of range for type bigint"),
        (t.BIGINT, "1.5", "1.5 is not of type bigint"),
        (t.BIGINT, "true", "true is not of type bigint"),
        (t.BIGINT, "1e999999999", "1e999999999 is out of range for type bigint"),
        (t.BIGINT, '"1.0"', "1.0 is not of type bigint"),
        (MONEY, "10000", "10000 is out of range for type numeric(6,2)"),
        (MONEY, "9999.995", "9999.995 is out of range for type numeric(6,2)"),
        (MONEY, '"NaN"', "NaN is not of type numeric(6,2)"),
        (MONEY, "1e999999999", "1e999999999 is out of range for type numeric(6,2)"),
        (t.DOUBLE, "1e309", "1e309 is out of range for type double precision"),
        (t.REAL, "1e39", "1e39 is out of range for type real"),
        (t.TEXT, "12", "12 is not of type text"),
        (t.TEXT, '["a"]', '["a"] is not of type text'),
        (t.TEXT, '"\\ud800"', "\\ud800 is not valid Unicode"),
        (t.JSON, '{"a": "\\ud800"}', "\\ud800 is not valid Unicode"),
        (t.BYTEA, '"AA"', '"AA" is not of type bytea'),
        (t.DATE, '"2026-02-30"', "2026-02-30 is not of type date"),
        (t.DATE, "99999999", "99999999 is out of range for type date"),
        (t.TIMESTAMP, '"yesterday"', "yesterday is not of type timestamp"),
        (t.TIMESTAMP, "1.5", "1.5 is not of type timestamp"),
        (t.TIMESTAMPTZ, "9" * 17, f"{'9' * 17} is out of range for type timestamptz"),
        (t.INTERVAL, '"1 moon"', "1 moon is not of type interval"),
        (t.Array(t.BIGINT), "1", "1 is not of type bigint[]"),
        (t.Array(t.BIGINT), '[1, "x"]', "x is not of type bigint"),
        (POINT, "[]", "[] is not of type record(x integer, at timestamp)"),
    ],
)  # fmt: skip
def test_faults_name_the_field_and_show_the_value(kind: t.Type, text: str, reason: str) -> None:
    assert fault_of(kind, text) == f'field "f": {reason}'


def test_a_fault_inside_a_record_names_the_path() -> None:
    deep = t.Record((("p", POINT),))
    assert fault_of(deep, '{"p": {"x": "q"}}') == 'field "f.p.x": q is not of type integer'


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "not JSON: expecting value at character 0: "),
        (b"[1]", "not a JSON object: [1]"),
        (b"null", "not a JSON object: null"),
        (b'{"f": 1} x', 'not JSON: extra data at character 9: {"f": 1} x'),
        (b'{"f": 1}{"f": 2}', 'not JSON: extra data at character 8: {"f": 1}{"f": 2}'),
        (b'{"f": NaN}', "NaN is not JSON"),
        (b'{"f": 1', "not JSON: expecting ',' delimiter at character 7: {\"f\": 1"),
        (b'{"g": "\xff"}', "not UTF-8: byte 7 is 0xff"),
        (b'{"g": ' + b"[" * 128 + b"]" * 128 + b"}", "not usable JSON: nested more than 128 deep"),
        (b"[" * 1_000_000, "not usable JSON: nested more than 128 deep"),
    ],
)
def test_payloads_that_are_no_objects(payload: bytes, reason: str) -> None:
    assert decode(t.BIGINT, payload) == ([None], [reason])


def test_missing_null_and_unknown_members() -> None:
    payloads = [b"{}", b'{"f": null}', b'{"F": 1}', b'{"g": {"f": [1]}, "f": 2}', None]
    assert decode(t.BIGINT, *payloads) == ([None, None, None, 2, None], [None] * 5)
    reason = 'field "f" must not be null'
    assert decode(t.BIGINT, *payloads, nullable=False)[1] == [reason, reason, reason, None, None]
    faults = [None, None, 'unknown field "F"', 'unknown field "g"', None]
    assert decode(t.BIGINT, *payloads, strict=True)[1] == faults
    inner = [b'{"f": {"x": 1, "z": 2}}']
    assert decode(POINT, *inner, strict=True)[1] == ['field "f": unknown field "z"']


def test_the_last_of_duplicate_members_counts() -> None:
    assert decode(t.BIGINT, b'{"f": "x", "f": 2}')[0] == [2]
    assert decode(t.BIGINT, b'{"f": 1, "f": null}')[0] == [None]


def test_a_null_record_is_null_and_not_a_record_of_nulls() -> None:
    columns, faults = decode(POINT, b'{"f": null}', b'{"f": {}}', b"{}")
    assert columns == [None, {"x": None, "at": None}, None]
    assert faults == [None] * 3


@pytest.mark.parametrize("kind", [t.BIGINT, MONEY, t.DOUBLE, t.TEXT, t.JSON, t.TIMESTAMP])
@pytest.mark.parametrize(
    "text", ["9" * 100_000, '"' + "9" * 100_000 + '"', "-0." + "0" * 100_000, "1e" + "9" * 100_000]
)
def test_enormous_numbers_take_no_time_and_show_little(kind: t.Type, text: str) -> None:
    start = time.perf_counter()
    _, (fault,) = decode(kind, f'{{"f": {text}}}'.encode())
    assert time.perf_counter() - start < 5
    assert fault is None or len(fault) < 200


def test_a_megabyte_of_text() -> None:
    text = "é\n" * 500_000
    payload = b'{"f": "' + text.replace("\n", "\\n").encode() + b'"}'
    assert decode(t.TEXT, payload) == ([text], [None])


def test_a_decoder_is_a_value() -> None:
    decoder = JsonDecoder((Field("f", POINT, arrow_type(POINT)),), True)
    assert pickle.loads(pickle.dumps(decoder)) == decoder
    assert hash(decoder) == hash(pickle.loads(pickle.dumps(decoder)))


def test_nothing_to_decode() -> None:
    assert decode(t.BIGINT) == ([], [])
