"""The fast ways of JSON give what the exact one gives, or refuse; and good batches take them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.connectors.format import Field, batch
from reclock.connectors.format.batch import Unsure, decode_exactly
from reclock.connectors.format.decoder import Decoded
from reclock.connectors.format.json_decoder import JsonDecoder
from reclock.connectors.format.json_exact import record_reader
from reclock.connectors.format.json_template import read_template
from reclock.dataflow.types import arrow_type
from reclock.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator

INNER = t.Record((("n", t.INTEGER), ("s", t.TEXT), ("at", t.TIMESTAMPTZ)))
KINDS: dict[str, t.Type] = {
    "b": t.BOOLEAN,
    "i2": t.SMALLINT,
    "i4": t.INTEGER,
    "i8": t.BIGINT,
    "f4": t.REAL,
    "f8": t.DOUBLE,
    "n": t.Numeric(6, 2),
    "big": t.Numeric(38, 9),
    "s": t.TEXT,
    "x": t.BYTEA,
    "d": t.DATE,
    "ts": t.TIMESTAMP,
    "tz": t.TIMESTAMPTZ,
    "span": t.INTERVAL,
    "j": t.JSON,
    "a": t.Array(t.BIGINT),
    "as": t.Array(t.TEXT),
    "ts_s": t.Array(t.TIMESTAMP),
    "r": INNER,
    "rr": t.Array(INNER),
}

NUMBERS = [
    "0", "1", "-1", "7", "-0", "1.0", "1.5", "1e2", "1E2", "1e-2", "0.1", "0.125", "0.135",
    "-0.005", "12.34", "9999.99", "9999.994", "9999.995", "10000", "32767", "32768", "-32768",
    "2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "1e18", "1e19", "18446744073709551616",
    "123456789012345678901234567890", "12345678901234567890.123456789", "3.4e38", "3.5e38",
    "1e308", "1e309", "1e999999999", "1e-999999999", "-1e999999999", "00", "01", "1.", ".5", "+1",
    "0x10", "NaN", "Infinity", "-Infinity", "Inf", "1_000", "9" * 400, "0." + "0" * 400 + "1",
    "1767225600000", "-62135596800001", "0.1" + "0" * 40, "1e", "--1",
]  # fmt: skip
STRINGS = [
    "", "a", "12", " 12 ", "1.50", "+1", "1e2", "0x10", "NaN", "inf", "-Infinity", "true", "null",
    "x,y", "a:b", "{}", "[1]", "é", "\U0001f600", "\u2028", "tab\there", "q\"q", "b\\b",
    "2026-01-31", "2026-02-30", "0000-01-01", "0001-01-01", "9999-12-31", "2026-01-31T01:02:03",
    "2026-01-31 01:02:03.5", "2026-01-31T01:02:03Z", "2026-01-31T01:02:03.123456Z",
    "2026-01-31T01:02:03.1234565", "2026-01-31T01:02:03+02:00", "2026-01-31T01:02:03-0530",
    "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59.9999999", "2026-01-31T24:00:00",
    "2026-01-31T01", "2026-01-31T01:02", "2026-01-31T01:02:60", "2 days 03:00", "5 months",
    "AAEC", "AAE=", "AAE", "A===", "AB==", "AA==", "*", "\x00", "\x7f", "9" * 400, "Inf", "٣",
]  # fmt: skip
OTHERS = [
    "null", "true", "false", "[]", "{}", "[1, 2]", "[1, null]", '["a"]', '["a", 1]', "[1.5]",
    '{"n": 1}', '{"n": 1, "s": "x", "at": "2026-01-01T00:00:00Z"}', '{"n": 1, "n": 2}',
    '{"s": 1}', '{"zz": 1}', '[{"n": 1, "at": 5}]', '[{"n": 1}, null]', '[{"n": "x"}]',
    '["2026-01-31"]', "[[1]]", "tru", "nul", "", "[1,]", '{"a":1,}', '{"n":{"n":1}}', '"\\ud800"',
    '"\\ud83d\\ude00"', '"\\udc00\\ud800"', '"\\u0000"', '"\\x"', '"raw\ttab"', '"raw\nline"',
    '"unclosed', "/* */ 1",
]  # fmt: skip

strings = st.sampled_from(STRINGS) | st.text(max_size=4).filter(str.isprintable)
values = st.one_of(
    st.sampled_from(NUMBERS),
    st.integers(-(2**65), 2**65).map(str),
    st.decimals(-(10**5), 10**5, places=3, allow_nan=False).map(str),
    strings.map(json.dumps),
    strings.map(lambda s: json.dumps(s, ensure_ascii=False)),
    st.sampled_from(OTHERS),
)
blanks = st.sampled_from(["", "", "", " ", "\n", "\t", "\r\n  "])


@st.composite
def records(draw: st.DrawFn, names: tuple[str, ...]) -> bytes:
    """Return a payload: an object, more or less."""
    chosen = draw(st.lists(st.sampled_from([*names, *names, "unknown", "N"]), max_size=5))
    comma, colon = draw(blanks), draw(blanks)
    members = [f'"{name}"{colon}:{comma}{draw(values)}' for name in chosen]
    text = "{" + f"{comma},{colon}".join(members) + "}"
    before, after = draw(st.sampled_from([("", "")] * 8 + WRAPPINGS))
    return before.encode() + text.encode() + after.encode()


@st.composite
def alike(draw: st.DrawFn, names: tuple[str, ...]) -> list[bytes]:
    """Return payloads of one shape, with a few values in its holes that do not belong there."""
    chosen = draw(st.lists(st.sampled_from([*names, *names, "unknown"]), min_size=1, max_size=4))
    inside = draw(st.booleans())
    blank = draw(blanks)
    columns = [draw(st.lists(values, min_size=1, max_size=3)) for _ in chosen]
    payloads = []
    for _ in range(draw(st.integers(1, 6))):
        pairs = zip(chosen, columns, strict=True)
        members = [f'"{name}":{blank}{draw(st.sampled_from(own))}' for name, own in pairs]
        text = "{" + f",{blank}".join(members) + "}"
        payloads.append((f'{{"r":{text},"i8":1}}' if inside else text).encode())
    return payloads


WRAPPINGS = [
    (" ", "\n"), ("", "x"), ("", "{}"), ("[", "]"), ("\ufeff", ""), ("", "}"), ("{", ""),
    ("", "\x00"), ("", " null {}"), ("{}", ""), ('{"i8":', ""),
]  # fmt: skip
ODD = [
    b"", b" ", b"\n", b"null", b"[]", b"1", b'"x"', b"\xff", b'{"s": "\xff"}', b"{", b"}", b"{}",
    b"[" * 200, b'{"unknown": ' + b"[" * 126 + b"]" * 126 + b"}",
    b'{"unknown": ' + b"[" * 127 + b"]" * 127 + b"}",
    b'{"unknown": ' + b"[" * 128 + b"]" * 128 + b"}", b'{"unknown": "' + b"[" * 200 + b'"}',
    b'{"j": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}", b'{"\xed\xa0\x80": 1}',
    b'{"i8": 1}\n{"i8": 2}', b'{"i8": 1', b"2}", b'{"i8": [1', b"2]}",
]  # fmt: skip


WAYS = [read_template]


def fields_of(names: tuple[str, ...], nullable: bool = True) -> tuple[Field, ...]:
    return tuple(Field(n, KINDS[n], arrow_type(KINDS[n]), nullable) for n in names)


def same(a: Decoded, b: Decoded) -> None:
    assert [c.type for c in a.columns] == [c.type for c in b.columns]
    for x, y in zip(a.columns, b.columns, strict=True):
        x.validate(full=True)
        assert str(x.to_pylist()) == str(y.to_pylist())  # NaN is itself, and -0.0 is not 0.0
    assert (a.faults is None) == (b.faults is None)
    assert a.faults is None or a.faults.to_pylist() == b.faults.to_pylist()


def check(payloads: list[bytes | None], fields: tuple[Field, ...], strict: bool) -> None:
    data = pa.array(payloads, pa.binary())
    exact = record_reader(fields, strict)
    expected = decode_exactly(data.drop_null(), fields, exact)
    present = data.drop_null()
    for way in WAYS if len(present) else []:
        try:
            columns, rows = way(present, fields, strict)
        except Unsure:
            continue
        sure = present if rows is None else present.filter(pa.array(rows))
        same(Decoded(columns, None), decode_exactly(sure, fields, exact))
    decoded = JsonDecoder(fields, strict).decode(data)
    keep = data.is_valid()
    left = Decoded(
        tuple(c.filter(keep) for c in decoded.columns),
        None if decoded.faults is None else decoded.faults.filter(keep),
    )
    same(left, expected)
    gone = pa.compute.invert(keep)
    assert all(c.filter(gone).null_count == data.null_count for c in decoded.columns)
    assert decoded.faults is None or decoded.faults.filter(gone).null_count == data.null_count


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "FEW", 1)
        patch.setattr(batch, "PARTS", 2)
        yield


names = st.lists(
    st.sampled_from([n for n in KINDS if n != "r"]), min_size=1, max_size=4, unique=True
).map(tuple)


@given(st.data(), names, st.booleans(), st.booleans())
@settings(max_examples=400, deadline=None)
def test_fast_is_exact_or_refuses(
    data: st.DataObject, chosen: tuple[str, ...], nullable: bool, strict: bool
) -> None:
    odd = st.sampled_from([None, *ODD])
    payloads = data.draw(st.lists(records(chosen) | odd, max_size=6))
    check(payloads, fields_of(chosen, nullable), strict)


@given(st.data(), names, st.booleans(), st.booleans())
@settings(max_examples=400, deadline=None)
def test_records_of_one_shape(
    data: st.DataObject, chosen: tuple[str, ...], nullable: bool, strict: bool
) -> None:
    check(data.draw(alike((*chosen, "n", "s"))), fields_of((*chosen, "r"), nullable), strict)


GOOD = [
    b'{"i8":17,"n":12.5,"s":"x","ts":"2026-01-31T01:02:03","unknown":-1.5e3,"r":{"n":1,"s":"y"}}',
    b'{"i2": -5, "big": 0.125, "b": true, "d": 20484, "f8": 1e3, "x": "AAEC", "tz": 1769860800000}',
    b'{"i4": 100, "f4": 0.5, "unknown": "u", "n": "1.5", "tz": "2026-01-31T01:02:03Z"}',
    b'{"unknown": {"x": ["y", {}]}, "s": "\\u00e9\\\\ \\"q\\"", "x": "AA\\/\\/", "N": [], "i8": 1}',
    b'{"a":[1,2],"s":"x","j":{"k":[1.5,"z"]},"unknown":["p"],"rr":[{"n":1}],"span":"1 day","i8":3}',
    b'{"i8": 1, "as": ["x", null, "y"], "n": 1.005, "ts_s": ["2026-01-31"]}',
    b'{"ts": "1969-12-31T01:02:03.123456500", "tz": "2026-01-31T01:02:03.9999995+05:30"}',
]
PATCHES = [
    b"", b'"', b"\\", b"{", b"}", b",", b":", b" ", b"0", b"1", b"9", b".", b"-",
    b"e", b"+", b"x", b"null", b"\x00", b"\n", b"\xc3\xa9", b"\xff", b"[1]", b'"s":', b'\\"',
    b"\\u0061", b"\\n", b"\\ud800",
]  # fmt: skip


@st.composite
def mutants(draw: st.DrawFn, base: bytes) -> bytes:
    """Return a good record with a few bytes changed."""
    changed = bytearray(base)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(changed)))
        stop = draw(st.integers(at, min(at + 3, len(changed))))
        changed[at:stop] = draw(st.sampled_from(PATCHES))
    return bytes(changed)


@given(st.data(), st.sampled_from(GOOD), st.booleans())
@settings(max_examples=500, deadline=None)
def test_records_with_a_few_bytes_changed(data: st.DataObject, base: bytes, strict: bool) -> None:
    members = [name for name in json.loads(base) if name in KINDS]
    payloads = [base, *data.draw(st.lists(mutants(base), min_size=1, max_size=5))]
    check(payloads, fields_of(tuple(members)), strict)


@pytest.mark.parametrize("base", GOOD)
def test_good_batches_take_the_fast_way(base: bytes) -> None:
    fields = fields_of(tuple(name for name in json.loads(base) if name in KINDS))
    payloads = pa.array([base] * 3, pa.binary())
    sure = read_template(payloads, fields, False)
    assert sure.rows is None
    same(
        Decoded(sure.columns, None), decode_exactly(payloads, fields, record_reader(fields, False))
    )
    assert all(column.null_count == 0 for column in sure.columns)


@pytest.mark.parametrize("name", KINDS)
def test_every_value_for_every_type(name: str) -> None:
    texts = [*NUMBERS, *map(json.dumps, STRINGS), *OTHERS]
    for text in texts:
        good = f'{{"{name}": {text}}}'.encode()
        check([good, good], fields_of((name,)), False)
        check([b'{"s": "x", "%b": 1}' % name.encode(), good], fields_of(tuple({name, "s"})), False)


@pytest.mark.parametrize("odd", [*ODD, *ODD[::-1]])
def test_odd_payloads_do_not_disturb_their_neighbours(odd: bytes) -> None:
    good = b'{"i8": 5, "s": "x"}'
    check([good, odd, good, odd, odd, good], fields_of(("i8", "s")), False)


@pytest.mark.parametrize("split", range(1, 22))
def test_records_cut_in_two_are_not_put_together(split: int) -> None:
    whole = b'{"i8": 5, "a": [1, 2]}'
    check([whole[:split], whole[split:], whole + whole, whole], fields_of(("i8", "a")), False)
