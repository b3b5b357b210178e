"""Values on the wire: psycopg, which nobody here wrote, reads what is written."""

from __future__ import annotations

import json
import math
import struct
from datetime import timedelta
from decimal import Decimal
from typing import Any

import psycopg.adapt
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from psycopg.pq import Format

from reclock.dataflow.types import arrow_type
from reclock.dataflow.values import from_python, to_python
from reclock.errors import Error, InvalidValue
from reclock.interval import Interval
from reclock.server.codec import binary, oid, text
from reclock.sql import types as t
from strategies.values import kinds, values_of

SIMPLE = [
    t.BOOLEAN, t.SMALLINT, t.INTEGER, t.BIGINT, t.REAL, t.DOUBLE, t.TEXT, t.BYTEA, t.DATE,
    t.TIMESTAMP, t.TIMESTAMPTZ, t.INTERVAL, t.JSON, t.Numeric(12, 2), t.Numeric(38, 9),
]  # fmt: skip
EVERY = [*SIMPLE, *(t.Array(kind) for kind in SIMPLE)]
FORMATS = {0: lambda v, k: text.write(v, k).encode(), 1: binary.write}


def loaded(data: bytes, kind: t.Type, form: int) -> Any:
    """Return what psycopg makes of bytes."""
    loader = psycopg.adapt.Transformer().get_loader(oid.oid_of(kind), Format(form))
    return loader.load(data)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(b, Interval):  # a month has 30 days there, and a year 365
        years, months = divmod(abs(b.months), 12)
        days = (365 * years + 30 * months) * (1 if b.months >= 0 else -1) + b.days
        b = timedelta(days=days, microseconds=b.microseconds)
    if isinstance(a, float):
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-44) or (math.isnan(a) and math.isnan(b))
    return bool(a == b)


def values(kind: t.Type) -> st.SearchStrategy[Any]:
    """Draw values as Arrow has them, that psycopg can have too."""
    if kind in {t.INTERVAL, t.Array(t.INTERVAL)}:
        number = st.integers(-1_000, 1_000)
        made = st.builds(Interval, number, number, st.integers(-(10**15), 10**15))
        return made if kind == t.INTERVAL else st.lists(st.none() | made, max_size=3)
    return values_of(kind)


@pytest.mark.parametrize("form", [0, 1])
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_psycopg_reads_what_is_written(form: int, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(EVERY))
    column = from_python([data.draw(values(kind))], kind)
    (expected,), (raw,) = to_python(column, kind), column.to_pylist()
    assert same(loaded(FORMATS[form](raw, kind), kind, form), expected)


@pytest.mark.parametrize("form", [0, 1])
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_what_is_written_is_read(form: int, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(EVERY))
    (raw,) = from_python([data.draw(values_of(kind))], kind).to_pylist()
    assume("\\x00" not in repr(raw) or "bytea" in str(kind))  # no text of a client has a NUL
    found = (
        binary.read(binary.write(raw, kind), kind)
        if form
        else text.read(text.write(raw, kind), kind)
    )
    (back,) = from_python([found], kind).to_pylist()
    assert same(back, raw)


@settings(max_examples=50)
@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=4)
    | st.builds(
        lambda n, e: Decimal(n).scaleb(e), st.integers(-(10**9), 10**9), st.integers(-40, 40)
    )
    | st.just(Decimal("NaN"))
)
def test_numerics_keep_their_scale(value: Decimal) -> None:
    found = binary.read(binary.write(value, t.Numeric()), t.Numeric())
    if value.is_nan():
        assert found.is_nan()
        return
    assert found == value
    assert -found.as_tuple().exponent == max(-int(value.as_tuple().exponent), 0)


@settings(max_examples=200)
@given(
    st.sampled_from(EVERY),
    st.binary(max_size=24),
)
def test_random_bytes_are_a_value_or_refused(kind: t.Type, data: bytes) -> None:
    try:
        binary.read(data, kind)
    except Error as error:
        assert error.code in {"22P03", "0A000", "22021", "22003"}  # noqa: PT017 - or no error at all


@settings(max_examples=200)
@given(st.sampled_from(EVERY), st.text('{}",\\ a1.:-', max_size=12))
def test_random_texts_are_a_value_or_refused(kind: t.Type, given_text: str) -> None:
    try:
        text.read(given_text, kind)
    except Error as error:
        assert error.code[:2] in {"22", "0A"}  # noqa: PT017 - or no error at all


@pytest.mark.parametrize(
    ("given_text", "kind", "value"),
    [
        ('{"a,b",NULL,"NULL","x\\"y",z}', t.Array(t.TEXT), ("a,b", None, "NULL", 'x"y', "z")),
        ("{{1,2},NULL,{3,NULL}}", t.Array(t.Array(t.BIGINT)), ((1, 2), None, (3, None))),
        ("{}", t.Array(t.BIGINT), ()),
        ("NaN", t.DOUBLE, math.nan),
        ("\\x00ff", t.BYTEA, b"\x00\xff"),
    ],
)  # fmt: skip
def test_texts_are_read_as_postgresql_does(given_text: str, kind: t.Type, value: Any) -> None:
    assert same(text.read(given_text, kind), value)


def test_a_number_of_many_digits_is_refused() -> None:
    with pytest.raises(InvalidValue) as caught:
        binary.read(struct.pack("!HhHHH", 1, 32_767, 0, 0, 9_999), t.Numeric())
    assert caught.value.code == "22003"


@pytest.mark.parametrize("given_text", ["2026-01-31garbage", "2026-01-31 25:00", "2026-02-30"])
def test_what_follows_a_date_is_a_time(given_text: str) -> None:
    assert str(text.read("2026-01-31 12:00", t.DATE)) == "2026-01-31"
    with pytest.raises(Error) as caught:
        text.read(given_text, t.DATE)
    assert caught.value.code == "22P02"


def test_nested_arrays_have_more_dimensions() -> None:
    kind = t.Array(t.Array(t.BIGINT))
    assert loaded(binary.write([[1, 2], [3, None]], kind), kind, 1) == [[1, 2], [3, None]]
    assert loaded(binary.write([[], []], kind), kind, 1) == []
    with pytest.raises(InvalidValue, match="matching dimensions"):
        binary.write([[1], [2, 3]], kind)


def test_records() -> None:
    kind = t.Record((("a", t.BIGINT), ("b", t.TEXT), ("c", t.TEXT)))
    value = {"a": 7, "b": "x,y", "c": None}
    assert text.write(value, kind) == '(7,"x,y",)'
    assert loaded(binary.write(value, kind), kind, 1) == (7, "x,y", None)


@settings(max_examples=30)
@given(kinds())
def test_every_type_has_an_oid_and_a_column(kind: t.Type) -> None:
    assert oid.oid_of(kind) > 0
    assert isinstance(arrow_type(kind), pa.DataType)


def test_an_interval_is_three_numbers_on_the_wire() -> None:
    raw = {"months": 14, "days": -3, "micros": 4_000_000}
    assert binary.write(raw, t.INTERVAL) == struct.pack("!qii", 4_000_000, -3, 14)
    assert binary.read(binary.write(raw, t.INTERVAL), t.INTERVAL) == Interval(14, -3, 4_000_000)
    assert text.write(raw, t.INTERVAL) == "1 year 2 mons -3 days +00:00:04"


def test_json_stays_as_it_is() -> None:
    assert json.loads(text.write('{"a": 1}', t.JSON)) == {"a": 1}
