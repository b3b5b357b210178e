"""The same as test_maintain.py with Spark computing expressions, groups and windows."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from graphs.memory_graph import Changes, MemoryGraph, planned
from model.evaluate import evaluate
from reclock.ids import ObjectId
from reclock.spark.evaluator import SparkEvaluator
from reclock.spark.exchange import Exchange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.spark.session import Spark

pytestmark = pytest.mark.spark

QUERIES = [
    "SELECT a + 1, b * 2, s || 'z' FROM t WHERE b > 0 AND s LIKE 'x%'",
    "SELECT a, array_agg(b), string_agg(s, ',') FROM t GROUP BY a",
    "SELECT array_agg(c) FROM u",
    "SELECT a, row_number() OVER (PARTITION BY a ORDER BY b, s) FROM t",
    "SELECT b, lag(b) OVER (ORDER BY a, b, s) FROM t",
    "SELECT t.a, count(DISTINCT t.b), max(u.c) FROM t LEFT JOIN u ON t.a = u.a GROUP BY t.a",
    "SELECT a, g FROM t, generate_series(1, b) AS g",
    "SELECT k, d FROM v WHERE d > (SELECT avg(c) FROM u WHERE u.a = v.k)",
    "SELECT s, sum(b) + count(*) FROM t GROUP BY s HAVING count(*) > 1",
]


@pytest.fixture
def evaluator(spark: Spark) -> Iterator[SparkEvaluator]:
    exchange = Exchange(spark.session)
    yield SparkEvaluator(exchange)
    exchange.close()


def test_views_computed_by_spark_are_right_at_every_time(evaluator: SparkEvaluator) -> None:
    plans = {ObjectId(f"u{20 + i}"): planned(text) for i, text in enumerate(QUERIES)}
    engine = MemoryGraph(plans, evaluator)
    changes = Changes(Random(11))
    changes.draw(range(1, 4))
    engine.hydrate(changes.tables, 3)
    time = 4
    for size in (1, 3, 1):
        times = range(time, time + size)
        engine.tick(changes.draw(times), times)
        time += size
    for (item, plan), text in zip(plans.items(), QUERIES, strict=True):
        for at in range(3, time):
            expected = evaluate(plan, changes.history[at])
            assert engine.rows_at(item, at) == expected, f"time {at}: {text}"


def test_errors_are_rows_and_never_a_failed_job(evaluator: SparkEvaluator) -> None:
    item = ObjectId("u30")
    engine = MemoryGraph({item: planned("SELECT 10 / b FROM t WHERE s <> 'y'")}, evaluator)
    engine.hydrate({}, 0)
    rows = [((1, 0, "x"), 1, 1), ((1, 0, "y"), 1, 1), ((1, 5, "x"), 1, 1)]
    engine.tick({"t": rows}, range(1, 2))
    assert engine.errors_at(item, 1) == {("22012", "division by zero"): 1}
    assert engine.rows_at(item, 1) == {(2,): 1}
    engine.tick({"t": [((1, 0, "x"), 2, -1)]}, range(2, 3))
    assert not engine.errors_at(item, 2)


def test_a_plan_is_made_once_and_sees_new_rows(evaluator: SparkEvaluator) -> None:
    item = ObjectId("u31")
    engine = MemoryGraph({item: planned("SELECT a + 1 FROM t WHERE b > 0")}, evaluator)
    engine.hydrate({}, 0)
    for at in range(1, 5):
        engine.tick({"t": [((at, 1, None), at, 1)]}, range(at, at + 1))
    assert engine.rows_at(item, 4) == {(n,): 1 for n in range(2, 6)}
