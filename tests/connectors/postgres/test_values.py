"""Texts of PostgreSQL as columns: what fits is the value, what does not is a fault."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from reclock.connectors.format.decoder import Field
from reclock.connectors.postgres.values import from_arrow, from_texts
from reclock.dataflow.types import arrow_type
from reclock.sql import types as t


@pytest.mark.parametrize(
    ("kind", "texts", "values"),
    [
        (t.BIGINT, [b"1", None, b"-9223372036854775808"], [1, None, -(2**63)]),
        (t.BOOLEAN, [b"t", b"f", None], [True, False, None]),
        (t.TEXT, [b"", b"a\n", None], ["", "a\n", None]),
        (t.Numeric(10, 2), [b"1.50", b"-3.00"], [Decimal("1.50"), Decimal("-3.00")]),
        (t.BYTEA, [b"\\x00ff", b"\\x"], [b"\0\xff", b""]),
        (t.Array(t.INTEGER), [b"{1,NULL,2}", b"{}"], [[1, None, 2], []]),
        (t.JSON, [b'{"b": 1, "a": 2}'], ['{"a":2,"b":1}']),
    ],
)
def test_texts_are_values(kind, texts, values):
    faults: dict[int, str] = {}
    made = from_texts(texts, Field("c", kind, arrow_type(kind)), faults)
    if kind == t.JSON:
        assert made.to_pylist()[0].replace(" ", "") in {'{"a":2,"b":1}', '{"b":1,"a":2}'}
    else:
        assert made.to_pylist() == values
    assert faults == {}


def test_floats_that_are_no_numbers_are_values():
    faults: dict[int, str] = {}
    made = from_texts([b"NaN", b"Infinity", b"-Infinity", b"0.1"],
                      Field("c", t.DOUBLE, pa.float64()), faults).to_pylist()  # fmt: skip
    assert str(made) == "[nan, inf, -inf, 0.1]"
    assert faults == {}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (t.Numeric(), b"NaN"), (t.Numeric(), b"Infinity"), (t.Numeric(), b"0.1234567891"),
        (t.Numeric(), b"1" * 40), (t.DATE, b"infinity"), (t.DATE, b"0044-03-15 BC"),
        (t.TIMESTAMP, b"-infinity"), (t.TIMESTAMPTZ, b"10000-01-01 00:00:00+00"),
        (t.Array(t.INTEGER), b"{{1,2},{3,4}}"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_a_fault(kind, text):
    faults: dict[int, str] = {}
    field = Field("c", kind, arrow_type(kind))
    made = from_texts([None, text], field, faults, exact=True)
    assert made.to_pylist() == [None, None]
    assert list(faults) == [1]
    assert 'column "c"' in faults[1]


def test_times_in_binary_and_as_text_have_the_same_fault():
    field = Field("c", t.TIMESTAMPTZ, arrow_type(t.TIMESTAMPTZ))
    one: dict[int, str] = {}
    other: dict[int, str] = {}
    beyond = pa.array([0, 2**63 - 1, -(2**63), None], pa.int64()).cast(field.arrow)
    binary = from_arrow(beyond, field, one)
    texts = [b"1970-01-01 00:00:00+00", b"infinity", b"-infinity", None]
    assert binary.equals(from_texts(texts, field, other))
    assert one == other
    assert set(one) == {1, 2}
