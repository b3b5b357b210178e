"""Temporal filters in a database: exact times, idle or not, through restarts and changes (P3).

Real operators over a real state directory (``LocalEngine``); what a view holds at every
millisecond is compared with the same query asked once at that time.
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

ENGINES = [LocalEngine, ModelEngine]


class Opened:
    """A database that can be crashed and opened again."""

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

    def pending(self, name: str = "v") -> int:
        sql = f"SELECT pending FROM reclock.arrangement_sizes WHERE object = '{name}'"
        return sum(n for (n,) in self(sql).rows)


@pytest.fixture(params=ENGINES)
def db(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Opened]:
    opened = Opened(tmp_path, request.param)
    yield opened
    opened.db.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Opened]:
    opened = Opened(tmp_path)
    yield opened
    opened.db.close()


def test_a_row_goes_at_its_exact_millisecond_while_nothing_is_written(db):
    db("CREATE TABLE t (id int, at timestamp)")
    db("CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE mz_now() <= at + INTERVAL '5 s'")
    db("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM v")
    at = db("INSERT INTO t VALUES (1, '1970-01-01 00:00:01.5'), (2, '1970-01-01 00:00:02')")
    subscribed = iter(db.db.subscribe("SUBSCRIBE TO v"))
    db.pass_to(60_000)
    found = [(u.timestamp, u.diff, u.row) for _, u in zip(range(4), subscribed, strict=False)]
    assert sorted(found) == [
        (at.timestamp, 1, (1,)), (at.timestamp, 1, (2,)), (6_501, -1, (1,)), (7_001, -1, (2,)),
    ]  # fmt: skip
    assert [db(f"SELECT n FROM n AS OF {t}").rows for t in (6_500, 6_501, 7_000, 7_001)] == [
        [(2,)], [(1,)], [(1,)], [(0,)],
    ]  # fmt: skip


def test_many_times_between_two_ticks_stay_distinct(db):
    db("CREATE TABLE t (id bigint)")
    db("CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE mz_now() BETWEEN id AND id + 1")
    db(f"INSERT INTO t VALUES {', '.join(f'({t})' for t in range(2_000, 2_050))}")
    db.pass_to(5_000)
    for t in range(1_999, 2_053):
        expected = [(i,) for i in (t - 1, t) if 2_000 <= i < 2_050]
        assert db.rows(f"SELECT id FROM v AS OF {t}") == expected


def test_bounds_of_every_type(db):
    db("CREATE TABLE t (n int, b bigint, s smallint, ts timestamp, tz timestamptz, d date)")
    db(
        "INSERT INTO t VALUES (5000, 5000, 5000, '1970-01-01 00:00:05', '1970-01-01 01:00:05+01',"
        " '1970-01-01')"
    )
    tests = {
        "mz_now() < n": 5_000, "b > mz_now()": 5_000, "mz_now() <= s": 5_001,
        "ts + INTERVAL '1 second' >= mz_now()": 6_001, "mz_now() < tz": 5_000,
        "mz_now() < d + INTERVAL '7 s'": 7_000, "NOT mz_now() >= n": 5_000,
        "mz_now() < '1970-01-01 00:00:08+00'": 8_000, "mz_now() < '9000'": 9_000,
    }  # fmt: skip
    for at, condition in enumerate(tests):
        db(f"CREATE MATERIALIZED VIEW v{at} AS SELECT n FROM t WHERE {condition}")
    db.pass_to(20_000)
    for at, (condition, end) in enumerate(tests.items()):
        assert len(db(f"SELECT * FROM v{at} AS OF {end - 1}").rows) == 1, condition
        assert not db(f"SELECT * FROM v{at} AS OF {end}").rows, condition
        assert len(db(f"SELECT n FROM t WHERE {condition} AS OF {end - 1}").rows) == 1, condition
        assert not db(f"SELECT n FROM t WHERE {condition} AS OF {end}").rows, condition


def test_a_read_has_its_own_timestamp_anywhere(db):
    db("CREATE TABLE t (id bigint)")
    db("INSERT INTO t VALUES (2000), (NULL)")
    db("CREATE VIEW v AS SELECT id FROM t WHERE mz_now() < id")
    db.pass_to(1_999)
    made = db("SELECT mz_now(), mz_now() - 1, CASE WHEN mz_now() > 5 THEN 'late' END FROM t, v")
    assert made.rows == [(made.timestamp, made.timestamp - 1, "late")] * 2
    assert db("SELECT * FROM v AS OF 1999").rows == [(2_000,)]
    db.pass_to(2_000)
    assert not db("SELECT * FROM v").rows
    assert db("SELECT mz_now()").rows == [(db("SELECT 1").timestamp,)]
    db("INSERT INTO t VALUES (mz_now())")
    assert db("SELECT max(id) > 1999 FROM t").rows == [(True,)]
    assert db("DELETE FROM t WHERE mz_now() >= id").tag == "DELETE 2"


def test_a_subscription_to_a_query_follows_time(db):
    db("CREATE TABLE t (id bigint)")
    db("INSERT INTO t VALUES (2000), (3000)")
    found = db.db.subscribe("SUBSCRIBE (SELECT id + 1 FROM t WHERE mz_now() >= id) UP TO 2500")
    db.pass_to(4_000)
    assert [(u.timestamp, u.diff, u.row) for u in found] == [(2_000, 1, (2_001,))]


def test_an_index_of_a_temporal_view_follows_time(db):
    db("CREATE TABLE t (id bigint, k int)")
    db("CREATE MATERIALIZED VIEW v AS SELECT id, k FROM t WHERE mz_now() BETWEEN id AND id + 9")
    db("CREATE INDEX i ON v (k)")
    db("INSERT INTO t VALUES (2000, 1), (2005, 1), (2005, 2)")
    assert "look-up in v by (k)" in db("EXPLAIN SELECT id FROM v WHERE k = 1").rows[0][0]
    db.pass_to(5_000)
    found = [len(db(f"SELECT id FROM v WHERE k = 1 AS OF {at}").rows) for at in range(1_999, 2_016)]
    assert found == [0, *[1] * 5, *[2] * 5, *[1] * 5, 0]


def test_a_change_of_the_catalog_at_the_time_something_is_due(db):
    """What is due at the time that CREATE closes is in old views and in the new one."""
    db("CREATE TABLE t (id bigint)")
    db("CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE mz_now() >= id")
    db(f"INSERT INTO t VALUES {', '.join(f'({t})' for t in range(1_000, 1_030))}")
    times = set()
    for n in range(2):
        db(f"CREATE MATERIALIZED VIEW w{n} AS SELECT sum(id) AS s FROM v")
        times.add(db(f"SELECT 1 FROM w{n}").timestamp)
        db(f"CREATE MATERIALIZED VIEW x{n} AS SELECT id + 1 AS i FROM t WHERE mz_now() >= id")
        times.add(db(f"SELECT 1 FROM x{n}").timestamp)
    db("CREATE INDEX i ON v (id)")
    times.add(db("SELECT 1 FROM v").timestamp)
    db.pass_to(1_100)
    for t in sorted(t + more for t in times for more in (0, 1)):
        expected = db.rows(f"SELECT id FROM t WHERE mz_now() >= id AS OF {t}")
        assert expected
        assert db.rows(f"SELECT id FROM v AS OF {t}") == expected, t
        for n in range(2):
            try:
                sums = db(f"SELECT s FROM w{n} AS OF {t}").rows
                ids = db.rows(f"SELECT i - 1 FROM x{n} AS OF {t}")
            except Error:
                continue  # it was made later
            assert sums == [(sum(i for (i,) in expected),)], (n, t)
            assert ids == expected, (n, t)


def test_an_overflowing_bound_is_an_error_that_goes_with_its_row(db):
    db("CREATE TABLE t (id bigint)")
    db("CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE mz_now() <= id")
    db("INSERT INTO t VALUES (9223372036854775807), (NULL), (5000)")
    if db.engine is LocalEngine:
        with pytest.raises(ExpressionFailed, match="out of range"):
            db("SELECT * FROM v")
    db("DELETE FROM t WHERE id > 10000")
    assert db("SELECT * FROM v").rows == [(5_000,)]


def test_pending_updates_are_durable_counted_and_compacted(local):
    local("CREATE TABLE t (id bigint)")
    local("CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE mz_now() < id")
    local(f"INSERT INTO t VALUES {', '.join(f'({t})' for t in range(2_000, 2_100))}")
    local.db.tick()
    assert local.pending() == 100
    local.restart()
    assert local.pending() == 100
    local.pass_to(2_049)
    assert local.pending() == 50
    local.restart()
    assert len(local("SELECT * FROM v").rows) == 50
    local("DELETE FROM t WHERE id >= 2060")
    for time in (2_050, 2_080, 3_000):
        local.pass_to(time)
        local.db._core.merger.wait()
        local.db.tick()
    sql = "SELECT records FROM reclock.arrangement_sizes WHERE operator = 'temporal'"
    for time in (4_000, 5_000):
        local.pass_to(time)
        local.db._core.merger.wait()
    assert local(sql).rows == [(0,)]
    assert not local("SELECT * FROM v").rows
    assert not local.db.check()


def test_an_idle_tick_writes_nothing_however_much_waits(local):
    local("CREATE TABLE t (id bigint)")
    local("CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE mz_now() < id")
    local("INSERT INTO t SELECT g FROM generate_series(50000, 50999) AS x (g)")
    local.pass_to(2_000)
    engine = local.db._core.engine
    steps, files = engine.steps, sorted(p.name for p in local.path.rglob("*.seg"))
    local.pass_to(49_999)
    assert engine.steps == steps
    assert sorted(p.name for p in local.path.rglob("*.seg")) == files
    local.pass_to(50_000)
    assert engine.steps == steps + 1


VIEWS = {
    "v": "SELECT id, b, e FROM t WHERE mz_now() BETWEEN b AND e",
    "a": "SELECT id, count(*) AS n, max(e) AS m FROM t WHERE mz_now() < e GROUP BY id",
    "j": "SELECT t.id, u.e FROM t JOIN u ON t.id = u.id AND mz_now() >= t.b AND mz_now() <= u.e",
    "o": "SELECT id FROM t WHERE mz_now() < b OR mz_now() >= e",
    "w": "SELECT id, e FROM v WHERE mz_now() >= b + 3",
}


@pytest.mark.parametrize("seed", range(6))
def test_random_histories_are_right_at_every_millisecond(seed, tmp_path):
    check(seed, tmp_path)


@pytest.mark.slow(seconds=3)
@pytest.mark.parametrize("seed", range(6, 100))
def test_more_random_histories_are_right_at_every_millisecond(seed, tmp_path):
    check(seed, tmp_path)


def check(seed: int, tmp_path: Path) -> None:
    """Writes, idle time, restarts, views that come late: every view at every kept time."""
    random = Random(seed)
    db = Opened(tmp_path)
    db("CREATE TABLE t (id int, b bigint, e bigint)")
    db("CREATE TABLE u (id int, e bigint)")
    waiting = list(VIEWS)
    created: dict[str, int] = {}
    probes: set[int] = set()
    time = 1_000
    while waiting or time < 1_120:
        time += random.choice([1, 2, 10])
        db.clock.set(time)
        match random.randrange(7):
            case 0 if waiting:
                name = waiting.pop(0)
                db(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
                created[name] = db(f"SELECT 1 FROM {name}").timestamp
            case 1 | 2:
                bounds = [random.choice(["NULL", time + random.randint(-9, 40)]) for _ in range(3)]
                db(f"INSERT INTO t VALUES ({random.randint(0, 2)}, {bounds[0]}, {bounds[1]})")
                db(f"INSERT INTO u VALUES ({random.randint(0, 2)}, {bounds[2]})")
                probes |= {b + more for b in bounds if b != "NULL" for more in (0, 1)}
            case 3:
                db(f"DELETE FROM {random.choice('tu')} WHERE id = {random.randint(0, 2)}")
            case 4:
                db(f"UPDATE t SET e = e + 7 WHERE id = {random.randint(0, 2)}")
            case 5 if random.random() < 0.3:
                db.restart()
            case _:
                db.db.tick()
    db.pass_to(time + 60)
    for name, text in VIEWS.items():
        kept = sorted({at for at in probes if at > created[name]} | {created[name]})
        for at in random.sample(kept, min(len(kept), 16)):
            expected = db.rows(f"{text} AS OF {at}")
            assert db.rows(f"SELECT * FROM {name} AS OF {at}") == expected, (seed, name, at)
    assert not db.db.check()
    db.db.close()
