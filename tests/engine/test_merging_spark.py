"""Merges as Spark jobs of a whole database: the same rows at every time as merges in the driver."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

import reclock
from reclock import ManualClock
from reclock.arrangement import merge as rules
from reclock.dataflow.merge import _Task
from reclock.engine import merging
from reclock.errors import Interrupted
from reclock.spark.tasks import SparkTasks

pytestmark = pytest.mark.spark

VIEWS = {
    "v": "SELECT k % 3 AS m, count(*) AS n, sum(x) AS s FROM t GROUP BY k % 3",
    "w": "SELECT id, x FROM t WHERE mz_now() < x",
}


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    """Few runs are many, and few rows are a part."""
    monkeypatch.setattr(merging, "FEW_RUNS", 2)
    monkeypatch.setattr(rules, "PART_ROWS", 40)


@pytest.fixture
def titles(monkeypatch):
    """Return the titles of the jobs that merged, and how many tasks they had."""
    found = []
    run = SparkTasks.run

    def noted(tasks, task, items):
        found.append((tasks.title, len(items)))
        return run(tasks, task, items)

    monkeypatch.setattr(SparkTasks, "run", noted)
    return found


def histories(path, execution):
    """Return every arrangement at every time, as it was read after each tick."""
    clock, found = ManualClock(1_000), []
    with reclock.open(path, clock=clock, background=False) as db:
        db.execute("ALTER SYSTEM SET execution = 'driver'")
        db.execute("ALTER SYSTEM SET logical_compaction_window = '3s'")
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, k INT, x BIGINT)")
        for name, query in VIEWS.items():
            db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        db.execute(f"ALTER SYSTEM SET execution = '{execution}'")
        for n in range(6):
            clock.advance(1_000)
            rows = [(n * 100 + i, i % 7, 4_000 + 100 * i) for i in range(60)]
            db.insert("t", rows)
            db.execute("DELETE FROM t WHERE id % 5 = $1 AND id < $2", (n % 5, n * 90))
            db.tick()
            db._core.merger.wait()
            found.append(at_every_time(db))
        assert db.check() == []
        db._core.collect_garbage()
        waiting = {
            call.stem for calls in db._core.merger._running.values() for call in calls.values()
        }
        left = set(db._core.segments.names()) - db._core.world.named_segments()
        assert {name.rpartition("-")[0] for name in left} <= waiting
    return found


def at_every_time(db):
    (state,) = db._core.world.timelines.values()
    found = {}
    for name in ("t", "v", "w"):
        since = int(state.sinces[db._core.world.catalog.find((name,)).id].element())
        for at in {*range(since, int(state.upper), 500), since, int(state.upper) - 1}:
            found[name, at] = Counter(db.execute(f"SELECT * FROM {name} AS OF {at}").rows)
    return found


def test_a_database_has_the_same_rows_at_every_time(tmp_path, titles):
    expected = histories(tmp_path / "driver", "driver")
    assert titles == []
    assert histories(tmp_path / "spark", "spark") == expected
    assert len(titles) > 1
    assert any(tasks > 2 for _, tasks in titles)
    assert all(title.startswith("merge · ") for title, _ in titles)


def test_closing_does_not_wait_for_a_job(tmp_path, monkeypatch):
    marks = tmp_path / "marks"
    marks.mkdir()
    monkeypatch.setattr("reclock.dataflow.merge._Task", lambda store, stem: Slow(store, marks))
    clock = ManualClock(1_000)
    db = reclock.open(tmp_path / "state", clock=clock, background=False)
    db.execute("CREATE TABLE t (id INT)")
    db.insert("t", [(1,)])
    db.tick()
    db.execute("ALTER SYSTEM SET execution = 'spark'")
    clock.advance(1_000)
    db.insert("t", [(2,)])
    db.tick()
    calls = [c for calls in db._core.merger._running.values() for c in calls.values()]
    end = time.monotonic() + 60
    while not list(marks.iterdir()):
        assert time.monotonic() < end, "no task has begun"
        time.sleep(0.05)
    closing = threading.Thread(target=db.close, daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive()
    assert all(isinstance(call.future.exception(0), Interrupted) for call in calls)


class Slow:
    """A merge that would take minutes."""

    def __init__(self, store, marks):
        self.store, self.marks = store, marks

    def __call__(self, load):
        (self.marks / load[0].name).touch()
        time.sleep(300)
        return "[]"


class Once:
    """A merge whose first attempt is lost after its file is there."""

    def __init__(self, store, stem, marks):
        self.task, self.marks = _Task(store, stem), marks

    def __call__(self, load):
        made = self.task(load)
        mark = self.marks / f"{load[0].name}"
        if not mark.exists():
            mark.touch()
            message = "lost after it wrote"
            raise RuntimeError(message)
        return made


def test_a_job_that_fails_is_run_again_by_a_later_tick(tmp_path, monkeypatch):
    marks = tmp_path / "marks"
    marks.mkdir()
    monkeypatch.setattr(
        "reclock.dataflow.merge._Task", lambda store, stem: Once(store, stem, marks)
    )
    clock = ManualClock(1_000)
    with reclock.open(tmp_path / "state", clock=clock, background=False) as db:
        db.execute("CREATE TABLE t (id INT)")
        for n in range(4):
            clock.advance(1_000)
            db.insert("t", [(100 * n + i,) for i in range(50)])
            db.tick()
        db.execute("ALTER SYSTEM SET execution = 'spark'")
        counts = []
        for _ in range(14):
            clock.advance(1_000)
            db.tick()
            db._core.merger.wait()
            (state,) = db._core.world.timelines.values()
            counts.append(len(state.traces["u1"].sources))
            assert db.execute("SELECT count(*) FROM t").rows == [(200,)]
        assert counts[0] > counts[-1] == 1
        db._core.collect_garbage()
        assert set(db._core.segments.names()) == db._core.world.named_segments()
