"""Ticks in parts give what ticks in the driver give: every view, at every time (P3).

The random plans and changes of test_maintain.py, on a cluster that is a loop, with an evaluator
in Python, and a few on Spark; whole databases on Spark: test_job.py. ``RECLOCK_SEED=n`` replays
one failing case.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from engines.loop_cluster import LoopCluster
from graphs.memory_graph import Changes, MemoryGraph, planned
from graphs.stored_graph import StoredGraph
from model.evaluate import evaluate
from model.evaluate_scalar import EvaluationError
from model.evaluator import PythonEvaluator
from reclock.arrangement.store import LocalStore
from reclock.ids import ObjectId
from reclock.spark import job as run
from reclock.spark.job import Chains, SparkCluster
from strategies.queries import random_query

VIEW, OTHER = ObjectId("u9"), ObjectId("u8")
SEED = os.environ.get("RECLOCK_SEED")
QUICK = [int(SEED)] if SEED else list(range(12))
SOME = [int(SEED)] if SEED else list(range(2))
MORE = [int(SEED)] if SEED else list(range(12, 400))


def check(seed: int, path, cluster=None, *, twice=False) -> None:
    random = Random(seed)
    texts = random_query(random), random_query(random)
    plans = {item: planned(text) for item, text in zip((VIEW, OTHER), texts, strict=True)}
    cluster = cluster or LoopCluster(PythonEvaluator(), twice=twice)
    engine = StoredGraph(plans, cluster, LocalStore(path))
    alone = MemoryGraph(plans, PythonEvaluator())
    changes = Changes(random)
    time, first = 1, 0
    for tick in range(6):
        times = range(time, time + random.choice([1, 1, 3]))
        logs = changes.draw(times)
        if tick == 0:
            first = times[-1]
        for graph in (alone, engine):
            if tick == 0:
                graph.hydrate(changes.tables, first)
            else:
                graph.tick(logs, times)
        time = times[-1] + 1
    for item, text in zip((VIEW, OTHER), texts, strict=True):
        for at, then in changes.history.items():
            if at < first:
                continue
            said = f"RECLOCK_SEED={seed}, time {at}: {text}"
            try:
                expected, failed = evaluate(plans[item], then), None
            except EvaluationError as error:
                expected, failed = Counter(), error.code
            codes = {row[0] for row, n in engine.errors_at(item, at).items() if n > 0}
            assert failed in codes if failed else not codes, said
            assert failed or engine.rows_at(item, at) == expected, said
            assert engine.errors_at(item, at) == alone.errors_at(item, at), said
            assert engine.rows_at(item, at) == alone.rows_at(item, at), said
    left = {run.segment for runs in engine.runs.values() for run in runs} - {None}
    assert set(engine.store.names()) == left, said


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(run, "PART_ROWS", 6)


@pytest.mark.parametrize("seed", QUICK)
def test_random_plans_are_right_at_every_time(seed, tmp_path):
    check(seed, tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_parts_that_run_twice_leave_the_same_files_and_messages(seed, tmp_path):
    check(seed, tmp_path, twice=True)


def test_few_rows_of_many_bytes_are_many_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "PART_ROWS", 1_000_000)
    monkeypatch.setattr(run, "PART_BYTES", 40)
    counts, parts_for = [], run.parts_for

    def noted(rows, size, parallelism):
        counts.append(parts_for(rows, size, parallelism).count)
        return parts_for(rows, size, parallelism)

    monkeypatch.setattr(run, "parts_for", noted)
    check(1, tmp_path)
    assert max(counts) > LoopCluster.parallelism, counts


@pytest.mark.spark
@pytest.mark.parametrize("seed", SOME)
def test_random_plans_are_right_in_spark(seed, tmp_path, spark, monkeypatch):
    monkeypatch.setattr(run, "PART_ROWS", 40)  # as a part is a task
    check(seed, tmp_path, SparkCluster(spark, Chains(spark)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", MORE)
def test_more_random_plans_are_right_at_every_time(seed, tmp_path):
    check(seed, tmp_path)
