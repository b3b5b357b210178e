"""Every SQL type through Arrow, Spark and back: nothing is lost."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.dataflow.types import (
    arrow_type,
    arrow_types,
    stored_ddl,
)
from reclock.dataflow.values import from_python
from reclock.spark.exchange import Exchange
from reclock.sql import types as t
from reclock.sql.schema import Column, Schema
from strategies.values import values_of

KINDS = (
    t.BOOLEAN, *t.INTEGERS, *t.FLOATS, t.TEXT, t.BYTEA, *t.DATETIMES, t.INTERVAL, t.JSON,
    t.Numeric(38, 9), t.Numeric(5, 5), t.Numeric(1, 0), t.Array(t.INTERVAL),
    t.Array(t.Array(t.TEXT)),
    t.Array(t.TIMESTAMPTZ), t.Record((("a", t.INTERVAL), ("b c", t.Array(t.Numeric(12, 2))))),
    t.Array(t.Record((("x y", t.TIMESTAMP), ("n", t.Array(t.INTERVAL))))),
)  # fmt: skip


def test_a_schema_has_the_types_of_its_columns():
    schema = Schema((Column("a", t.INTEGER), Column("a", t.TEXT)))
    assert arrow_types(schema) == (pa.int32(), pa.string())
    assert stored_ddl(["c0"], [t.Array(t.INTEGER)]) == "`c0` ARRAY<INT>"


def draw(kind):
    """Return values that try the limits of a type, and NULL."""
    values = []

    @given(st.lists(values_of(kind), min_size=1, max_size=20))
    def collect(some):
        values.extend(some)

    collect()
    return [None, *values]


@pytest.mark.spark
def test_every_type_survives_spark(spark):
    columns = [draw(kind)[:200] for kind in KINDS]
    size = max(map(len, columns))
    arrays = [
        from_python([*c, *([None] * (size - len(c)))], kind)
        for c, kind in zip(columns, KINDS, strict=True)
    ]
    names = [f"c{i}" for i in range(len(KINDS))]
    table = pa.Table.from_arrays(arrays, names=names)

    def hand_on(batches):
        yield from batches

    session = spark.session
    frame = session.createDataFrame(table)
    # Into expressions of the plan's types, then through a task.
    typed = [f"CAST({n} AS {k.spark_name}) AS {n}" for n, k in zip(names, KINDS, strict=True)]
    there = frame.selectExpr(*typed)
    back = there.mapInArrow(hand_on, stored_ddl(names, KINDS)).toArrow()
    for kind, before, after in zip(KINDS, table.columns, back.columns, strict=True):
        assert after.type == arrow_type(kind), kind
        assert repr(after.to_pylist()) == repr(before.to_pylist()), kind
    exchange = Exchange(session)  # whose first question goes another way than the others
    answers = [exchange.run("", table, lambda rows: rows.selectExpr(*typed)) for _ in range(2)]
    exchange.close()
    for answer in answers:
        assert answer.schema.types == answers[0].schema.types
        assert repr(answer.to_pylist()) == repr(table.to_pylist())
