"""What FORMAT CSV accepts, and what it says of the rest."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from reclock.connectors.format import Decoded, Field
from reclock.connectors.format.csv_decoder import CsvDecoder
from reclock.dataflow.types import arrow_type
from reclock.sql import types as t


def decode(kinds: list[t.Type], *payloads: bytes | None, delimiter: str = ",") -> Decoded:
    fields = tuple(Field(f"f{at}", kind, arrow_type(kind)) for at, kind in enumerate(kinds))
    return CsvDecoder(fields, delimiter).decode(pa.array(payloads, pa.binary()))


def row_of(kinds: list[t.Type], payload: bytes, delimiter: str = ",") -> list[object]:
    done = decode(kinds, payload, delimiter=delimiter)
    assert done.faults is None
    return [column[0].as_py() for column in done.columns]


def fault_of(kinds: list[t.Type], payload: bytes) -> str:
    done = decode(kinds, payload)
    assert all(column.null_count == 1 for column in done.columns)
    assert done.faults is not None
    return str(done.faults[0])


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"a,b", ["a", "b"]),
        (b'"a,b",c', ["a,b", "c"]),
        (b'"say ""hi""","two\nlines"', ['say "hi"', "two\nlines"]),
        (b',""', [None, ""]),
        (b",", [None, None]),
        (b"a,b\n", ["a", "b"]),
        (b"a,b\r\n", ["a", "b"]),
        (b" a , b ", [" a ", " b "]),
        ("é,\U0001f600".encode(), ["é", "\U0001f600"]),
    ],
)
def test_records(payload: bytes, expected: list[object]) -> None:
    assert row_of([t.TEXT, t.TEXT], payload) == expected


def test_one_column_may_be_empty() -> None:
    assert row_of([t.TEXT], b"") == [None]
    assert row_of([t.TEXT], b'""') == [""]


@pytest.mark.parametrize("delimiter", [";", "|", "\t", "^", "]", "\\", "-", " ", "."])
def test_other_delimiters(delimiter: str) -> None:
    payload = delimiter.join(["a", f'"x{delimiter}y"', "b,c"]).encode()
    kinds: list[t.Type] = [t.TEXT] * 3
    expected = [["a"], [f"x{delimiter}y"], ["b,c"]]
    assert [[v] for v in row_of(kinds, payload, delimiter)] == expected
    many = decode(kinds, *[payload] * 200, delimiter=delimiter)
    assert [c.unique().to_pylist() for c in many.columns] == expected


def test_values_are_read_as_copy_reads_them() -> None:
    kinds: list[t.Type] = [
        t.BOOLEAN, t.BIGINT, t.Numeric(6, 2), t.DOUBLE, t.DATE, t.TIMESTAMPTZ, t.BYTEA,
        t.Array(t.INTEGER), t.JSON,
    ]  # fmt: skip
    payload = b'yes, +7 ,1.005,Infinity,2026-01-31,2026-01-31 01:00-02,\\x00ff,"{1,NULL}","[1,2]"'
    assert row_of(kinds, payload) == [
        True, 7, Decimal("1.01"), float("inf"), date(2026, 1, 31),
        datetime(2026, 1, 31, 3, tzinfo=UTC), b"\x00\xff", [1, None], "[1, 2]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"1", "1 values for 2 columns"),
        (b"1,a,b", "3 values for 2 columns"),
        (b"x,a", 'field "f0": x is not of type bigint'),
        (b"9" * 20 + b",a", f'field "f0": {"9" * 20} is out of range for type bigint'),
        (b'1,a"b', 'not CSV at character 3: 1,a"b'),
        (b'1,"ab', 'not CSV at character 2: 1,"ab'),
        (b'1,"a"b', 'not CSV at character 5: 1,"a"b'),
        (b"1,a\nb", "not CSV at character 3: 1,a\nb"),
        (b"1,\xff", "not UTF-8: byte 2 is 0xff"),
    ],
)  # fmt: skip
def test_faults(payload: bytes, reason: str) -> None:
    assert fault_of([t.BIGINT, t.TEXT], payload) == reason


def test_null_where_it_may_not_be() -> None:
    field = Field("f", t.TEXT, pa.string(), nullable=False)
    done = CsvDecoder((field,)).decode(pa.array([b"", b'""', None], pa.binary()))
    assert done.columns[0].to_pylist() == [None, "", None]
    assert done.faults is not None
    assert done.faults.to_pylist() == ['field "f" must not be null', None, None]


def test_a_decoder_is_a_value() -> None:
    decoder = CsvDecoder((Field("f", t.TEXT, pa.string()),), ";")
    assert pickle.loads(pickle.dumps(decoder)) == decoder
