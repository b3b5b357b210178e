"""Whole plans, kept incrementally, against the reference evaluator at every time (P3).

Random queries over random changes: cancelling diffs, NULLs, duplicates, empty ticks, many
times in one tick; views created before, between and after the changes. Scalars are
evaluated in Python, so a plan costs a moment; the same with Spark is in
test_spark_maintain.py. ``RECLOCK_SEED=n`` replays one failing case.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from graphs.memory_graph import Changes, MemoryGraph, planned
from model.evaluate import evaluate
from model.evaluate_scalar import EvaluationError
from model.evaluator import PythonEvaluator
from reclock.ids import ObjectId
from strategies.queries import random_query

VIEW = ObjectId("u9")
SEED = os.environ.get("RECLOCK_SEED")
QUICK = [int(SEED)] if SEED else list(range(40))
MORE = [int(SEED)] if SEED else list(range(40, 600))


def check(seed: int) -> None:
    random = Random(seed)
    text = random_query(random)
    plan = planned(text)
    engine = MemoryGraph({VIEW: plan}, PythonEvaluator())
    changes = Changes(random)
    time, first, created = 1, 0, random.randrange(4)
    for tick in range(7):
        times = range(time, time + random.choice([1, 1, 3]))
        logs = changes.draw(times)
        if tick == created:
            first = times[-1]
            engine.hydrate(changes.tables, first)
        elif tick > created:
            engine.tick(logs, times)
        time = times[-1] + 1
    for at, then in changes.history.items():
        if at < first:
            continue
        said = f"RECLOCK_SEED={seed}, time {at}: {text}"
        try:
            expected, failed = evaluate(plan, then), None
        except EvaluationError as error:
            expected, failed = Counter(), error.code
        codes = {row[0] for row, n in engine.errors_at(VIEW, at).items() if n > 0}
        assert failed in codes if failed else not codes, said
        assert failed or engine.rows_at(VIEW, at) == expected, said


@pytest.mark.parametrize("seed", QUICK)
def test_random_plans_are_right_at_every_time(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", MORE)
def test_more_random_plans_are_right_at_every_time(seed: int) -> None:
    check(seed)


def test_errors_are_retracted_with_their_rows() -> None:
    engine = MemoryGraph({VIEW: planned("SELECT a, 10 / b FROM t")}, PythonEvaluator())
    row, zero = (1, 2, "x"), (1, 0, "x")
    engine.tick({"t": [(row, 1, 1), (zero, 1, 1)]}, range(1, 2), hydrating=True)
    assert engine.errors_at(VIEW, 1) == Counter({("22012", "division by zero"): 1})
    engine.tick({"t": [(zero, 2, -1)]}, range(2, 3))
    assert engine.errors_at(VIEW, 2) == Counter()
    assert engine.rows_at(VIEW, 2) == Counter({(1, 5): 1})


def test_several_times_in_one_tick_are_the_same_as_one_tick_each() -> None:
    plan = planned("SELECT a, count(*), sum(b), max(s) FROM t GROUP BY a")
    changes = Changes(Random(5))
    together, apart = (MemoryGraph({VIEW: plan}, PythonEvaluator()) for _ in range(2))
    for engine in (together, apart):
        engine.hydrate({}, 0)
    logs = changes.draw(range(1, 9))
    together.tick(logs, range(1, 9))
    for at in range(1, 9):
        one = {name: [u for u in log if u[1] == at] for name, log in logs.items()}
        apart.tick(one, range(at, at + 1))
    for at in range(9):
        assert together.rows_at(VIEW, at) == apart.rows_at(VIEW, at)


def test_equal_parts_of_views_are_computed_and_arranged_once() -> None:
    one = planned("SELECT t.a, count(*) FROM t JOIN u ON t.a = u.a GROUP BY t.a")
    two = planned("SELECT t.a, sum(u.c) FROM t JOIN u ON t.a = u.a GROUP BY t.a")
    alone = MemoryGraph({VIEW: two}, PythonEvaluator()).graph
    both = MemoryGraph({ObjectId("u8"): one, VIEW: two}, PythonEvaluator()).graph
    joins = [step for step in both.steps if type(step).__name__ == "Join"]
    assert len(joins) <= 2
    shared = both.state_of(VIEW) & both.state_of(ObjectId("u8"))
    assert shared, "the join's inputs are arranged for both"
    assert set(alone.arrangements) <= set(both.arrangements), "names depend on contents only"


def test_all_expressions_of_a_level_are_one_wave_however_many_views() -> None:
    plans = {
        ObjectId(f"u{10 + i}"): planned(f"SELECT upper(s), a, b FROM t WHERE b > {i}")
        for i in range(20)
    }
    evaluator = PythonEvaluator()
    engine = MemoryGraph(plans, evaluator)
    engine.hydrate({}, 0)
    evaluator.waves = 0
    engine.tick({"t": [((1, 2, "x"), 1, 1)]}, range(1, 2))
    assert evaluator.waves == 1


def test_a_quiet_tick_asks_nothing_and_appends_nothing() -> None:
    evaluator = PythonEvaluator()
    engine = MemoryGraph({VIEW: planned("SELECT a + 1, count(*) FROM t GROUP BY 1")}, evaluator)
    engine.hydrate({}, 0)
    before, evaluator.waves = dict(engine.state), 0
    engine.tick({}, range(1, 5))
    assert evaluator.waves == 0
    assert engine.state == before


def test_columns_that_move_and_constants_need_no_evaluator() -> None:
    evaluator = PythonEvaluator()
    text = "SELECT t.b, 7, NULL::text, 'x', u.c FROM t LEFT JOIN u ON t.a = u.a"
    engine = MemoryGraph({VIEW: planned(text)}, evaluator)
    engine.hydrate({}, 0)
    evaluator.waves = 0
    engine.tick({"t": [((1, 2, "x"), 1, 1), ((3, 4, "y"), 1, 2)]}, range(1, 2))
    assert engine.rows_at(VIEW, 1) == Counter(
        {(2, 7, None, "x", None): 1, (4, 7, None, "x", None): 2}
    )
    assert evaluator.waves == 0
