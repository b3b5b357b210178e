"""Comparisons and connectives without Spark mean what they mean in plain Python, and in Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.evaluator import PythonEvaluator
from reclock.dataflow import delta as deltas
from reclock.dataflow.evaluate import RowRequest
from reclock.dataflow.local import evaluated, is_local
from reclock.dataflow.values import from_python
from reclock.spark.evaluator import SparkEvaluator
from reclock.spark.exchange import Exchange
from reclock.sql import types as t
from reclock.sql.plan.coerce import read_literal
from reclock.sql.plan.functions import find_function
from reclock.sql.plan.scalar import NULL, And, Call, Case, Cast, ColumnRef, Literal, Or
from strategies.values import values_of

from ...functions.edges import EDGES  # noqa: TID252 - tests are no package

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
KINDS = (
    t.BOOLEAN, t.SMALLINT, t.INTEGER, t.BIGINT, t.Numeric(12, 2), t.Numeric(38, 9), t.DATE,
    t.TIMESTAMP, t.TIMESTAMPTZ, t.TEXT,
)  # fmt: skip


def call(name, *arguments):
    return Call(find_function(name, tuple(a.type for a in arguments)), arguments, t.BOOLEAN)


def rows_of(columns, kinds):
    size = len(columns[0])
    made = [from_python(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    return deltas.build(made, np.zeros(size, np.int64), np.ones(size, np.int64))


@st.composite
def cases(draw):
    kind = draw(st.sampled_from(KINDS))
    value = st.none() | values_of(kind)
    size = draw(st.integers(0, 5))
    columns = [draw(st.lists(value, min_size=size, max_size=size)) for _ in range(2)]

    def operand():
        if draw(st.booleans()):
            return ColumnRef(draw(st.integers(0, 1)), kind)
        return Literal(draw(value), kind)

    def predicate(depth):
        match draw(st.integers(0, 5 if depth else 1)):
            case 0:
                return call(draw(st.sampled_from(COMPARISONS)), operand(), operand())
            case 1:
                return call("is null", operand())
            case 2:
                return call(draw(st.sampled_from(["not", "is true", "is false"])), predicate(0))
            case 3:
                return And((predicate(depth - 1), predicate(depth - 1)))
            case 4:
                return Or((predicate(depth - 1), predicate(0), predicate(0)))
            case _:
                return call("=", predicate(0), predicate(0))

    return rows_of(columns, [kind, kind]), (predicate(2), operand())


@pytest.mark.parametrize("size", [0, 2])
@pytest.mark.parametrize("kind", list(EDGES), ids=str)
def test_constants_of_every_type_stand_in_any_number_of_rows(kind, size):
    values = (None, *(read_literal(text, kind) for text in EDGES[kind]))
    constants = [Literal(value, kind) for value in values]
    rows = rows_of([[True] * size], [t.BOOLEAN])
    chosen = [Case(((ColumnRef(0, t.BOOLEAN), c),), constants[0]) for c in constants]
    for found in (evaluated(constants, rows), evaluated(chosen, rows)):
        for constant, column in zip(constants, found.values, strict=True):
            wanted = from_python([constant.value] * size, kind)
            assert column.type == wanted.type
            assert repr(column.to_pylist()) == repr(wanted.to_pylist())


def test_constants_alone_give_what_they_give_with_columns():
    moment = Literal(datetime(2024, 3, 1, 0, 20), t.TIMESTAMP)  # noqa: DTZ001
    for name, literal in (("date_bin", "15 minutes"), ("+", "1 day")):
        others = (moment,) * (2 if name == "date_bin" else 1)
        arguments = (Literal(read_literal(literal, t.INTERVAL), t.INTERVAL), *others)
        overload = find_function(name, tuple(a.type for a in arguments))
        columns = (arguments[0], *(ColumnRef(i, t.TIMESTAMP) for i in range(len(others))))
        rows = rows_of([[moment.value] * 2] * len(others), [t.TIMESTAMP] * len(others))
        calls = [Call(overload, given, t.TIMESTAMP) for given in (arguments, columns)]
        made, wanted = evaluated(calls, rows).values
        assert made.equals(wanted)
        assert made.null_count == 0


@given(cases())
def test_values_are_those_of_the_model(case):
    rows, scalars = case
    assert all(map(is_local, scalars))
    (wanted,) = PythonEvaluator().evaluate([RowRequest(0, rows, scalars)])
    found = evaluated(scalars, rows)
    assert [v.to_pylist() for v in found.values] == [v.to_pylist() for v in wanted.values]
    assert [v.type for v in found.values] == [v.type for v in wanted.values]
    assert found.errors == (None, None)


def test_what_spark_must_do_is_not_local():
    whole, text = ColumnRef(0, t.BIGINT), ColumnRef(0, t.TEXT)
    upper = find_function("upper", (t.TEXT,))
    assert not is_local(Call(upper, (text,), t.TEXT)), "alphabets differ between libraries"
    assert not is_local(Cast(text, t.BIGINT)), "texts are read by Spark"
    assert not is_local(Or((call("is null", Cast(text, t.DATE)), call("is null", whole))))
    assert not is_local(call("=", ColumnRef(0, t.Array(t.TEXT)), ColumnRef(1, t.Array(t.TEXT))))
    assert is_local(call("is null", ColumnRef(0, t.Array(t.TEXT))))
    assert is_local(call("is null", NULL))


VALUES = {
    t.BOOLEAN: [False, True, None],
    t.SMALLINT: [-1, 0, 2**15 - 1, None],
    t.BIGINT: [-(2**63), -1, 0, 2**63 - 1, None],
    t.Numeric(12, 2): [Decimal("-0.01"), Decimal("0.00"), Decimal("500.00"), None],
    t.DATE: [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31), None],
    t.TIMESTAMP: [datetime(1582, 10, 10), datetime(2026, 1, 1, 0, 0, 0, 1), None],  # noqa: DTZ001 - has no zone
    t.TIMESTAMPTZ: [datetime(1900, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC), None],
    t.TEXT: ["", "a", "a ", "A", "é", "z", "\U0001f600", "\uffff", "a\0", None],
}


@pytest.mark.spark
def test_spark_compares_alike(spark):
    exchange = Exchange(spark.session)
    evaluator = SparkEvaluator(exchange)
    requests = []
    for number, (kind, values) in enumerate(VALUES.items()):
        pairs = [(a, b) for a in values for b in values]
        rows = rows_of([[a for a, _ in pairs], [b for _, b in pairs]], [kind, kind])
        one, other = ColumnRef(0, kind), ColumnRef(1, kind)
        less = call("<", one, other)
        scalars = (
            *(call(name, one, other) for name in COMPARISONS),
            call(">=", one, Literal(values[1], kind)),
            And((less, call("is null", one))),
            Or((less, call("not", call("is true", less)), call("is false", less))),
        )
        requests.append(RowRequest(number, rows, scalars))
    for request, wanted in zip(requests, evaluator.evaluate(requests), strict=True):
        found = evaluated(request.scalars, request.rows)
        for scalar, value, expected in zip(
            request.scalars, found.values, wanted.values, strict=True
        ):
            assert value.to_pylist() == expected.to_pylist(), str(scalar)
    exchange.close()
