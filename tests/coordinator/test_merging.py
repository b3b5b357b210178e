"""Merges beside the ticks: fewer runs, the same answers, history kept as long as promised."""

from __future__ import annotations

import threading

import pytest

from reclock.arrangement.cache import process_cache
from reclock.coordinator import merging
from reclock.coordinator.merging import FEW_RUNS
from reclock.dataflow.graph import collection_of
from reclock.testing.failpoints import armed


@pytest.fixture
def t(db):
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(a) AS s FROM t")
    return db


def only(db):
    (state,) = db._core.world.timelines.values()
    return state


def write_and_tick(db, opener, count, start=0):
    for n in range(start, start + count):
        opener.clock.advance(1_000)
        db.execute("INSERT INTO t VALUES ($1, 1)", (n,))
        db.tick()
        db._core.merger.wait()


def test_runs_stay_few_and_answers_the_same(t, opener):
    write_and_tick(t, opener, 60)
    for arrangement, refs in only(t).arrangements.runs.items():
        assert len(refs) <= FEW_RUNS + 4, arrangement
    assert t.execute("SELECT * FROM v").rows == [(60, 60)]
    again = opener.reopened(t)
    assert again.execute("SELECT * FROM v").rows == [(60, 60)]
    assert again.execute("SELECT count(*) FROM t").rows == [(60,)]


def test_history_is_kept_for_the_window_and_forgotten_after_it(t, opener):
    t.execute("ALTER SYSTEM SET logical_compaction_window = '10000ms'")
    write_and_tick(t, opener, 60)
    for item in ("u1", "u2"):
        since = only(t).arrangements.since(collection_of(item)).element()
        assert only(t).upper - 40_000 < since <= only(t).upper - 10_000
    shard = only(t).traces[collection_of("u1")]
    for time in range(int(since), int(only(t).upper), 500):
        expected = min(60, max(0, time // 1_000 - 1))
        got = sum(b.num_rows for b in shard.snapshot(type(only(t).upper)(time)))
        assert got in {expected, expected + 1}


def test_removed_files_leave_no_map_that_keeps_their_space(t, opener):
    t.execute("ALTER SYSTEM SET logical_compaction_window = '1s'")
    for n in range(FEW_RUNS + 4):
        opener.clock.advance(1_000)
        t.insert("t", [(n * 1_000 + k, k) for k in range(1_000)])
        t.tick()
        t._core.merger.wait()
    assert t.check() == []
    there = t._core.segments
    mapped = {name for store, name in process_cache()._maps if store == there}
    assert mapped
    assert mapped <= set(there.names())


def test_an_objects_own_retention_wins(db, opener):
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT) WITH (RETAIN HISTORY FOR '1 h')")
    created = only(db).arrangements.since(collection_of("u1"))
    db.execute("ALTER SYSTEM SET logical_compaction_window = '1000ms'")
    write_and_tick(db, opener, 30)
    assert only(db).arrangements.since(collection_of("u1")) == created


def test_merged_files_are_collected(t, opener):
    for n in range(30):
        opener.clock.advance(1_000)
        t.insert("t", [(n * 200 + i, 1) for i in range(200)])
        t.tick()
        t._core.merger.wait()
    assert t.execute("SELECT n FROM v").rows == [(6_000,)]
    assert set(t._core.segments.names()) <= t._core.world.named_segments() | {
        name for name in t._core.segments.names() if name.startswith("merge-")
    }
    assert len(t._core.segments.names()) < 20


def test_a_merge_that_fails_changes_nothing_and_is_tried_again(t, opener):
    write_and_tick(t, opener, FEW_RUNS - 1)
    with armed({"arrangement.segment.before_rename": "raise"}):
        for n in range(8, 12):
            opener.clock.advance(1_000)
            t.execute("INSERT INTO t VALUES ($1, 1)", (n,))
            t.tick()
            t._core.merger.wait()
    write_and_tick(t, opener, 20, start=20)
    assert len(only(t).arrangements.runs[collection_of("u1")]) <= FEW_RUNS + 4


def test_dropping_what_is_being_merged_is_harmless(t, opener):
    write_and_tick(t, opener, FEW_RUNS + 1)
    t.execute("DROP MATERIALIZED VIEW v")
    t._core.merger.wait()
    write_and_tick(t, opener, 3, start=50)
    assert list(only(t).arrangements.runs) == ["u1"]
    assert t.execute("SELECT count(*) FROM t").rows == [(FEW_RUNS + 4,)]


def test_days_of_work_leave_the_durable_collections_small(t, opener):
    for _ in range(4):
        for n in range(40):
            opener.clock.advance(1_000)
            t.execute("INSERT INTO t VALUES ($1, 1)", (n,))
            t.tick()
        t._core.merger.wait()
        t.execute("DELETE FROM t")
        t.tick()
    t._core.merger.wait()
    t.tick()  # publishes the last merges
    stored = {
        collection: len(t._store.snapshot(collection).updates)
        for collection in ("wal/EpochMilliseconds", "manifest/EpochMilliseconds", "catalog")
    }
    runs = sum(map(len, only(t).arrangements.runs.values()))
    items = len(t._core.world.stored.items())
    assert list(stored.values()) == [0, runs, items], "one record for each, and nothing before"
    assert sum(f.stat().st_size for f in opener.path.iterdir() if f.is_file()) < 250_000


def test_small_merges_do_not_wait_for_a_large_one(t, opener, monkeypatch):
    monkeypatch.setattr(merging, "LARGE_ROWS", 500)
    t.insert("t", [(n, 1) for n in range(10_000, 11_000)])
    t.tick()
    release, begun = threading.Event(), threading.Event()
    real = merging._run

    def held_up(state, stem, tasks):
        if any(task.is_large for task in tasks):
            begun.set()
            assert release.wait(20)
        return real(state, stem, tasks)

    monkeypatch.setattr(merging, "_run", held_up)
    runs = []
    for n in range(120):
        opener.clock.advance(1_000)
        t.insert("t", [(n * 10 + i, 1) for i in range(10)])
        t.tick()
        for merge in list(t._core.merger._running[only(t).timeline].values()):
            if not any(task.is_large for task in merge.tasks):
                merge.future.exception()
        runs.append(max(len(refs) for refs in only(t).arrangements.runs.values()))
    assert begun.is_set()
    assert max(runs) <= 2 * FEW_RUNS + 4
    release.set()
    t._core.merger.wait()
    opener.clock.advance(1_000)
    t.tick()
    assert t.execute("SELECT n FROM v").rows == [(2_200,)]
    assert opener.reopened(t).execute("SELECT n FROM v").rows == [(2_200,)]
