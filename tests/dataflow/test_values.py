"""Python values in and out of Arrow: what psycopg takes and gives, and every refusal."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.dataflow.types import arrow_type
from reclock.dataflow.values import from_python, rows_of, to_python
from reclock.errors import Error
from reclock.sql import types as t
from strategies.values import kinds, values_of


def naive(*parts):
    return datetime(*parts)  # noqa: DTZ001 - a timestamp without time zone


SHOWN = {t.JSON: json.loads, t.REAL: lambda x: float(str(np.float32(x)))}


def expected(value, kind):
    """What psycopg would give for a value that was written as ``value``."""
    if value is None:
        return None
    if kind in SHOWN:
        return SHOWN[kind](value)
    if isinstance(kind, t.Array):
        return [expected(v, kind.element) for v in value]
    if isinstance(kind, t.Record):
        return tuple(expected(v, k) for v, (_, k) in zip(value, kind.fields, strict=True))
    return value


@given(st.data())
def test_values_come_back_as_psycopg_gives_them(data):
    kind = data.draw(kinds())
    values = data.draw(st.lists(st.none() | values_of(kind), max_size=5))
    column = from_python(values, kind)
    assert column.type == arrow_type(kind)
    # By their texts: NaN is not equal to itself, 0.0 and -0.0 are.
    read = repr(to_python(column, kind)).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.UTC")
    wanted = [expected(v, kind) for v in values]
    assert read == repr(wanted).replace("datetime.timezone.utc", "datetime.UTC")


@pytest.mark.parametrize(
    ("kind", "given_", "stored"),
    [
        (t.INTEGER, "7", 7),
        (t.INTEGER, np.int64(7), 7),
        (t.BIGINT, "-9223372036854775808", -(2**63)),
        (t.Numeric(5, 2), "2.345", Decimal("2.35")),
        (t.Numeric(5, 2), -2.345, Decimal("-2.35")),
        (t.Numeric(5, 2), 7, Decimal("7.00")),
        (t.Numeric(38, 0), 10**38 - 1, Decimal(10**38 - 1)),
        (t.DOUBLE, Decimal("0.5"), 0.5),
        (t.REAL, "1e38", 9.999999680285692e37),
        (t.BOOLEAN, "yes", True),
        (t.BYTEA, "\\x00ff", b"\x00\xff"),
        (t.BYTEA, memoryview(b"ab"), b"ab"),
        (t.DATE, naive(2024, 2, 29, 13), date(2024, 2, 29)),
        (t.TIMESTAMP, date(2024, 2, 29), naive(2024, 2, 29)),
        (
            t.TIMESTAMP,
            datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=2))),
            naive(2023, 12, 31, 22),
        ),
        (t.TIMESTAMPTZ, naive(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),
        (t.TIMESTAMPTZ, "2024-01-01 02:00:00+02", datetime(2024, 1, 1, tzinfo=UTC)),
        (t.INTERVAL, timedelta(days=1, seconds=1), {"days": 1, "micros": 1_000_000, "months": 0}),
        (t.INTERVAL, "1 year 2 months", {"days": 0, "micros": 0, "months": 14}),
        (t.JSON, {"a": [None]}, '{"a": [null]}'),
        (t.Array(t.INTEGER), "{1,NULL}", [1, None]),
        (t.Record((("a", t.INTEGER), ("b", t.TEXT))), {"a": "1"}, {"a": 1, "b": None}),
    ],
)
def test_a_value_is_read_as_the_type_wants_it(kind, given_, stored):
    assert from_python([given_, None], kind).to_pylist() == [stored, None]


@pytest.mark.parametrize(
    ("kind", "value", "code"),
    [
        (t.SMALLINT, 2**15, "22003"),
        (t.BIGINT, -(2**63) - 1, "22003"),
        (t.INTEGER, "x", "22P02"),
        (t.INTEGER, 1.5, "42804"),
        (t.INTEGER, True, "42804"),
        (t.Numeric(3, 1), "99.95", "22003"),
        (t.Numeric(3, 1), math.nan, "22003"),
        (t.Numeric(3, 1), Decimal("Infinity"), "22003"),
        (t.Numeric(3, 1), "ten", "22P02"),
        (t.Numeric(3, 1), b"1", "42804"),
        (t.REAL, 1e39, "22003"),
        (t.DOUBLE, 10**400, "22003"),
        (t.DOUBLE, False, "42804"),
        (t.TEXT, 7, "42804"),
        (t.TEXT, "\ud800", "22021"),
        (t.JSON, "{", "22P02"),
        (t.JSON, "NaN", "22P02"),
        (t.JSON, object(), "42804"),
        (t.BYTEA, 7, "42804"),
        (t.BOOLEAN, 1, "42804"),
        (t.DATE, 7, "42804"),
        (t.TIMESTAMP, 7, "42804"),
        (t.TIMESTAMPTZ, datetime.min.replace(tzinfo=timezone(timedelta(hours=2))), "22008"),
        (t.INTERVAL, 7, "42804"),
        (t.INTERVAL, "9999999999 years", "22015"),
        (t.INTERVAL, "1 parsec", "22007"),
        (t.Array(t.INTEGER), 7, "42804"),
        (t.Array(t.INTEGER), [[1]], "42804"),
        (t.Record((("a", t.INTEGER),)), (1, 2), "42804"),
        (t.UNKNOWN, 1, "42804"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_code(kind, value, code):
    with pytest.raises(Error) as raised:
        from_python([value], kind)
    assert raised.value.code == code


def test_a_time_beyond_python_is_an_error_not_a_wrong_time():
    far = pa.array([2**62], pa.timestamp("us"))
    with pytest.raises(Error, match="out of the range of Python") as raised:
        to_python(far, t.TIMESTAMP)
    assert raised.value.code == "22008"


def test_rows_are_tuples_also_without_columns():
    table = pa.table({"a": pa.array([1, None], pa.int32()), "b": ["1", None]})
    assert rows_of(table, [t.INTEGER, t.JSON]) == [(1, 1), (None, None)]
    assert rows_of(pa.table({}), []) == []
