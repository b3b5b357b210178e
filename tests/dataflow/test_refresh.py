"""Views that are refreshed by a schedule: against their query at the last refresh (P3).

At every millisecond, over random rows, schedules and ticks, with errors, below and above other
views; in memory and in parts. ``RECLOCK_SEED=n`` replays one failing case.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.loop_cluster import LoopCluster
from graphs.memory_graph import Changes, MemoryGraph, planned
from graphs.stored_graph import StoredGraph
from model.evaluate import evaluate
from model.evaluate_scalar import EvaluationError
from model.evaluator import PythonEvaluator
from reclock.arrangement.cache import process_cache
from reclock.arrangement.store import LocalStore
from reclock.arrangement.stream import concat
from reclock.dataflow.graph import collection_of, errors_of
from reclock.dataflow.operators import refresh, temporal
from reclock.dataflow.steps.refresh import UNREFRESHED
from reclock.dataflow.work import InProcess, Work
from reclock.ids import ObjectId
from reclock.spark import job as run
from reclock.sql.plan.relation import Get
from reclock.sql.plan.temporal import at_time
from reclock.time.refresh import Every, Schedule
from reclock.time.timestamp import INT64_MAX, Timestamp

if TYPE_CHECKING:
    from pathlib import Path

VIEW, ABOVE = ObjectId("u8"), ObjectId("u9")
SEED = os.environ.get("RECLOCK_SEED")
QUICK = [int(SEED)] if SEED else list(range(25))

everies = st.builds(Every, st.integers(1, 9), st.none() | st.integers(0, 60))


@settings(max_examples=40)
@given(
    st.lists(everies, max_size=2), st.lists(st.integers(0, 40), max_size=3), st.booleans(),
    st.integers(0, 30), st.lists(st.integers(0, 60) | st.just(INT64_MAX - 1), max_size=8),
)  # fmt: skip
def test_times_are_rounded_as_the_schedule_says(every, at, at_creation, created, times):
    schedule = Schedule(tuple(every), tuple(at), at_creation, created)
    made = refresh.round_up(schedule, np.array(times, np.int64)).tolist()
    expected = [schedule.round_up(t) for t in times]
    assert made == [temporal.FOREVER if due is None else int(due) for due in expected]


QUERIES = [
    "SELECT * FROM t",
    "SELECT s, count(*), sum(a) FROM t GROUP BY s",
    "SELECT a FROM t WHERE mz_now() < a + 6",
    "SELECT t.a, u.c FROM t JOIN u ON t.a = u.a",
    "SELECT a, 6 / b AS x FROM t",
    "SELECT s, sum(6 / b) FROM t GROUP BY s",
]


def random_schedule(random: Random) -> Schedule:
    every = (Every(random.randint(2, 7), random.choice([None, 0, 3])),) * random.choice([0, 1, 1])
    at = tuple(random.randint(2, 25) for _ in range(random.choice([0, 1, 2])))
    made = Schedule(every, at, random.random() < 0.5)
    return made if every or at else Schedule((Every(3),))


def above(view: ObjectId, plan) -> object:
    """Return the plan of a view that is all of another one."""
    return Get(view, str(view), plan.schema, plan.timeline.timeline, plan.unique_keys)


def check(seed: int, path: Path | None = None) -> None:
    random = Random(seed)
    text = random.choice(QUERIES)
    plan = planned(text)
    plans = {VIEW: plan, ABOVE: above(VIEW, plan)}
    changes, history = Changes(random), {}
    first = random.randint(1, 4)
    changes.draw(range(1, first + 1))
    schedule = random_schedule(random).begun(Timestamp(first))
    if schedule.first is None:
        return
    if path is None:
        engine = MemoryGraph(plans, PythonEvaluator(), {VIEW: schedule})
    else:
        cluster = LoopCluster(PythonEvaluator())
        engine = StoredGraph(plans, cluster, LocalStore(path), {VIEW: schedule})
    engine.hydrate(changes.tables, first)
    history.update(changes.history)
    time = first + 1
    for _ in range(8):
        span = range(time, time + random.choice([1, 1, 3, 5]))
        logs = {} if random.random() < 0.3 else changes.draw(span)
        for at in span:
            history[at] = changes.history.get(at, history[at - 1])
        engine.tick(logs, span)
        time = span[-1] + 1
    for at in range(first, time):
        past = [t for t in range(first, at + 1) if schedule.round_up(t) == t]
        said = f"RECLOCK_SEED={seed}, time {at}, {schedule}: {text}"
        for item in (VIEW, ABOVE):
            rows, errors = engine.rows_at(item, at), engine.errors_at(item, at)
            if not past:
                assert [code for code, _ in errors] == [UNREFRESHED], said
                assert not rows, said
                continue
            try:
                expected, failed = evaluate(at_time(plan, past[-1]), history[past[-1]]), None
            except EvaluationError as error:
                expected, failed = rows, (error.code, str(error))
            assert rows == expected, said
            assert (failed in errors) if failed else not errors, said


@pytest.mark.parametrize("seed", QUICK)
def test_a_view_is_its_query_at_the_last_refresh(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 500))
def test_more_views_are_their_query_at_the_last_refresh(seed):
    check(seed)


@pytest.mark.parametrize("seed", QUICK[:6])
def test_a_view_is_its_query_at_the_last_refresh_in_parts(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "PART_ROWS", 6)
    check(seed, tmp_path)


@pytest.mark.parametrize("at", [3, 5])
@pytest.mark.parametrize("query", ["SELECT a, 6 / b AS x FROM t", "SELECT sum(6 / b) FROM t"])
def test_a_first_load_in_parts_is_that_in_one(tmp_path, at, query):
    """With errors of the query, and the one that says that the first refresh is to come."""
    plans = {VIEW: planned(query)}
    cluster = LoopCluster(PythonEvaluator())
    schedule = Schedule(at=(at,), created=3)
    engine = StoredGraph(plans, cluster, LocalStore(tmp_path), {VIEW: schedule})
    rows = {"t": Counter({(n, n % 3, "x"): 1 for n in range(20)})}
    engine.hydrate(rows, 3)
    shards = engine._shards(4)
    pending = engine.graph.delayed.values()
    state = engine.graph.state_of(VIEW) - {collection_of(i) for i in engine.graph.tables}
    new = frozenset({*pending, *state})
    traces = {name: shard for name, shard in shards.items() if name not in new}
    work = Work.load(engine.graph, new, traces, Timestamp(3))
    one = InProcess(PythonEvaluator()).run(work)
    parts = run.Job(cluster, engine.store).run(work)
    assert (errors_of(VIEW) in one) == (errors_of(VIEW) in parts)
    for name in new:
        layout = engine.graph.arrangements[name].keying.layout
        runs = [process_cache().open(engine.store, ref, layout) for ref in parts.get(name, ())]
        batches = [batch for run in runs for batch in run]
        found = Counter(map(repr, concat(batches).to_pylist())) if batches else Counter()
        expected = Counter(map(repr, one[name].to_pylist())) if name in one else Counter()
        assert found == expected, name


def test_errors_wait_for_the_refresh_and_go_with_one():
    engine = MemoryGraph(
        {VIEW: planned("SELECT 6 / b FROM t")},
        PythonEvaluator(),
        {VIEW: Schedule((Every(10, 0),), created=0)},
    )
    engine.hydrate({}, 0)
    engine.tick({"t": [((1, 0, "x"), 1, 1)]}, range(1, 5))
    engine.tick({"t": [((1, 0, "x"), 12, -1)]}, range(5, 15))
    engine.tick({}, range(15, 30))
    told = [bool(engine.errors_at(VIEW, at)) for at in (1, 9, 10, 12, 19, 20)]
    assert told == [False, False, True, True, True, False]


def test_nothing_is_kept_after_the_last_refresh():
    engine = MemoryGraph(
        {VIEW: planned("SELECT a FROM t")}, PythonEvaluator(), {VIEW: Schedule(at=(5,), created=1)}
    )
    engine.hydrate({}, 1)
    engine.tick({"t": [((1, 0, "x"), 4, 1), ((2, 0, "x"), 6, 1)]}, range(2, 10))
    before = dict(engine.state)
    assert engine.rows_at(VIEW, 9) == Counter({(1,): 1})
    engine.tick({"t": [((3, 0, "x"), 11, 1)]}, range(10, 12))
    (pending,) = engine.graph.waiting.values()
    assert engine.state.get(pending) is before.get(pending)
    assert engine.rows_at(VIEW, 11) == Counter({(1,): 1})
