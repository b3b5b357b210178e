"""Where work runs: the rule as a table, and what is measured."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from graphs.memory_graph import MemoryGraph, planned
from model.evaluator import PythonEvaluator
from reclock.dataflow.costs import FIRST_COST, LEAST_ROWS, READ, ROW_BYTES, Costs, weight
from reclock.dataflow.placement import (
    DRIVER_SECONDS,
    Execution,
    Place,
    Placement,
    place,
    reached_by,
)
from reclock.dataflow.work import Work
from reclock.ids import ObjectId
from reclock.sql.plan.relation import Get, walk
from reclock.time.timestamp import Timestamp

AUTO, DRIVER, SPARK = Execution.AUTO, Place.DRIVER, Place.SPARK

TABLE = [
    # seconds, the setting, where it ran before, Spark is up: where it runs
    (0.00, AUTO, DRIVER, True, DRIVER),
    (0.10, AUTO, DRIVER, True, DRIVER),
    (0.11, AUTO, DRIVER, True, SPARK),
    (0.11, AUTO, SPARK, True, SPARK),
    (0.06, AUTO, SPARK, True, SPARK),
    (0.06, AUTO, DRIVER, True, DRIVER),
    (0.05, AUTO, SPARK, True, DRIVER),
    (60.0, AUTO, DRIVER, True, SPARK),
    (1.00, AUTO, DRIVER, False, DRIVER),
    (1.00, AUTO, SPARK, False, DRIVER),
    (2.00, AUTO, DRIVER, False, DRIVER),
    (2.10, AUTO, DRIVER, False, SPARK),
    (60.0, Execution.DRIVER, SPARK, True, DRIVER),
    (0.00, Execution.SPARK, DRIVER, False, SPARK),
]


@pytest.mark.parametrize(("seconds", "execution", "before", "is_up", "expected"), TABLE)
def test_the_rule(seconds, execution, before, is_up, expected):
    assert place(seconds, execution=execution, before=before, is_up=is_up) is expected


def test_costs_follow_what_was_measured():
    costs = Costs()
    assert costs.of([("Join", 1), ("Accumulate", 3)]) == pytest.approx(4 * FIRST_COST)
    for _ in range(50):
        costs.note("Join", 1_000, 0.004)
    assert costs.of([("Join", 1)]) == pytest.approx(4e-6, rel=0.01)
    costs.note("Join", LEAST_ROWS - 1, 10.0)
    assert costs.of([("Join", 1)]) == pytest.approx(4e-6, rel=0.01)


def test_reading_costs_what_was_measured_by_rows_or_by_bytes():
    costs = Costs()
    few, many = costs.of([(READ, weight(60_000, 0))]), costs.of([(READ, weight(60_000, 6 * 10**9))])
    assert place(few) is DRIVER
    assert place(many) is SPARK
    for _ in range(50):
        costs.note(READ, weight(1_000, 1_000 * ROW_BYTES * 10), 1_000 * 10 * 4e-6)
    assert costs.of([(READ, weight(10_000, 0))]) == pytest.approx(10_000 * 4e-6, rel=0.01)
    for _ in range(200):
        costs.fade([READ])
    assert costs.of([(READ, weight(60_000, 0))]) == pytest.approx(few)


def test_few_changes_of_many_bytes_are_spark_s():
    graph = MemoryGraph(
        {ObjectId("u9"): planned("SELECT a, count(*) FROM t GROUP BY a")}, PythonEvaluator()
    ).graph
    (item,) = (i.item for i in walk(planned("SELECT a FROM t")) if isinstance(i, Get))
    short, long = (
        Work(graph, Timestamp(1), Timestamp(2), {item: Some(1_000, size)})
        for size in (1_000 * 50, 1_000 * 100_000)
    )
    assert Placement().choose(short, "tick", is_up=True) is DRIVER
    assert Placement().choose(long, "tick", is_up=True) is SPARK


def test_the_outlook_follows_what_was_measured():
    plan = planned("SELECT a, count(*) FROM t GROUP BY a")
    graph = MemoryGraph({ObjectId("u9"): plan}, PythonEvaluator()).graph
    (item,) = graph.tables.keys() & {i.item for i in walk(plan) if isinstance(i, Get)}
    placement = Placement()
    before = placement.outlook(graph, [item])
    assert before.rows == pytest.approx(
        DRIVER_SECONDS / FIRST_COST / len(reached_by(graph, {item: 1})), rel=0.05
    )
    for _ in range(50):
        for operator, _ in reached_by(graph, {item: 1}):
            placement.costs.note(operator, 10_000, 10_000 * FIRST_COST * 2)
    after = placement.outlook(graph, [item])
    assert after.rows == pytest.approx(before.rows / 2, rel=0.05)
    assert after.stages == before.stages > 1


def test_tables_cost_what_reaches_their_own_operators():
    plans = {
        ObjectId("u8"): planned("SELECT a, count(*) FROM t GROUP BY a"),
        ObjectId("u9"): planned("SELECT c, count(*) FROM u GROUP BY c"),
    }
    graph = MemoryGraph(plans, PythonEvaluator()).graph
    one, other = (i.item for plan in plans.values() for i in walk(plan) if isinstance(i, Get))
    whole = Costs().of(reached_by(graph, {one: 1_000, other: 1_000}))
    alone = Costs().of(reached_by(graph, {one: 1_000}))
    assert whole == pytest.approx(2 * alone)


def test_what_was_measured_once_is_not_believed_for_ever():
    graph = MemoryGraph(
        {ObjectId("u9"): planned("SELECT a, count(*) FROM t GROUP BY a")}, PythonEvaluator()
    ).graph
    (item,) = (i.item for i in walk(planned("SELECT a FROM t")) if isinstance(i, Get))
    changes = {item: Some(4_000)}
    work = Work(graph, Timestamp(1), Timestamp(2), changes)
    placement = Placement()
    for operator, _ in reached_by(graph, {item: 1}):
        placement.costs.note(operator, 1_000, 0.5)  # cold
    jobs = 0
    while placement.choose(work, "tick", is_up=True) is SPARK:
        placement.fade(work)
        jobs += 1
    assert 0 < jobs < 60
    many = Work(graph, Timestamp(1), Timestamp(2), {item: Some(4_000_000)})
    for _ in range(200):
        placement.fade(many)
    assert placement.choose(many, "tick", is_up=True) is SPARK


@dataclass(frozen=True)
class Some:
    """So many changes, of so many bytes."""

    rows: int
    bytes: int = 0
