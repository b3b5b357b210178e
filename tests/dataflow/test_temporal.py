"""Temporal filters: the operator against the model, whole plans against batch SQL (P3).

At every millisecond, whether something changed there or not: cancelling diffs, NULL bounds,
duplicates, idle ticks, many times in one tick; below aggregates, joins, set operations and other
temporal filters; in memory and in parts. ``RECLOCK_SEED=n`` replays one failing case.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.loop_cluster import LoopCluster
from graphs.deltas import delta_of, log_of
from graphs.memory_graph import TABLES, Changes, MemoryGraph, planned, written
from graphs.stored_graph import StoredGraph
from model.consolidate import consolidate
from model.evaluate import evaluate
from model.evaluate_scalar import EvaluationError
from model.evaluator import PythonEvaluator
from model.temporal import Validity, temporal_filter
from reclock.arrangement.store import LocalStore
from reclock.change.update import Update
from reclock.dataflow import maintain
from reclock.dataflow.evaluate import Evaluated
from reclock.dataflow.graph import collection_of
from reclock.dataflow.keying import Keying
from reclock.dataflow.operators import temporal
from reclock.ids import ObjectId
from reclock.spark import job as run
from reclock.sql.plan.scalar import ColumnRef
from reclock.sql.plan.temporal import at_time
from reclock.time.timestamp import INT64_MAX, Timestamp

if TYPE_CHECKING:
    from pathlib import Path

VIEW, OTHER = ObjectId("u9"), ObjectId("u8")
SEED = os.environ.get("RECLOCK_SEED")
QUICK = [int(SEED)] if SEED else list(range(60))
MORE = [int(SEED)] if SEED else list(range(60, 600))

# The operator alone.

TYPES = (pa.int64(), pa.int64(), pa.int64())
times = st.integers(0, 12)
bounds = st.none() | st.integers(-2, 15) | st.sampled_from([INT64_MAX - 1, INT64_MAX])
rows = st.tuples(st.integers(0, 1), bounds, bounds)
logs = st.lists(st.tuples(rows, times, st.sampled_from([-2, -1, 1, 1, 2])), max_size=8)


def limits(column: pa.Array, *, after: bool = False) -> list[temporal.Limit]:
    return [temporal.Limit(column, after)]


def operated(log, cuts: list[int], until: int = INT64_MAX) -> tuple[list, int]:
    """Run the operator over ticks that end at ``cuts``, its pending updates kept in a list."""
    keying, out, dropped = Keying(TYPES, ()), [], 0
    pending: list[pa.RecordBatch] = []
    lower = 0
    for upper in cuts:
        here = [Update(r, Timestamp(t), d) for r, t, d in log if lower <= t < upper]
        delta = delta_of(TYPES, here)
        due = [b.filter(pa.array(_within(b, lower, upper))) for b in pending]
        out += log_of(temporal.come_due([b for b in due if b.num_rows], keying))
        span = temporal.span(
            np.ones(delta.num_rows, np.bool_), limits(delta.column(1)), limits(delta.column(2)),
            delta.num_rows,
        )  # fmt: skip
        made = temporal.split(delta, [span], keying, upper, until)
        out += log_of(made.now)
        assert all(lower <= u.time < upper for u in out[-made.now.num_rows :] if made.now.num_rows)
        pending.append(made.pending)
        dropped += made.dropped
        lower = upper
    return consolidate(out), dropped


def _within(batch: pa.RecordBatch, lower: int, upper: int) -> np.ndarray:
    kh = batch.column(0).to_numpy()
    return (kh >= lower) & (kh < upper)


def validity(row: tuple) -> Validity | None:
    return None if None in row[1:] else Validity(row[1], row[2])


@given(logs, st.lists(st.integers(1, 19), max_size=4), st.sampled_from([INT64_MAX, 7, 3]))
def test_the_operator_agrees_with_the_model(log, cuts, until):
    end = 20
    made, _ = operated(log, [*sorted(set(cuts)), end], until)
    last = Timestamp(min(until, end))
    expected = temporal_filter([Update(r, Timestamp(t), d) for r, t, d in log], validity, last)
    assert [u for u in made if u.time < last] == expected
    assert all(u.time < until for u in made)


def test_what_is_due_beyond_until_is_counted_and_not_kept():
    log = [((1, 0, 30), 2, 1), ((1, 0, 4), 2, 1), ((1, 15, 30), 2, 1)]
    made, dropped = operated(log, [20], until=10)
    assert dropped == 3  # two ends, and one beginning
    assert [(u.time, u.diff) for u in made] == [(2, 1), (2, 1), (4, -1)]


def test_a_bound_without_a_next_millisecond_is_found():
    column = pa.array([1, None, INT64_MAX])
    assert temporal.overflows(limits(column), 3).tolist() == [False] * 3
    assert temporal.overflows(limits(column, after=True), 3).tolist() == [False, False, True]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4), times)
def test_overlapping_spans_are_one(spans, time):
    delta = delta_of((), [Update((), Timestamp(time), 3)])
    given_spans = [temporal.Times(np.array([a]), np.array([b])) for a, b in spans]
    made = temporal.split(delta, given_spans, Keying((), ()), upper=50)
    there = Counter()
    for update in log_of(made.now):
        there[update.time] += update.diff
    for at in range(time, 15):
        shown = sum(n for t, n in there.items() if t <= at)
        assert shown == (3 if any(a <= at < b for a, b in spans) else 0)
    assert all(t >= time for t in there)


# Whole plans.

CONDITIONS = [
    "mz_now() <= a", "mz_now() < a + 4", "a <= mz_now()", "mz_now() > b + 1", "mz_now() = a * 3",
    "mz_now() BETWEEN a AND b + 8", "mz_now() NOT BETWEEN a AND b + 2",
    "mz_now() >= a AND mz_now() < a + 5 AND b > 0",
    "(mz_now() < a OR mz_now() >= b + 4)", "(mz_now() < a + 2 OR b = 1)",
    "(s = 'x' AND mz_now() < a + 6 OR s = 'y' AND mz_now() BETWEEN 3 AND 9)",
    "NOT (mz_now() < a + 2 AND mz_now() > b)", "mz_now() <= 7", "mz_now() < NULL",
    "mz_now() >= NULLIF(a, 2)",
]  # fmt: skip
QUERIES = [
    "SELECT * FROM t WHERE {0}",
    "SELECT a, b + 1 AS c, s || 'z' AS d FROM t WHERE {0}",
    "SELECT s, count(*), sum(a), min(b) FROM t WHERE {0} GROUP BY s",
    "SELECT count(*), max(a) FROM t WHERE {0}",
    "SELECT s, string_agg(s, ',') FROM t WHERE {0} GROUP BY s",
    "SELECT t.a, t.s, u.c FROM t JOIN u ON t.a = u.a WHERE {0}",
    "SELECT t.a, u.c FROM t JOIN u ON t.a = u.a AND mz_now() < t.b + u.c",
    "SELECT t.a, u.c FROM t LEFT JOIN u ON t.a = u.a AND mz_now() >= u.c + 1",
    "SELECT DISTINCT a FROM t WHERE {0}",
    "SELECT a FROM t WHERE {0} EXCEPT ALL SELECT a FROM u WHERE mz_now() > c + 3",
    "SELECT a, s FROM t WHERE {0} UNION ALL SELECT c, NULL FROM u WHERE mz_now() < c + 5",
    "SELECT s, max(b) FROM t WHERE {0} GROUP BY s HAVING mz_now() < max(b) + 6",
    "SELECT a, s FROM (SELECT a, b, s FROM t WHERE {0}) x WHERE mz_now() > b + 1",
    "SELECT a, row_number() OVER (PARTITION BY s ORDER BY a, b) FROM t WHERE {0}",
    "SELECT a, b, s FROM t WHERE {0} ORDER BY b, a, s LIMIT 2",
    "SELECT a FROM t WHERE {0} AND EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND mz_now() > u.c)",
    "SELECT a, (SELECT max(c) FROM u WHERE u.a = t.a AND mz_now() > c) FROM t WHERE {0}",
    "SELECT x FROM (VALUES (3), (5), (NULL)) v (x) WHERE mz_now() < x + 4",
]  # fmt: skip


def random_text(random: Random) -> str:
    text = random.choice(QUERIES)
    condition = random.choice(CONDITIONS)
    if " u " in text:  # the columns of t by its name
        for name in "abs":
            condition = _qualified(condition, name)
    return text.format(condition)


def _qualified(text: str, name: str) -> str:
    words = text.replace("(", "( ").replace(")", " )").replace(",", " ,").split()
    return " ".join(f"t.{w}" if w == name else w for w in words)


def check(seed: int, path: Path | None = None) -> None:
    random = Random(seed)
    texts = random_text(random), random_text(random)
    plans = {item: planned(text) for item, text in zip((VIEW, OTHER), texts, strict=True)}
    engine = MemoryGraph(plans, PythonEvaluator())
    if path is not None:
        engine = StoredGraph(plans, LoopCluster(PythonEvaluator()), LocalStore(path))
    changes = Changes(random)
    time, first, tables = 1, 0, {}
    for tick in range(9):
        span = range(time, time + random.choice([1, 1, 3, 5]))
        idle = tick > 1 and random.random() < 0.4
        logs_ = {} if idle else changes.draw(span)
        known = {name: Counter(rows) for name, rows in changes.tables.items()}
        for at in span:
            tables[at] = known if idle else changes.history[at]
        if tick == 0:
            first = span[-1]
            engine.hydrate(changes.tables, first)
        else:
            engine.tick(logs_, span)
        time = span[-1] + 1
    for item, text in zip((VIEW, OTHER), texts, strict=True):
        for at in range(first, time):
            said = f"RECLOCK_SEED={seed}, time {at}: {text}"
            expected = evaluate(at_time(plans[item], at), tables[at])
            assert engine.rows_at(item, at) == expected, said
            assert not engine.errors_at(item, at), said


@pytest.mark.parametrize("seed", QUICK)
def test_random_temporal_plans_are_right_at_every_time(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", MORE)
def test_more_random_temporal_plans_are_right_at_every_time(seed):
    check(seed)


@pytest.mark.parametrize("seed", QUICK[:8])
def test_random_temporal_plans_are_right_where_arranged_rows_are_shared(seed, monkeypatch):
    monkeypatch.setattr(maintain, "SHARED_ROWS", 1)
    check(seed)


class Columns(PythonEvaluator):
    """Gives columns as they are, like the evaluator of Spark."""

    def evaluate(self, requests):
        return [
            Evaluated(
                tuple(
                    request.rows.column(scalar.index) if isinstance(scalar, ColumnRef) else value
                    for scalar, value in zip(request.scalars, answer.values, strict=True)
                ),
                answer.errors,
            )
            for request, answer in zip(requests, super().evaluate(requests), strict=True)
        ]


def test_the_rows_of_a_view_that_are_those_of_its_table_are_arranged_once(monkeypatch):
    monkeypatch.setattr(maintain, "SHARED_ROWS", 1)
    engine = engine_of("SELECT * FROM t WHERE mz_now() < a")
    engine.evaluator = Columns()
    log = [((100 + n, n, "x"), 1, 1) for n in range(5)]
    table = TABLES["t"].id
    tick = maintain.Tick(engine.graph, written({"t": log}), engine.state, range(1, 2))
    made = tick.run(engine.evaluator)
    assert made[collection_of(VIEW)] is made[collection_of(table)]
    partly = written({"t": [*log, ((0, 0, "x"), 1, 1)]})  # one is over before it begins
    made = maintain.Tick(engine.graph, partly, engine.state, range(1, 2)).run(engine.evaluator)
    assert made[collection_of(VIEW)].num_rows == 5
    assert made[collection_of(table)].num_rows == 6


def test_what_is_arranged_keeps_its_place_in_memory(monkeypatch):
    """Rows that are gone must not be taken for others that lie where they lay."""
    monkeypatch.setattr(maintain, "SHARED_ROWS", 1)
    tick = maintain.Tick(engine_of("SELECT a FROM t").graph, {}, {}, range(1, 2))
    delta = written({"t": [((n, 0, "x"), 1, 1) for n in range(20)]})[TABLES["t"].id]
    tick._add({}, collection_of(TABLES["t"].id), delta)
    assert [kept for kept, _ in tick._shared.values()] == [delta]


@pytest.mark.parametrize("seed", QUICK[:15])
def test_random_temporal_plans_are_right_in_parts(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "PART_ROWS", 6)
    check(seed, tmp_path)


def engine_of(text: str) -> MemoryGraph:
    engine = MemoryGraph({VIEW: planned(text)}, PythonEvaluator())
    engine.hydrate({}, 0)
    return engine


def test_a_retraction_cancels_both_pending_updates_however_far_ahead():
    engine = engine_of("SELECT a FROM t WHERE mz_now() BETWEEN a AND b")
    engine.tick({"t": [((1_000, 2_000, "x"), 1, 1)]}, range(1, 2))
    engine.tick({"t": [((1_000, 2_000, "x"), 2, -1)]}, range(2, 3))
    engine.tick({}, range(3, 5_000))
    assert not any(engine.rows_at(VIEW, at) for at in (2, 1_000, 1_500, 2_001, 4_999))


def test_an_idle_tick_without_anything_due_asks_for_nothing():
    engine = engine_of("SELECT a + 1 FROM t WHERE mz_now() <= b")
    engine.tick({"t": [((1, 50, "x"), 1, 1)]}, range(1, 2))
    waves = engine.evaluator.waves
    before = dict(engine.state)
    engine.tick({}, range(2, 40))
    assert engine.state == before
    assert engine.evaluator.waves == waves
    engine.tick({}, range(40, 60))
    assert engine.rows_at(VIEW, 50) == Counter({(2,): 1})
    assert engine.rows_at(VIEW, 51) == Counter()


def test_an_error_above_a_temporal_filter_lasts_while_its_row_does():
    engine = engine_of("SELECT 10 / b FROM t WHERE mz_now() BETWEEN a AND a + 2")
    engine.tick({"t": [((5, 0, "x"), 1, 1), ((5, 2, "x"), 1, 1)]}, range(1, 10))
    assert not engine.errors_at(VIEW, 4)
    assert set(engine.errors_at(VIEW, 5)) == {("22012", "division by zero")}
    assert engine.rows_at(VIEW, 7) == Counter({(5,): 1})
    assert not engine.errors_at(VIEW, 8)


@pytest.mark.parametrize("bound", ["9223372036854775807", "10 / b", "a + 9223372036854775807"])
def test_a_bound_that_overflows_is_an_error_row_until_its_row_goes(bound):
    engine = engine_of(f"SELECT a FROM t WHERE b = 0 AND mz_now() <= {bound}")
    engine.tick({"t": [((5, 0, "x"), 1, 1), ((5, None, "x"), 1, 1)]}, range(1, 3))
    assert sum(engine.errors_at(VIEW, 2).values()) == 1
    engine.tick({"t": [((5, 0, "x"), 3, -1)]}, range(3, 4))
    assert not engine.errors_at(VIEW, 3)
    assert not engine.rows_at(VIEW, 3)


def test_a_filter_before_a_bound_keeps_its_error_away():
    with pytest.raises(EvaluationError):
        evaluate(at_time(planned("SELECT a FROM t WHERE mz_now() < 10 / b"), 1), ROWS)
    engine = engine_of("SELECT a FROM t WHERE b <> 0 AND mz_now() < 10 / b")
    engine.tick({"t": [((1, 0, "x"), 1, 1)]}, range(1, 2))
    assert not engine.errors_at(VIEW, 1)


ROWS = {"t": Counter({(1, 0, "x"): 1})}


def test_only_the_batches_that_reach_into_a_tick_are_touched(tmp_path, monkeypatch):
    """Pending updates of many rows: an idle tick reads no batch, a due one those of its time."""
    from reclock.arrangement.run import Run  # noqa: PLC0415 - what is counted

    engine = StoredGraph(
        {VIEW: planned("SELECT a FROM t WHERE mz_now() < a")},
        LoopCluster(PythonEvaluator()),
        LocalStore(tmp_path),
    )
    engine.hydrate({"t": Counter({(at, 0, "x"): 1 for at in range(1_000, 9_000)})}, 1)
    (pending,) = engine.graph.waiting.values()
    touched: list[int] = []
    batch = Run.batch
    monkeypatch.setattr(Run, "batch", lambda run, at: touched.append(at) or batch(run, at))
    shard = engine._shards(2)[pending]
    assert shard.rows == 8_000
    assert not temporal.is_due(shard, 2, 999)
    assert not touched
    due = list(shard.within(5_000, 5_004))
    assert sum(b.num_rows for b in due) == 5
    assert len(set(touched)) == 1
