"""Aggregates that the reference evaluator does not know: PostgreSQL's answers, and limits."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from reclock.dataflow.values import from_python, to_python
from reclock.spark import aggregate_text as module
from reclock.spark.aggregate_text import aggregate_error, aggregate_text
from reclock.spark.columns import Columns
from reclock.sql.plan.functions import find_aggregate
from reclock.sql.plan.node import SortKey
from reclock.sql.plan.reduce import AggregateCall
from reclock.sql.types import BIGINT, DOUBLE, INTEGER, INTERVAL, TEXT, Array, Numeric

pytestmark = pytest.mark.spark

KINDS = (
    INTEGER,
    TEXT,
    Numeric(38, 0),
    Numeric(20, 15),
    DOUBLE,
    Array(INTEGER),
    BIGINT,
    DOUBLE,
    INTERVAL,
)
BIG = 10**38 - 1
ROWS = [
    (3, "x", BIG, "0.000000000000001", 1.0, [1, None], 2**62, 0.5, "1 day"),
    (None, "y", 1, "0.000000000000002", float("nan"), [1, 2], 2**62, 0.5, "2000000000 days"),
    (3, None, None, "0.000000000000002", 2.5, None, 2**62, 0.5, None),
    (1, "x", None, None, None, [], None, 0.5, "2000000000 days"),
]  # fmt: skip


def call(name, *arguments, distinct=False, order=()):
    kinds = tuple(KINDS[a] for a in arguments)
    found = find_aggregate(name, kinds)
    return AggregateCall(found, arguments, found.result_type(kinds), distinct, None, order)


CASES = [
    (call("array_agg", 0), [1, 3, 3, None], None),
    (call("array_agg", 0, order=(SortKey(0, True, True),)), [None, 3, 3, 1], None),
    (call("array_agg", 0, order=(SortKey(0, True, False),)), [3, 3, 1, None], None),
    (call("array_agg", 1, order=(SortKey(0), SortKey(1, True, True))), ["x", None, "x", "y"], None),
    (call("array_agg", 1, distinct=True), ["x", "y", None], None),
    (call("array_agg", 5, order=(SortKey(5),)), [[], [1, 2], [1, None], None], None),
    (call("string_agg", 1, 1), "xxxyy", None),
    (call("string_agg", 1, 1, distinct=True), "xyy", None),
    (call("sum", 2), None, "22003|numeric field overflow"),
    (call("sum", 6), Decimal(3 * 2**62), None),
    (call("sum", 8), None, "22008|interval out of range"),
    (call("sum", 0, distinct=True), 4, None),
    (call("avg", 0), Decimal("2.3333333333333333"), None),
    (call("avg", 2), None, "22003|numeric field overflow"),
    (call("avg", 3), Decimal("0.0000000000000017"), None),
    (call("percentile_cont", 7, 4), 2.5, None),
    (call("percentile_disc", 7, 0), 3, None),
    (call("mode", 0), 3, None),
    (call("any_row", 1), "x", None),
    (call("any_row", 1, order=(SortKey(0, True, True),)), "y", None),
    (call("bit_or", 0), 3, None),
]


def test_values_and_errors_are_postgresqls(spark):
    columns = Columns(tuple(f"c{i}" for i in range(len(KINDS))), KINDS)
    arrays = [from_python([r[i] for r in ROWS], kind) for i, kind in enumerate(KINDS)]
    table = pa.Table.from_arrays(arrays, names=list(columns.names))
    spark.session.createDataFrame(table).createOrReplaceTempView("aggregated")
    values = [f"{aggregate_text(c, columns)} AS v{i}" for i, (c, _, _) in enumerate(CASES)]
    errors = [
        f"{aggregate_error(c, columns) or 'CAST(NULL AS STRING)'} AS e{i}"
        for i, (c, _, _) in enumerate(CASES)
    ]
    text = f"SELECT {', '.join([*values, *errors])} FROM aggregated"
    full = spark.session.sql(text).toArrow()
    none = spark.session.sql(f"{text} WHERE c0 > 9").toArrow()
    for i, (of, value, error) in enumerate(CASES):
        assert to_python(full.column(f"v{i}"), of.type) == [value], of
        assert full.column(f"e{i}").to_pylist() == [error], of
        assert none.column(f"v{i}").to_pylist() == [None], of
        assert none.column(f"e{i}").to_pylist() == [None], of


def test_a_text_that_would_be_too_long_is_an_error_of_its_group(spark, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 5)
    columns = Columns(("c0", "c1"), (TEXT, TEXT))
    calls = [
        AggregateCall(find_aggregate("string_agg", (TEXT, TEXT)), (0, 1), TEXT, distinct, None, ())
        for distinct in (False, True)
    ]
    texts = [str(text(c, columns)) for c in calls for text in (aggregate_text, aggregate_error)]
    rows = "(VALUES ('x', '-'), ('x', '-'), ('y', NULL)) AS t (c0, c1)"
    found = spark.session.sql(f"SELECT {', '.join(texts)} FROM {rows}").first()
    assert list(found) == ["x-xy", None, "xy", None]
    found = spark.session.sql(f"SELECT {', '.join(texts)} FROM {rows}, (VALUES (1), (2))").first()
    assert list(found) == [None, "54000|requested length too large", "xy", None]
