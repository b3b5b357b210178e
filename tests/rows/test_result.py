"""Results as frames, and as somebody sees them in a notebook."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from reclock.errors import InvalidValue
from reclock.interval import Interval
from reclock.rows.result import Result
from reclock.sql import types as t
from reclock.sql.schema import Column, Schema

KINDS = {
    "b": (t.BOOLEAN, True),
    "i": (t.BIGINT, 7),
    "n": (t.Numeric(12, 2), Decimal("1.50")),
    "f": (t.DOUBLE, 0.1),
    "s": (t.TEXT, "x"),
    "y": (t.BYTEA, b"\x00"),
    "d": (t.DATE, dt.date(2026, 1, 2)),
    "ts": (t.TIMESTAMP, dt.datetime(2026, 1, 2, 3, 4, 5, 6)),  # noqa: DTZ001 - has none
    "iv": (t.INTERVAL, Interval(1, 2, 3)),
    "j": (t.JSON, {"a": [1, None]}),
    "a": (t.Array(t.BIGINT), [1, None]),
    "r": (t.Record((("x", t.BIGINT), ("y", t.TEXT))), (1, "z")),
}


def result(count=1):
    schema = Schema(tuple(Column(name, kind) for name, (kind, _) in KINDS.items()))
    row = tuple(value for _, value in KINDS.values())
    rows = [row] * count + [(None,) * len(row)]
    return Result("SELECT", schema.names, rows, 7, schema)


def test_frames_have_the_rows():
    frame = result().to_arrow()
    assert frame.column_names == list(KINDS)
    first, nulls = frame.to_pylist()
    assert first["n"] == Decimal("1.50")
    assert first["ts"] == KINDS["ts"][1]
    assert first["iv"] == {"months": 1, "days": 2, "micros": 3}
    assert first["a"] == [1, None]
    assert set(nulls.values()) == {None}
    assert frame.schema.field("n").type == pa.decimal128(12, 2)


def test_pandas_and_polars_have_the_same():
    columns = [name for name in KINDS if name not in ("j", "r", "iv")]
    arrow = result().to_arrow().select(columns)
    assert result().to_polars().select(columns).to_arrow().to_pylist() == arrow.to_pylist()
    frame = result().to_pandas()
    assert frame["i"][0] == 7
    assert frame["i"].isna().tolist() == [False, True]
    assert str(frame["i"].dtype) == "int64[pyarrow]"


def test_no_rows_is_a_frame_too():
    schema = Schema((Column("i", t.BIGINT),))
    assert Result("SELECT 0", ("i",), [], 7, schema).to_arrow().schema.field("i").type == pa.int64()


def test_a_statement_has_no_frame():
    with pytest.raises(InvalidValue, match="CREATE TABLE has no rows"):
        Result("CREATE TABLE").to_arrow()


def test_a_notebook_shows_a_table():
    schema = Schema((Column("a<b", t.TEXT),))
    html = Result("SELECT", ("a<b",), [("<x>",), (None,)], 12, schema)._repr_html_()
    assert "<th>a&lt;b</th>" in html
    assert "<td>&lt;x&gt;</td>" in html
    assert "<i>NULL</i>" in html
    assert "2 rows at 12" in html
    late = Result("SELECT", ("a<b",), [], 1795023922709, schema)._repr_html_()
    assert "0 rows at 1795023922709 (2026-11-18 17:45:22.709 UTC)" in late
    assert "the first 50 shown" in result(60)._repr_html_()
    assert Result("INSERT 0 1")._repr_html_() == "<p>INSERT 0 1</p>"


def test_print_shows_a_table():
    schema = Schema((Column("a", t.BIGINT), Column("b", t.TEXT)))
    shown = str(Result("SELECT 2", ("a", "b"), [(1, "x"), (12, None)], 1795023922709, schema))
    assert shown.split("\n") == [
        " a  | b",
        "----+---",
        "  1 | x",
        " 12 |",
        "(2 rows at 1795023922709 (2026-11-18 17:45:22.709 UTC))",
    ]
    assert str(Result("INSERT 0 1", timestamp=7)) == "INSERT 0 1 at 7"
    assert str(Result("CREATE TABLE")) == "CREATE TABLE"
    one = Schema(schema.columns[:1])
    many = str(Result("SELECT 60", ("a",), [(n,) for n in range(60)], 7, one))
    assert many.endswith("(60 rows, the first 50 shown at 7)")
    assert len(many.split("\n")) == 53
