"""The fast way of CSV gives what the exact one gives, or refuses; and good batches take it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.connectors.format import Field, batch
from reclock.connectors.format.batch import Unsure, decode_exactly
from reclock.connectors.format.csv_batch import read_batch
from reclock.connectors.format.csv_decoder import CsvDecoder
from reclock.connectors.format.csv_exact import record_reader
from reclock.connectors.format.decoder import Decoded
from reclock.dataflow.types import arrow_type
from reclock.sql import types as t

KINDS: list[t.Type] = [
    t.BOOLEAN, t.SMALLINT, t.INTEGER, t.BIGINT, t.REAL, t.DOUBLE, t.Numeric(6, 2), t.Numeric(38, 9),
    t.TEXT, t.BYTEA, t.DATE, t.TIMESTAMP, t.TIMESTAMPTZ, t.INTERVAL, t.JSON,
    t.Array(t.INTEGER), t.Array(t.Array(t.TEXT)),
]  # fmt: skip
TEXTS = [
    "", '""', "a", '"a"', '"a,b"', '"a""b"', 'a"b', '"a"b', '"', '""""', "a b", " 1 ", "1", "-1",
    "+1", "-0", "007", "0x10", "1_000", "1.0", "1.5", ".5", "5.", "1e2", "1E+2", "1e-999999999",
    "1e999999999", "0.125", "0.1000", "9999.99", "9999.995", "10000", "1e38", "1e39", "1e309",
    "NaN", "nan", "inf", "-Infinity", "32768", "9223372036854775807", "9223372036854775808",
    "9" * 400, "0." + "0" * 400 + "1", "true", "TRUE", "t", "f", "yes", "off", "1-1", "1+1",
    "--1", ".", "-", "e", "2026-01-31", "2026-02-30", "0000-01-01", "0001-01-01", "9999-12-31",
    "2026-01-31T01:02:03", "2026-01-31 01:02:03.5", "2026-01-31T01:02:03Z",
    "2026-01-31T01:02:03.1234565Z", "2026-01-31T01:02:03+02:00", "2026-01-31T01:02:03-0530",
    "0001-01-01T00:00:00+01:00", "2026-01-31T01", "9999-12-31T23:59:59.9999999", "2 days",
    "1 year", "\\x00ff", "\\x0", "\\\\", "\\001", "\\9", "[1]", '"{1,2}"', "{1}", "{}",
    '"{NULL,""a""}"', '"{{a},{}}"', "null", "NULL", "\x00", "\ufeff", "é", "\U0001f600",
    "\u0663", '"two\nlines"', '"\r"', "\r", "a\nb",
]  # fmt: skip

values = st.sampled_from(TEXTS) | st.text('01.-+e ",;\n', max_size=5) | st.text(max_size=3)


@st.composite
def records(draw: st.DrawFn, width: int) -> bytes:
    count = draw(st.sampled_from([width] * 12 + [0, 1, width + 1]))
    end = draw(st.sampled_from([""] * 9 + ["\n", "\r\n", "\r"]))
    return (",".join(draw(values) for _ in range(count)) + end).encode(errors="replace")


def fields_of(kinds: list[t.Type], nullable: bool = True) -> tuple[Field, ...]:
    return tuple(Field(f"f{n}", k, arrow_type(k), nullable) for n, k in enumerate(kinds))


def same(a: Decoded, b: Decoded) -> None:
    assert [c.type for c in a.columns] == [c.type for c in b.columns]
    for x, y in zip(a.columns, b.columns, strict=True):
        x.validate(full=True)
        assert str(x.to_pylist()) == str(y.to_pylist())  # NaN is itself, and -0.0 is not 0.0
    assert (a.faults is None) == (b.faults is None)
    assert a.faults is None or a.faults.to_pylist() == b.faults.to_pylist()


def check(payloads: list[bytes], fields: tuple[Field, ...], delimiter: str = ",") -> None:
    data = pa.array(payloads, pa.binary())
    expected = decode_exactly(data, fields, record_reader(fields, delimiter))
    if payloads:
        try:
            columns = read_batch(data, fields, delimiter).columns
        except Unsure:
            pass
        else:
            same(Decoded(columns, None), expected)
    same(CsvDecoder(fields, delimiter).decode(data), expected)


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "FEW", 1)
        patch.setattr(batch, "PARTS", 2)
        yield


@given(st.data(), st.lists(st.sampled_from(KINDS), min_size=1, max_size=3), st.booleans())
@settings(max_examples=300, deadline=None)
def test_fast_is_exact_or_refuses(data: st.DataObject, kinds: list[t.Type], nullable: bool) -> None:
    payloads = data.draw(
        st.lists(records(len(kinds)) | st.sampled_from([b"\xff", b"\n"]), max_size=5)
    )
    check(payloads, fields_of(kinds, nullable))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_value_for_every_type(kind: t.Type) -> None:
    for text in TEXTS:
        check([text.encode(), text.encode()], fields_of([kind]))
        check([f"{text},{text}".encode()] * 2, fields_of([kind, kind]))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (t.BOOLEAN, "true"), (t.SMALLINT, "-5"), (t.BIGINT, "12345678901"), (t.REAL, "1.5"),
        (t.DOUBLE, "1e10"), (t.Numeric(12, 2), "1234.5"), (t.TEXT, '"a, ""b"""'),
        (t.DATE, "2026-01-31"),
        (t.TIMESTAMP, "2026-01-31 01:02:03.123456"), (t.TIMESTAMP, "2026-01-31T01:02:03Z"),
        (t.TIMESTAMPTZ, "2026-01-31T01:02:03+02:00"), (t.TIMESTAMPTZ, "2026-01-31T01:02:03"),
    ],
    ids=str,
)  # fmt: skip
def test_good_batches_take_the_fast_way(kind: t.Type, text: str) -> None:
    fields = fields_of([kind, t.TEXT])
    payloads = pa.array([f"{text},x".encode(), b",", f"{text},".encode()], pa.binary())
    done = read_batch(payloads, fields, ",").columns
    same(Decoded(done, None), decode_exactly(payloads, fields, record_reader(fields, ",")))
    assert done[0].null_count == 1


def test_halves_of_records_are_not_put_together() -> None:
    halves = [b'1,"a', b'b"', b'2,"c\nd"', b"3,e"]
    check(halves, fields_of([t.BIGINT, t.TEXT]))
