"""INSERT … SELECT, UPDATE and DELETE: exact whatever comes between, and no tick waits for them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest

from engines.local_engine import LocalEngine
from engines.model_engine import ModelEngine
from reclock.errors import (
    DuplicateName,
    Error,
    ExpressionFailed,
    Interrupted,
    UndefinedName,
)
from reclock.session.statements import read_then_write
from reclock.testing.failpoints import FailpointRaised, armed

ROUTES = {
    "before": {"FEW_ROWS": -1},
    "again": {"FEW_ROWS": -1, "BRIEF": 1e9},
    "kept": {"FEW_ROWS": -1, "BRIEF": -1.0},
}
"""How the ways of the module that are not for few rows are taken."""


@pytest.fixture
def take(monkeypatch):
    def take(route):
        for name, value in ROUTES[route].items():
            monkeypatch.setattr(read_then_write, name, value)

    return take


@pytest.fixture(params=[LocalEngine, ModelEngine])
def db(opener, request):
    opener.engine = request.param
    made = opener(background=True)
    made.execute("ALTER SYSTEM SET timestamp_interval = '10ms'")
    made.execute("CREATE TABLE t (k int PRIMARY KEY, a int)")
    made.execute("CREATE TABLE r (n bigint, s bigint)")
    made.execute("CREATE MATERIALIZED VIEW v AS SELECT k, 12 / a AS a FROM t")
    made.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    return made


def between(db, *statements):
    """Run statements when what a write reads was read, the first time."""
    left = iter(statements)
    session = db.session()

    def run():
        for sql in left:
            session.execute(sql)

    return armed({"write.read.after": run})


def rows(db, sql):
    return sorted(db.execute(sql).rows)


def clean(db):
    """Wait until nothing is kept for statements that are over."""
    deadline = monotonic() + 60
    while db._core.world.transients or rows(db, "SELECT object FROM reclock.holds"):
        assert monotonic() < deadline
    assert db.check() == []


def test_few_rows_are_read_under_the_lock(db):
    with armed({"write.read.after": "raise"}):
        assert db.execute("UPDATE t SET a = 7 WHERE k = 1").tag == "UPDATE 1"
        assert db.execute("DELETE FROM t").tag == "DELETE 3"
        with pytest.raises(FailpointRaised):
            db.execute("INSERT INTO r SELECT count(*), 0 FROM t")


@pytest.mark.parametrize("route", ROUTES)
def test_what_comes_between_counts(db, take, route):
    take(route)
    with between(db, "INSERT INTO t VALUES (4, 4)", "UPDATE t SET a = 30 WHERE k = 3"):
        made = db.execute("INSERT INTO r SELECT count(*), sum(a) FROM t")
    assert rows(db, "SELECT * FROM r") == [(4, 37)]
    before = f"SELECT count(*), sum(a) FROM t AS OF {made.timestamp - 1}"
    assert rows(db, before) == rows(db, "SELECT * FROM r")
    clean(db)


@pytest.mark.parametrize("route", ROUTES)
def test_a_delete_misses_no_row_and_an_update_changes_none_twice(db, take, route):
    take(route)
    with between(db, "INSERT INTO t VALUES (5, 2)", "DELETE FROM t WHERE k = 1"):
        assert db.execute("UPDATE t SET a = a + 10 WHERE a < 3").tag == "UPDATE 2"
    assert rows(db, "SELECT * FROM t") == [(2, 12), (3, 3), (5, 12)]
    with between(db, "INSERT INTO t VALUES (6, 12)", "UPDATE t SET a = 0 WHERE k = 5"):
        assert db.execute("DELETE FROM t WHERE a > 10").tag == "DELETE 2"
    assert rows(db, "SELECT * FROM t") == [(3, 3), (5, 0)]
    clean(db)


def test_what_has_not_changed_is_not_asked_again(db, take, monkeypatch):
    take("before")
    monkeypatch.setattr(read_then_write, "BRIEF", -1.0)
    monkeypatch.setattr(read_then_write, "_kept", None)
    monkeypatch.setattr(read_then_write, "read_latest", None)
    with between(db, "INSERT INTO r VALUES (0, 0)", "CREATE TABLE other (a int)"):
        db.execute("INSERT INTO r SELECT count(*), sum(a) FROM t")
    assert rows(db, "SELECT * FROM r") == [(0, 0), (3, 6)]


@pytest.mark.parametrize("route", ROUTES)
def test_an_error_that_comes_between_ends_it_and_writes_nothing(db, take, route):
    take(route)
    for sql in ("INSERT INTO r SELECT a, a FROM v", "INSERT INTO r SELECT 6 / a, 1 FROM t"):
        zero = "UPDATE t SET a = 0 WHERE k = 2"
        with between(db, zero), pytest.raises(ExpressionFailed, match="division by zero"):
            db.execute(sql)
        db.execute("UPDATE t SET a = 2 WHERE k = 2")
    with between(db, "UPDATE t SET k = 9 WHERE k = 1"), pytest.raises(Error, match="duplicate"):
        db.execute("INSERT INTO t SELECT k + 6, a FROM t")
    assert rows(db, "SELECT * FROM r") == []
    assert rows(db, "SELECT k FROM t") == [(2,), (3,), (9,)]
    clean(db)


@pytest.mark.parametrize("route", ROUTES)
def test_tables_that_come_and_go_meanwhile(db, take, route):
    take(route)
    db.execute("CREATE TABLE s (a int)")
    db.execute("INSERT INTO s VALUES (1)")
    again = ("DROP TABLE s", "CREATE TABLE s (b int, a int)", "INSERT INTO s VALUES (0, 7)")
    with between(db, *again):
        assert db.execute("INSERT INTO r SELECT a, 0 FROM s").tag == "INSERT 0 1"
    assert rows(db, "SELECT n FROM r") == [(7,)]
    with between(db, "DROP TABLE s"), pytest.raises(UndefinedName):
        db.execute("INSERT INTO r SELECT a, 0 FROM s")
    db.execute("CREATE TABLE s (a int)")
    with between(db, "DROP TABLE s"), pytest.raises(UndefinedName):
        db.execute("DELETE FROM s WHERE a = a + 1")
    clean(db)


def test_what_depends_on_the_moment_is_that_of_the_statement(db, take):
    take("kept")
    with between(db, "INSERT INTO t VALUES (4, 4)"):
        made = db.execute("INSERT INTO r SELECT count(*), max(mz_now()::bigint) FROM t")
    ((n, now),) = db.execute("SELECT * FROM r").rows
    assert n == 4
    assert now < made.timestamp


class Gated(ModelEngine):
    """Answers, and fills, when it is allowed to."""

    def __init__(self):
        super().__init__()
        self.gate, self.waiting = threading.Event(), threading.Event()
        self.gate.set()

    def _wait(self):
        self.waiting.set()
        assert self.gate.wait(60)

    def peek(self, plan, shape, traces, as_of, *, stop=None):
        if threading.current_thread().name.startswith("slow"):
            self._wait()
            if stop is not None:
                stop.check()
        return super().peek(plan, shape, traces, as_of, stop=stop)

    def hydrate(self, shape, new, traces, as_of, *, beside=None, stop=None):
        if threading.current_thread().name.startswith("slow"):
            self._wait()
        return super().hydrate(shape, new, traces, as_of, beside=beside, stop=stop)


SLOW = {
    "INSERT INTO r SELECT count(*), sum(a) FROM t": "SELECT n FROM r",
    "UPDATE t SET a = mod(a, 9)": "SELECT count(*) FROM t",
    "DELETE FROM t WHERE mod(a, 9) > 9": "SELECT count(*) FROM t",
    "CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM t": "SELECT n FROM w",
    "CREATE INDEX ON t (a)": "SELECT count(*) FROM t",
    "SUBSCRIBE (SELECT count(*) AS n FROM t) WITH (SNAPSHOT)": None,
}


@pytest.mark.parametrize("sql", SLOW)
def test_ticks_and_writes_go_on_while_a_statement_takes_its_time(opener, sql):
    engine = Gated()
    opener.engine = lambda: engine
    db = opener(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '10ms'")
    db.execute("CREATE TABLE t (k int PRIMARY KEY, a int)")
    db.execute("CREATE TABLE r (n bigint, s bigint)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t")
    db.execute("INSERT INTO t VALUES (1, 1)")
    session = db.session()
    engine.gate.clear()
    with ThreadPoolExecutor(1, thread_name_prefix="slow") as pool:
        try:
            if sql.startswith("SUBSCRIBE"):
                running = pool.submit(lambda: next(iter(session.subscribe(sql))).row)
            else:
                running = pool.submit(session.execute, sql)
            assert engine.waiting.wait(60)
            for n in range(2, 5):
                db.execute(f"INSERT INTO t VALUES ({n}, {n})")
                assert db.execute("SELECT s FROM v").rows == [(sum(range(n + 1)),)]
            assert not running.done()
        finally:
            engine.gate.set()
        found = running.result(60)
    if SLOW[sql] is None:
        assert found == (4,)
    else:
        assert db.execute(SLOW[sql]).rows == [(4,)]


@pytest.mark.parametrize("sql", ["UPDATE t SET k = k + 1",
                                 "CREATE MATERIALIZED VIEW w AS SELECT count(*) FROM t",
                                 "CREATE INDEX i ON t (k)"])  # fmt: skip
def test_a_cancel_ends_what_is_computed_before(opener, sql):
    engine = Gated()
    opener.engine = lambda: engine
    db = opener(background=True)
    db.execute("CREATE TABLE t (k int, a int)")
    db.execute("INSERT INTO t VALUES (1, 1)")
    session = db.session()
    engine.gate.clear()
    with ThreadPoolExecutor(1, thread_name_prefix="slow") as pool:
        try:
            running = pool.submit(session.execute, sql)
            assert engine.waiting.wait(60)
            session.interrupt.set(Interrupted("enough"))
        finally:
            engine.gate.set()
        with pytest.raises(Interrupted):
            running.result(60)
    assert db.execute("SELECT k FROM t").rows == [(1,)]
    assert [item.name for item in db._core.world.catalog.items.values()] == ["t"]
    assert db.execute("SELECT * FROM reclock.holds").rows == []


@pytest.mark.parametrize("point", ["write.read.after", "ddl.prepare.before", "ddl.prepare.after",
                                   "ddl.publish.before", "ddl.publish.after"])  # fmt: skip
def test_a_crash_on_the_way_leaves_what_was_there(opener, take, point):
    take("kept")
    opener.engine = LocalEngine
    db = opener(background=True)
    db.execute("CREATE TABLE t (k int, a int)")
    db.execute("INSERT INTO t VALUES (1, 1)")
    session, left = db.session(), iter(["INSERT INTO t VALUES (2, 2)"])

    def change():
        for sql in left:
            session.execute(sql)
        if point == "write.read.after":
            raise FailpointRaised(point)

    with armed({point: "raise", "write.read.after": change}), pytest.raises(FailpointRaised):
        db.execute("UPDATE t SET a = a + 10")
    assert rows(db, "SELECT * FROM t") == [(1, 1), (2, 2)]
    db.close()
    again = opener()
    assert rows(again, "SELECT * FROM t") == [(1, 1), (2, 2)]
    assert again.check() == []


@pytest.mark.parametrize("route", ROUTES)
def test_no_update_is_lost_between_clients(db, take, route):
    take(route)
    clients, times = 3, 4

    def count(_):
        with db.session() as session:
            for _ in range(times):
                session.execute("UPDATE t SET a = a + 1 WHERE k = 1")

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(count, range(clients)))
    assert rows(db, "SELECT a FROM t WHERE k = 1") == [(1 + clients * times,)]
    clean(db)


def test_two_who_make_the_same_view_at_once(db):
    session, left = db.session(), iter(["CREATE MATERIALIZED VIEW w AS SELECT a FROM t"])

    def make():
        for sql in left:
            session.execute(sql)

    with armed({"ddl.prepare.after": make}), pytest.raises(DuplicateName):
        db.execute("CREATE MATERIALIZED VIEW w AS SELECT k FROM t")
    with armed({"ddl.prepare.after": make}):
        made = db.execute("CREATE MATERIALIZED VIEW IF NOT EXISTS w AS SELECT k FROM t")
    assert made.notices
    assert rows(db, "SELECT * FROM w") == [(1,), (2,), (3,)]
