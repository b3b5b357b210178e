"""Merges beside the ticks: fewer runs, the same answers, history kept as long as promised."""

from __future__ import annotations

import threading

import pytest

from reclock.arrangement import merge as rules
from reclock.arrangement.cache import process_cache
from reclock.arrangement.run import RunRef
from reclock.dataflow.graph import collection_of
from reclock.dataflow.merge import Merge
from reclock.engine import merging
from reclock.engine.merging import FEW_RUNS
from reclock.errors import Interrupted, SparkError
from reclock.testing.failpoints import armed
from reclock.time.description import Description
from reclock.time.frontier import at

SEGMENT = ("arrangement.segment.before_rename", "arrangement.segment.after_rename")


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
    mapped = {name for store, name in process_cache()._files if store == there}
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


@pytest.mark.placed  # ticks that are jobs write files, too
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


@pytest.mark.placed  # ticks that are jobs have a run for each part
def test_small_merges_do_not_wait_for_a_large_one(t, opener, monkeypatch):
    monkeypatch.setattr(merging, "SMALL_ROWS", 500)
    t.insert("t", [(n, 1) for n in range(10_000, 11_000)])
    t.tick()
    release, begun = threading.Event(), threading.Event()
    real = t._engine.merge

    def held_up(merges, *rest, **named):
        if any(one.rows > 500 for one in merges):
            begun.set()
            assert release.wait(20)
        return real(merges, *rest, **named)

    monkeypatch.setattr(t._engine, "merge", held_up)
    runs = []
    for n in range(120):
        opener.clock.advance(1_000)
        t.insert("t", [(n * 10 + i, 1) for i in range(10)])
        t.tick()
        for size, call in list(t._core.merger._running[only(t).timeline].items()):
            if size == 0:
                call.future.exception()
        runs.append(max(len(refs) for refs in only(t).arrangements.runs.values()))
    assert begun.is_set()
    assert max(runs) <= 2 * FEW_RUNS + 4
    release.set()
    t._core.merger.wait()
    opener.clock.advance(1_000)
    t.tick()
    assert t.execute("SELECT n FROM v").rows == [(2_200,)]
    assert opener.reopened(t).execute("SELECT n FROM v").rows == [(2_200,)]


@pytest.fixture
def in_tasks(t, monkeypatch):
    """A database whose merges run in tasks, of few rows a part."""
    monkeypatch.setattr(rules, "PART_ROWS", 25)
    t.execute("ALTER SYSTEM SET execution = 'spark'")
    return t


def answers(db, step):
    """Return all rows of the table and the view, at every time that can be read.

    Nothing happens but at multiples of ``step``, and right after them.
    """
    state, found = only(db), {}
    for item in ("u1", "u2"):
        shard = state.traces[collection_of(item)]
        since = int(state.arrangements.since(collection_of(item)).element())
        grid = range(1_000, int(state.upper), step)
        times = {t + n for t in grid for n in (-1, 0, 1, 2)} | {since, int(state.upper) - 1}
        for time in sorted(t for t in times if since <= t < state.upper):
            found[item, time] = sorted(
                row for b in shard.snapshot(type(state.upper)(time))
                for row in zip(*(c.to_pylist() for c in b.columns), strict=True)
            )  # fmt: skip
    return found


def test_a_merge_in_tasks_swaps_in_siblings_that_read_as_one_run(in_tasks, opener):
    seen = {}
    in_tasks.execute("ALTER SYSTEM SET logical_compaction_window = '100ms'")
    for n in range(FEW_RUNS + 12):
        opener.clock.advance(10)
        in_tasks.insert("t", [(n * 100 + i, i) for i in range(25)])
        in_tasks.tick()
        in_tasks._core.merger.wait()
        now = answers(in_tasks, 10)
        assert all(rows == seen.get(at, rows) for at, rows in now.items())
        seen |= now
    assert in_tasks._engine.merged_in_tasks > 2
    runs = only(in_tasks).arrangements.runs[collection_of("u1")]
    shard = only(in_tasks).traces[collection_of("u1")]
    assert len(runs) > len(shard.sources)
    assert len(shard.sources) <= FEW_RUNS + 2
    before = answers(in_tasks, 10)
    again = opener.reopened(in_tasks)
    assert answers(again, 10) == before
    assert again.check() == []
    again._core.collect_garbage()
    assert set(again._core.segments.names()) == again._core.world.named_segments()


def test_siblings_of_a_merge_are_not_merged_again_because_they_are_several(in_tasks, opener):
    for n in range(FEW_RUNS + 2):
        opener.clock.advance(10)
        in_tasks.insert("t", [(n * 1_000 + i, i) for i in range(250)])
        in_tasks.tick()
        in_tasks._core.merger.wait()
    for _ in range(5):  # whatever is due is done now
        opener.clock.advance(1_000)
        in_tasks.tick()
        in_tasks._core.merger.wait()
    merged, runs = in_tasks._engine.merged_in_tasks, only(in_tasks).arrangements.runs
    assert len(runs[collection_of("u1")]) > 50
    for _ in range(5):
        opener.clock.advance(1_000)
        in_tasks.tick()
        in_tasks._core.merger.wait()
    assert in_tasks._engine.merged_in_tasks == merged
    assert only(in_tasks).arrangements.runs == runs


def siblings(*families):
    return tuple(
        RunRef(f"u1.{part}", Description(at(n), at(n + 1), at(0)), rows, 1, n * 100 + part)
        for n, sizes in enumerate(families)
        for part, rows in enumerate(sizes)
    )


def test_newer_runs_that_are_merged_meanwhile_leave_no_sibling_behind():
    refs = siblings([500_000], [350_000, 20_000, 20_000], *([[5_000, 5_000]] * 9))
    assert merging._plan(refs, 20, at(0), {}) == slice(0, len(refs))
    assert merging._plan(refs, 20, at(0), {merging.size_of(980_000)}) == slice(4, len(refs))


def test_few_runs_that_overlap_are_left_alone():
    """Tasks that read a source write runs of one interval, each with keys of all hashes."""
    refs = siblings(*([[250_000, 250_000]] * 4))
    assert merging._plan(refs, 8, at(0), {}) is None
    assert merging._plan(refs, 9, at(0), {}) == slice(0, len(refs))


@pytest.mark.parametrize("point", ["merge.write.before", "merge.write.after", *SEGMENT])
@pytest.mark.parametrize("execution", ["driver", "spark"])
def test_a_merge_that_is_lost_changes_nothing(t, opener, monkeypatch, point, execution):
    monkeypatch.setattr(rules, "PART_ROWS", 100)
    t.execute(f"ALTER SYSTEM SET execution = '{execution}'")
    for n in range(FEW_RUNS):
        opener.clock.advance(1_000)
        t.insert("t", [(n * 100 + i, i) for i in range(100)])
        t.tick()
    expected = None
    for n in range(FEW_RUNS, FEW_RUNS + 4):
        opener.clock.advance(1_000)
        t.execute("INSERT INTO t VALUES ($1, 1)", (n * 100,))
        t.tick()
        t._core.merger.wait()  # the merge of the tick before, none at first
        with armed({point: "raise"}):
            t._core.merger.consider(only(t))
            t._core.merger.wait()
        before, expected = expected, answers(t, 1_000)
        assert before is None or all(expected.get(at, rows) == rows for at, rows in before.items())
    again = opener.reopened(t)
    assert answers(again, 1_000) == expected
    again._core.collect_garbage()
    assert set(again._core.segments.names()) == again._core.world.named_segments()
    write_and_tick(again, opener, 20, start=10_000)
    assert len(only(again).arrangements.runs[collection_of("u1")]) <= 2 * FEW_RUNS
    assert again.execute("SELECT n FROM v").rows == [(824,)]


def test_a_merge_that_goes_on_failing_is_told_and_tried_again(t, opener, monkeypatch, caplog):
    tried = []

    def broken(merges, *_, **__):
        tried.append(merges)
        message = "no Spark today"
        raise SparkError(message)

    real = t._engine.merge
    monkeypatch.setattr(t._engine, "merge", broken)
    write_and_tick(t, opener, 60)
    assert 5 < len(tried) < 40, "again, and not with every tick"
    assert t._core.in_flight == {c.stem for c in t._core.merger._running[only(t).pace].values()}
    told = [record.getMessage() for record in caplog.records if record.name == merging.LOG.name]
    assert told
    assert len(told) < 5
    assert told[0].startswith("merge · t")
    assert told[0].endswith("failed 3 times in a row, is tried again: no Spark today")
    monkeypatch.setattr(t._engine, "merge", real)
    opener.clock.advance(60_000)
    write_and_tick(t, opener, 20, start=100)
    assert len(only(t).arrangements.runs[collection_of("u1")]) <= FEW_RUNS + 4
    assert not t._core.merger._failed


def test_closing_ends_a_merge_under_way(t, opener, monkeypatch):
    begun = threading.Event()

    def endless(merges, store, stem, *, title, stop):
        del merges, store, stem, title
        begun.set()
        over = threading.Event()
        with stop.waking(over.set):
            assert over.wait(60)
        stop.check()

    monkeypatch.setattr(t._engine, "merge", endless)
    for n in range(FEW_RUNS + 2):
        opener.clock.advance(1_000)
        t.execute("INSERT INTO t VALUES ($1, 1)", (n,))
        t.tick()
    assert begun.wait(20)
    (call,) = t._core.merger._running[only(t).pace].values()
    t.close()
    assert isinstance(call.future.exception(0), Interrupted)


def test_the_title_names_objects_and_rows(t, opener):
    write_and_tick(t, opener, 3)
    state = only(t)
    names = sorted(state.shape.graph.arrangements)
    made = [Merge(name, None, state.arrangements.runs[name], at(0)) for name in names]
    title = t._core.merger._title(state, made)
    assert title == f"merge · t, v · {sum(one.rows for one in made):,} rows"
