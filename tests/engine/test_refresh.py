"""Materialized views with a refresh schedule, in a database (P3 of the times of a schedule).

Over a real state directory, by real operators and by the model; what a view holds at every
millisecond is compared with its query asked at the last refresh.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from engines.local_engine import LocalEngine
from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.errors import Error, ExpressionFailed
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reclock.time.refresh import Schedule


class Opened:
    """A database that can be opened again."""

    def __init__(self, path: Path, engine: type[ModelEngine] = LocalEngine) -> None:
        self.path = path
        self.engine = engine
        self.clock = ManualClock(1_000)
        self.db = self._open()
        self.db.execute("ALTER SYSTEM SET logical_compaction_window = '1h'")
        self.db.execute("ALTER SYSTEM SET timestamp_interval = '1ms'")

    def _open(self) -> Database:
        return Database(self.path, self.engine(), clock=self.clock, background=False)

    def __call__(self, sql: str):
        return self.db.execute(sql)

    def rows(self, sql: str) -> list:
        return sorted(self.db.execute(sql).rows, key=repr)

    def pass_to(self, time: int) -> None:
        self.clock.set(time)
        self.db.tick()

    def restart(self) -> None:
        self.db.close()
        self.db = self._open()


@pytest.fixture(params=[LocalEngine, ModelEngine])
def db(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Opened]:
    opened = Opened(tmp_path, request.param)
    opened("CREATE TABLE t (id bigint)")
    opened("INSERT INTO t VALUES (1)")
    yield opened
    opened.db.close()


def create(db: Opened, refresh: str, query: str = "SELECT id FROM t") -> None:
    db(f"CREATE MATERIALIZED VIEW r WITH ({refresh}) AS {query}")


def test_a_view_stands_still_between_two_refreshes(db):
    create(db, "REFRESH EVERY '10 s' ALIGNED TO '1970-01-01 00:00:05', REFRESH AT CREATION")
    db("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM r")
    db("CREATE INDEX i ON r (id)")
    assert db.rows("SELECT * FROM r") == [(1,)]
    db("INSERT INTO t VALUES (2)")
    assert db.rows("SELECT * FROM r WHERE id > 0") == [(1,)]
    db.pass_to(4_999)
    made = db("SELECT * FROM r")
    assert (made.rows, made.timestamp >= 4_999) == ([(1,)], True)  # it does not wait
    db.pass_to(5_000)
    assert db.rows("SELECT * FROM r") == [(1,), (2,)]
    assert db.rows("SELECT * FROM r WHERE id = 2") == [(2,)]
    db("DELETE FROM t WHERE id = 1")
    db("INSERT INTO t VALUES (3)")
    db.restart()
    assert db.rows("SELECT * FROM r") == [(1,), (2,)]
    db.pass_to(40_000)
    assert db.rows("SELECT * FROM r") == [(2,), (3,)]
    for at, n in ((4_999, 1), (5_000, 2), (14_999, 2), (15_000, 2), (40_000, 2)):
        assert db.rows(f"SELECT n FROM n AS OF {at}") == [(n,)]
    assert db.rows("SELECT id FROM r AS OF 14999") == [(1,), (2,)]
    assert db.rows("SELECT id FROM r AS OF 15000") == [(2,), (3,)]
    assert not db.db.check()


def test_before_its_first_refresh_a_view_says_so(db):
    create(db, "REFRESH AT 5000")
    db("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM r")
    for name in "rn":
        with pytest.raises(ExpressionFailed, match="it will be at 5000") as told:
            db(f"SELECT * FROM {name}")
        assert told.value.code == "55R00"
        assert "REFRESH AT CREATION" in told.value.hint
    db.restart()
    db.pass_to(5_000)
    assert db.rows("SELECT * FROM r") == [(1,)]
    db("INSERT INTO t VALUES (2)")
    db.pass_to(900_000)  # that was the last one
    assert db.rows("SELECT n FROM n") == [(1,)]
    shown = db("EXPLAIN MATERIALIZED VIEW r").rows[0][0]
    assert shown.startswith("Refresh: at 5000 (1970-01-01 00:00:05); next at no time\n")


def test_several_times_are_all_refreshes(db):
    create(db, "REFRESH AT 3000, AT '1970-01-01 00:00:04', REFRESH EVERY '10s' ALIGNED TO 0")
    for time in range(1_600, 22_000, 500):
        db.clock.set(time)
        db(f"INSERT INTO t VALUES ({time})")
    refreshed = ((3_000, 2_600), (3_999, 2_600), (4_000, 3_600), (9_999, 3_600), (21_000, 19_600))
    for at, last in refreshed:
        (found,) = db(f"SELECT max(id) FROM r AS OF {at}").rows
        assert found == (last,), at
    db.restart()
    shown = db("SHOW CREATE MATERIALIZED VIEW r").rows[0][1]
    assert "REFRESH AT 3000, AT '1970-01-01 00:00:04', REFRESH EVERY '10s' ALIGNED TO 0" in shown
    shown = db("EXPLAIN MATERIALIZED VIEW r").rows[0][0]
    assert shown.startswith("Refresh: every 10s from 0 (1970-01-01 00:00:00), at 3000 ")
    assert "next at 30000" in shown
    explained = "EXPLAIN CREATE MATERIALIZED VIEW x WITH (REFRESH EVERY '1 h') AS SELECT 1"
    assert db(explained).rows[0][0].startswith("Refresh: every 1h from its creation\n")


def test_every_counts_from_the_creation_and_keeps_to_it(db):
    create(db, "REFRESH EVERY '1 s'")
    created = schedule_of(db, "r").created
    assert db.rows(f"SELECT * FROM r AS OF {created}") == [(1,)]
    db("INSERT INTO t VALUES (2)")
    db.restart()
    db("ALTER MATERIALIZED VIEW r SET (RETAIN HISTORY FOR '2h')")
    db.restart()
    db.pass_to(9_000)
    assert schedule_of(db, "r").created == created
    found = [len(db(f"SELECT * FROM r AS OF {created + ms}").rows) for ms in (999, 1_000, 1_001)]
    assert found == [1, 2, 2]


def schedule_of(db: Opened, name: str) -> Schedule:
    (item,) = (item for item in db.db._core.world.items.values() if item.name == name)
    return item.schedule


def test_on_commit_is_no_schedule(db):
    create(db, "REFRESH ON COMMIT")
    db("INSERT INTO t VALUES (2)")
    assert db.rows("SELECT * FROM r") == [(1,), (2,)]
    assert "Refresh" not in db("EXPLAIN MATERIALIZED VIEW r").rows[0][0]


def test_a_subscription_shows_the_times_of_refreshes(db):
    create(db, "REFRESH EVERY '2 s' ALIGNED TO 0, REFRESH AT CREATION")
    found = db.db.subscribe("SUBSCRIBE TO r WITH (SNAPSHOT = false) UP TO 9000")
    counted = db.db.subscribe("SUBSCRIBE (SELECT count(*) FROM r) UP TO 9000")
    for time in (2_500, 2_600, 4_100):
        db.clock.set(time)
        db(f"INSERT INTO t VALUES ({time})")
    db.pass_to(9_000)
    assert [(u.timestamp, u.diff, u.row) for u in found] == [
        (4_000, 1, (2_500,)), (4_000, 1, (2_600,)), (6_000, 1, (4_100,)),
    ]  # fmt: skip
    assert {u.timestamp for u in list(counted)[1:]} == {4_000, 6_000}


@pytest.mark.parametrize(
    ("refresh", "message"),
    [
        ("REFRESH EVERY '0s'", "must be positive"),
        ("REFRESH AT 10", "every REFRESH AT of materialized view r is in the past"),
        ("REFRESH ON COMMIT, REFRESH EVERY '1 h'", "cannot be combined"),
        ("REFRESH EVERY '1 h', REFRESH ON COMMIT", "cannot be combined"),
        ("REFRESH NEVER", "syntax error"),
        ("REFRESH AT 'soon'", "soon"),
        ("AT 5000", 'unknown option "at"'),
    ],
)
def test_what_is_no_schedule_is_refused(db, refresh, message):
    with pytest.raises(Error, match=message):
        create(db, refresh)
    assert "r" not in [row[0] for row in db("SHOW MATERIALIZED VIEWS").rows]


def test_a_timeline_without_a_clock_has_no_schedule(db):
    db("CREATE TABLE o (id int) WITH (timeline = 'other')")
    with pytest.raises(Error, match="REFRESH in timeline"):
        create(db, "REFRESH EVERY '1 h'", "SELECT * FROM o")


def test_a_constant_is_refreshed_too(db):
    query = "SELECT x FROM (VALUES (1500), (2500)) v (x) WHERE mz_now() < x"
    create(db, "REFRESH EVERY '1 s' ALIGNED TO 0, REFRESH AT CREATION", query)
    db.pass_to(3_000)
    found = [len(db(f"SELECT * FROM r AS OF {at}").rows) for at in (1_999, 2_000, 2_999, 3_000)]
    assert found == [2, 1, 1, 0]


@pytest.mark.parametrize("db", [LocalEngine], indirect=True)  # the other keeps nothing pending
def test_what_a_schedule_is_behind_does_not_expire(db):
    db("ALTER SYSTEM SET compute_replica_expiration_offset = '20s'")
    db.restart()
    query = "SELECT id FROM t WHERE mz_now() < id + 60000"
    create(db, "REFRESH EVERY '1 s' ALIGNED TO 0, AT CREATION", query)
    db("CREATE MATERIALIZED VIEW m AS SELECT id FROM r")
    db("CREATE MATERIALIZED VIEW above AS SELECT id FROM m WHERE mz_now() < id + 50000")
    db("CREATE INDEX i ON m (id)")
    db("CREATE MATERIALIZED VIEW other AS SELECT id FROM t WHERE mz_now() < id + 40000")
    db.db.tick()
    shown = db("SELECT object, expiration, reason FROM reclock.expirations").rows
    found = {name: (end, why) for name, end, why in shown}
    assert found["r"] == (None, "it has a refresh schedule")
    for name, through in (("m", "r"), ("above", "m"), ("i", "m")):
        assert found[name] == (None, f"it depends on a refresh schedule through {through}")
    assert found["other"][0] is not None
    sizes = "SELECT object, pending FROM reclock.arrangement_sizes WHERE operator = 'temporal'"
    assert dict(db(sizes).rows) == {"r": 1, "above": 1, "other": 0}


def test_a_version_that_divides_plans_otherwise_refreshes_at_once(db):
    """What is missing is recomputed from tables: of what time the view was is not known."""
    create(db, "REFRESH EVERY '10 s' ALIGNED TO 0, AT CREATION")
    db("INSERT INTO t VALUES (2)")
    db.db.tick()
    core = db.db._core
    (state,) = (s for s in core.world.timelines.values() if s.shape.graph.delayed)
    (pending,) = state.shape.graph.delayed.values()
    with core.writing():
        time = state.upper
        appends, after = state._moved(time.step(), state.shape, {}, frozenset({pending}))
        core.publish(core.world, appends, after)
    db.restart()
    assert db.rows("SELECT * FROM r") == [(1,), (2,)]
    db("INSERT INTO t VALUES (3)")
    assert db.rows("SELECT * FROM r") == [(1,), (2,)]
    db.pass_to(10_000)
    assert db.rows("SELECT * FROM r") == [(1,), (2,), (3,)]


VIEWS = {
    "SELECT id, b FROM t": "REFRESH EVERY '7ms'",
    "SELECT b, count(*) AS n FROM t GROUP BY b": "REFRESH EVERY '5ms' ALIGNED TO 2, AT CREATION",
    "SELECT id FROM t WHERE mz_now() < b": "REFRESH AT CREATION, AT 1060, EVERY '30ms'",
}


@pytest.mark.parametrize("seed", range(2))
def test_random_histories_are_those_of_the_last_refresh(seed, tmp_path):
    random = Random(seed)
    db = Opened(tmp_path)
    db("CREATE TABLE t (id int, b bigint)")
    time, views = 1_000, {}
    waiting = list(VIEWS)
    while waiting or time < 1_150:
        time += random.choice([1, 2, 9])
        db.clock.set(time)
        match random.randrange(6):
            case 0 if waiting:
                query = waiting.pop()
                name = f"v{len(views)}"
                db(f"CREATE MATERIALIZED VIEW {name} WITH ({VIEWS[query]}) AS {query}")
                views[name] = query
            case 1 | 2:
                db(f"INSERT INTO t VALUES ({random.randint(0, 2)}, {time + random.randint(0, 40)})")
            case 3:
                db(f"DELETE FROM t WHERE id = {random.randint(0, 2)}")
            case 4:
                db.restart()
            case _:
                db.db.tick()
    db.pass_to(time + 20)
    for name, query in views.items():
        schedule = schedule_of(db, name)
        times = range(schedule.created, time + 20)
        refreshes = [at for at in times if schedule.round_up(at) == at]
        probes = {at + more for at in random.sample(refreshes, 2) for more in (-1, 0, 1)}
        for at in sorted(probes & set(times)):
            last = [r for r in refreshes if r <= at]
            if last:
                expected = db.rows(f"{query} AS OF {last[-1]}")
                assert db.rows(f"SELECT * FROM {name} AS OF {at}") == expected, (seed, at)
    assert not db.db.check()
    db.db.close()
