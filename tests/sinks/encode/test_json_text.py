"""What a sink writes as JSON, a source reads back: the same values of every type."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.format.decoder import Field
from reclock.connectors.format.json_decoder import JsonDecoder
from reclock.dataflow.types import arrow_type
from reclock.dataflow.values import from_python
from reclock.errors import InvalidDefinition
from reclock.sinks.encode.encoder import Which
from reclock.sinks.encode.json_format import JsonFormat
from reclock.sinks.encode.json_text import texts
from reclock.sql import types as t
from reclock.sql.schema import Column
from strategies.values import kinds, values_of


def fields_of(kinds: list[t.Type]) -> list[Field]:
    return [Field(f"f{i}", kind, arrow_type(kind)) for i, kind in enumerate(kinds)]


def same(a: Any, b: Any, kind: t.Type) -> bool:
    """Whether two values are one, with NaN as itself and a json null as NULL."""
    if kind == t.JSON and "null" in (a, b):
        return {a, b} <= {None, "null"}
    if a is None or b is None:
        return a is b
    match kind:
        case t.Array():
            return len(a) == len(b) and all(
                same(x, y, kind.element) for x, y in zip(a, b, strict=True)
            )
        case t.Record():
            return all(same(a[n], b[n], inside) for n, inside in kind.fields)
    if kind in t.FLOATS:
        return np.array_equal([a], [b], equal_nan=True)
    return a == b


@st.composite
def columns(draw: st.DrawFn) -> tuple[list[t.Type], list[pa.Array]]:
    found = draw(st.lists(kinds(), min_size=1, max_size=3))
    size = draw(st.integers(0, 6))
    made = [
        from_python(draw(st.lists(st.none() | values_of(kind), min_size=size, max_size=size)), kind)
        for kind in found
    ]
    start = draw(st.integers(0, size))
    return found, [column.slice(start) for column in made]


@given(columns())
def test_a_source_reads_back_what_a_sink_writes(
    given: tuple[list[t.Type], list[pa.Array]],
) -> None:
    kinds, written = given
    described = tuple(Column(f"f{i}", kind) for i, kind in enumerate(kinds))
    payloads = JsonFormat(described).rows(written)
    assert payloads.null_count == 0
    decoded = JsonDecoder(tuple(fields_of(kinds)), strict=True).decode(payloads)
    assert decoded.faults is None
    for kind, before, after in zip(kinds, written, decoded.columns, strict=True):
        pairs = zip(before.to_pylist(), after.to_pylist(), strict=True)
        assert all(same(a, b, kind) for a, b in pairs)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (t.BOOLEAN, True, "true"),
        (t.BIGINT, -(2**63), "-9223372036854775808"),
        (t.Numeric(12, 2), Decimal("12.50"), "12.50"),
        (t.Numeric(38, 9), Decimal(0), "0.000000000"),
        (t.Numeric(38, 9), Decimal("-1E-9"), "-0.000000001"),
        (t.DOUBLE, 0.1, "0.1"),
        (t.DOUBLE, 1.0, "1.0"),
        (t.DOUBLE, float("nan"), '"NaN"'),
        (t.DOUBLE, float("-inf"), '"-Infinity"'),
        (t.REAL, float("inf"), '"Infinity"'),
        (t.TEXT, 'Größe "x"\\\n\x00🙂', '"Größe \\"x\\"\\\\\\n\\u0000🙂"'),
        (t.TEXT, "", '""'),
        (t.BYTEA, b"\x00\xff", '"AP8="'),
        (t.DATE, 0, '"1970-01-01"'),
        (t.TIMESTAMP, 1, '"1970-01-01T00:00:00.000001"'),
        (t.TIMESTAMPTZ, 1, '"1970-01-01T00:00:00.000001Z"'),
        (t.INTERVAL, {"days": 0, "micros": -1, "months": 0}, '"-00:00:00.000001"'),
        (
            t.INTERVAL,
            {"days": -3, "micros": 1, "months": 14},
            '"1 year 2 mons -3 days +00:00:00.000001"',
        ),
        (t.JSON, '{"a": [1, 2.50]}', '{"a": [1, 2.50]}'),
        (t.Array(t.TEXT), ["a", None], '["a",null]'),
        (t.Array(t.TEXT), [], "[]"),
        (t.Record((("x", t.INTEGER), ("y", t.TEXT))), {"x": 1, "y": None}, '{"x":1,"y":null}'),
        (t.UNKNOWN, None, "null"),
    ],
)
def test_the_text_of_each_type(kind: t.Type, value: Any, text: str) -> None:
    column = pa.array([None, value, None], arrow_type(kind)).slice(1, 1)
    assert texts(column, kind).to_list() == [text]


def test_a_moment_among_null_ones() -> None:
    column = pa.array([None, 0, None], pa.timestamp("us"))
    assert texts(column, t.TIMESTAMP).to_list() == ["null", '"1970-01-01T00:00:00.000000"', "null"]


def test_reals_that_their_double_would_miss() -> None:
    numbers = np.arange(1, 1 << 22, 97, dtype=np.uint32).view(np.float32)
    column = pa.array(
        np.concatenate([numbers, np.float32(1) / (numbers + 1), [np.nan]]).astype(np.float32)
    )
    back = [json.loads(text) for text in texts(column, t.REAL).to_list()]
    assert np.array_equal(
        np.array(back, np.float64).astype(np.float32), column.to_numpy(), equal_nan=True
    )


def test_changes_have_both_sides() -> None:
    made = JsonFormat((Column("id", t.BIGINT), Column("s", t.TEXT)), (0,))
    old = [pa.array([1, None, 3]), pa.array(["a", None, "c"])]
    new = [pa.array([1, 2, None]), pa.array(["b", None, None])]
    which = Which(np.array([True, False, True]), np.array([True, True, False]))
    assert [json.loads(v) for v in made.changes(old, new, which).to_pylist()] == [
        {"before": {"id": 1, "s": "a"}, "after": {"id": 1, "s": "b"}},
        {"before": None, "after": {"id": 2, "s": None}},
        {"before": {"id": 3, "s": "c"}, "after": None},
    ]
    assert made.keys(new[:1]).to_pylist()[0] == b'{"id":1}'


def test_names_are_escaped_and_told_apart() -> None:
    made = JsonFormat((Column('a"b', t.BIGINT),))
    assert made.rows([pa.array([1])]).to_pylist() == [b'{"a\\"b":1}']
    with pytest.raises(InvalidDefinition):
        JsonFormat((Column("a", t.BIGINT), Column("a", t.TEXT)))
