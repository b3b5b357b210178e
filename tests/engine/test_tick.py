"""One tick: one publish, no trace when idle, few files however many views."""

from __future__ import annotations

import os

import pytest

from reclock.time.frontier import at


class Appends:
    """Counts what reaches the durable store."""

    def __init__(self, db):
        self.calls = []
        original = db._store.append
        db._store.append = lambda appends: (self.calls.append(list(appends)), original(appends))[1]

    @property
    def records(self):
        return sum(len(a.updates) for call in self.calls for a in call)


@pytest.fixture
def views(db):
    db.execute("CREATE TABLE t (k INT, a INT)")
    for n in range(10):
        db.execute(
            f"CREATE MATERIALIZED VIEW v{n} AS SELECT k, sum(a + {n}) AS s FROM t GROUP BY k"
        )
    return db


def only(db):
    (state,) = db._core.world.timelines.values()
    return state


def test_a_tick_publishes_everything_in_one_append(views):
    views.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    appends = Appends(views)
    views.tick()
    assert len(appends.calls) == 1
    assert {"manifest/EpochMilliseconds", "wal/EpochMilliseconds"} < {
        a.collection for a in appends.calls[0]
    }
    assert only(views).settled


def test_an_idle_tick_moves_time_and_writes_nothing(views, opener):
    views.tick()
    files = views._core.segments.names()
    appends = Appends(views)
    for second in range(5):
        opener.clock.advance(1_000)
        assert views.tick() == {"EpochMilliseconds": 2_001 + 1_000 * second}
    assert len(appends.calls) == 5
    assert appends.records == 0
    assert views._core.segments.names() == files
    assert views._core.engine.steps == 0


def test_a_tick_with_nothing_to_close_does_nothing(views):
    upper = views.tick()
    appends = Appends(views)
    assert views.tick() == upper
    assert appends.calls == []


@pytest.mark.placed
def test_a_small_tick_over_twenty_arrangements_writes_few_files(views, monkeypatch):
    views.insert("t", [(n % 100, n) for n in range(1_000)])
    assert len(only(views).arrangements.runs) >= 20
    before = set(views._core.segments.names())
    synced = []
    original = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(fd), original(fd))[1])
    views.tick()
    made = set(views._core.segments.names()) - before
    assert 1 <= len(made) <= 3
    assert 1 <= len(synced) <= 3
    synced.clear()
    views.execute("INSERT INTO t VALUES (1, 1)")
    views.tick()
    assert synced == [], "a few rows travel in the publishing transaction"
    assert set(views._core.segments.names()) - before == made


def test_runs_meet_and_idle_arrangements_get_none(db, opener):
    db.execute("CREATE TABLE t (a INT); CREATE TABLE u (a INT)")
    for n in range(3):
        opener.clock.advance(1_000)
        db.execute(f"INSERT INTO t VALUES ({n})")
        db.tick()
    state = only(db)
    assert [len(state.arrangements.runs[a]) for a in ("u1", "u2")] == [4, 1]
    assert state.traces["u2"].description.upper == state.arrangements.upper
    for one, other in zip(state.arrangements.runs["u1"], state.arrangements.runs["u1"][1:],
                          strict=False):  # fmt: skip
        assert one.description.upper == other.description.lower


def test_writes_of_one_tick_keep_their_own_times(db):
    db.execute("CREATE TABLE t (a INT)")
    times = [db.execute(f"INSERT INTO t VALUES ({n})").timestamp for n in range(3)]
    db.tick()
    shard = only(db).traces["u1"]
    for count, time in enumerate(times, 1):
        assert sum(batch.num_rows for batch in shard.snapshot(time)) == count


def test_a_timeline_without_a_clock_moves_only_when_written(db, opener):
    db.execute("CREATE TABLE c (a INT) WITH (timeline = 'mine')")
    first = db.tick()["User(mine)"]
    opener.clock.advance(10_000)
    assert db.tick()["User(mine)"] == first
    assert db.execute("INSERT INTO c VALUES (1)").timestamp == first
    answer = db.execute("SELECT * FROM c")
    assert (answer.rows, answer.timestamp) == ([(1,)], first)
    assert db.tick()["User(mine)"] == first + 2
    again = opener.reopened(db)
    assert again.execute("SELECT * FROM c").rows == [(1,)]


def test_the_upper_of_views_never_passes_that_of_tables(db, opener):
    db.execute("CREATE TABLE t (a INT)")
    for jump in (500, -2_000, 3_000, 0):
        opener.clock.advance(jump)
        db.execute("INSERT INTO t VALUES (1)")
        assert only(db).upper < only(db).table_upper
        db.tick()
        assert only(db).arrangements.upper == only(db).wal.upper
        assert only(db).wal.upper == at(only(db).oracle.read_ts + 1)


@pytest.mark.parametrize("background", [False, True], ids=["alone", "loop"])
def test_only_regular_ticks_are_on_the_grid_of_the_interval(opener, background):
    """However long the interval: what people do now does not move time ahead of the clock."""
    opener.clock.set(1_500)
    db = opener(background=background)
    db.execute("ALTER SYSTEM SET timestamp_interval = '10m'")
    db.execute("CREATE TABLE t (a INT)")
    db.execute("INSERT INTO t VALUES (1)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t")
    assert db.execute("SELECT s FROM v").rows == [(1,)]
    db.execute("UPDATE t SET a = 2; DELETE FROM t WHERE a = 1")
    with db.subscribe("SUBSCRIBE (SELECT max(a) AS m FROM t)", timeout=60) as sub:
        assert next(sub).row == (2,)
    written = db.execute("INSERT INTO t VALUES (3)").timestamp
    assert 1_500 < written < 1_550
    opener.clock.set(9_000)
    assert db.execute("SELECT s FROM v").timestamp == written
    assert db.execute("INSERT INTO t VALUES (4)").timestamp in {9_000, 9_001}
    assert db.tick()["EpochMilliseconds"] == 600_001
