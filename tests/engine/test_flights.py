"""While a tick computes, writes, reads and statements go on, and all of it is right at every time.

A gate in the engine holds a tick where it computes; what happens meanwhile is deterministic. Every
write is noted with its time, so that the table, and a view over it, can be compared at every time
that was ever complete.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from time import monotonic, sleep

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.local_engine import LocalEngine
from reclock.engine import flights
from reclock.engine.tick import settle, tick
from reclock.errors import Error, Interrupted, StatementTimeout
from reclock.ingest import staging
from reclock.session.statements import context as turn
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.testing.kafka_upstream import Record
from reclock.time.timeline import EPOCH_MS

LONG = 20
"""Seconds until a test gives up."""

ALTER = "ALTER TABLE t ADD COLUMN b INT"
WAITS = "DELETE FROM t WHERE k IN (SELECT odd FROM v)"
"""Statements that wait for a tick under way."""


class GatedEngine(LocalEngine):
    """Holds the next tick that it computes, once it is armed, until it is let go or stopped."""

    def __init__(self):
        super().__init__()
        self.inside = threading.Event()
        self.going = threading.Event()
        self.armed = False
        self.fails = None

    def arm(self, fails=None):
        self.inside.clear()
        self.going.clear()
        self.armed, self.fails = True, fails

    def step(self, *args, stop=None, **more):
        if self.armed:
            self.armed = False
            self.inside.set()
            with stop.waking(self.going.set):
                assert self.going.wait(LONG)
            stop.check()
            if self.fails is not None:
                raise self.fails
        return super().step(*args, stop=stop, **more)


class Air:
    """A database, what was written to it, and a tick that is under way."""

    def __init__(self, opener, *, background=False):
        opener.engine = GatedEngine
        self.opener = opener
        self.written = []
        """(time, k, diff)"""
        self.open(background=background)
        for sql in (
            "ALTER SYSTEM SET timestamp_interval = '1ms'",
            "ALTER SYSTEM SET logical_compaction_window = '1h'",
            "CREATE TABLE t (k INT PRIMARY KEY, a INT)",
            "CREATE TABLE u (k INT)",
            "CREATE TABLE something (k INT)",
            "CREATE MATERIALIZED VIEW v AS "
            "SELECT k % 2 AS odd, count(*) AS n FROM t GROUP BY k % 2",
        ):
            self.db.execute(sql)

        self.queries = {}
        """Of the views that are made, by name."""

    def open(self, *, background=False):
        self.db = self.opener(background=background)
        self.core = self.db._core
        self.engine = self.db._engine
        self.pool = ThreadPoolExecutor(16)

    def crash(self):
        self.engine.going.set()
        self.opener.crash(self.db)
        self.open()

    def insert(self, *keys):
        values = ", ".join(f"({k}, 0)" for k in keys)
        time = self.db.session().execute(f"INSERT INTO t VALUES {values}").timestamp
        self.written += [(int(time), k, 1) for k in keys]
        return time

    def delete(self, k):
        time = self.db.session().execute("DELETE FROM t WHERE k = $1", (k,)).timestamp
        if sum(diff for _, key, diff in self.written if key == k):
            self.written.append((int(time), k, -1))

    @contextmanager
    def tick(self, *, regular=True, fails=None):
        """Have a tick under way in the block, which computes; then it lands."""
        self.db.session().execute("INSERT INTO something VALUES (1)")
        self.opener.clock.advance(2)
        self.engine.arm(fails)
        flying = self.pool.submit(tick, self.core, EPOCH_MS, regular=regular)
        assert self.engine.inside.wait(LONG), flying.exception(0)
        try:
            yield flying
        finally:
            self.engine.going.set()
            wait([flying], LONG)

    def view(self, name, query):
        """Have a view, whose rows are compared with those of its query."""
        self.db.session().execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        self.queries[name] = query

    def later(self, sql):
        """Run a statement that waits for the tick; return what it will give."""
        statement = self.pool.submit(self.db.session().execute, sql)
        sleep(0.1)
        assert not statement.done(), statement.result()
        return statement

    def later_or_now(self, sql):
        """Begin a statement; return what it will give."""
        return self.pool.submit(self.db.session().execute, sql)

    def rows(self, time):
        keys = Counter()
        for at, k, diff in self.written:
            if at <= time:
                keys[k] += diff
        return sorted(k for k, n in keys.items() if n)

    def compare(self):
        """Compare the table and the view at every time that is complete."""
        self.opener.clock.advance(2)
        self.db.tick()
        state = self.core.world[EPOCH_MS]
        since = max(int(since.element()) for since in state.sinces.values())
        for time in range(since, int(state.upper)):
            keys = self.rows(time)
            got = self.db.execute(f"SELECT k FROM t ORDER BY k AS OF {time}").rows
            assert got == [(k,) for k in keys], time
            if self.core.world.catalog.find(("v",)) is not None:
                odd = Counter(k % 2 for k in keys)
                got = self.db.execute(f"SELECT * FROM v ORDER BY odd AS OF {time}").rows
                assert got == sorted(odd.items()), time
        for name, query in self.queries.items():
            self.compare_view(name, query)
        assert state.wal.pending == ()
        assert self.db.check() == []
        assert not self.core.flights.among(self.core.world.timelines)
        self.core.merger.wait()
        self.db.tick()
        self.core.collect_garbage()
        names = self.core.world.named_segments() | {
            name for name in self.core.segments.names() if name.startswith("merge")
        }
        assert set(self.core.segments.names()) <= names

    def compare_view(self, name, query):
        """Compare a view with its query at every time at which there is the view."""
        item = self.core.world.catalog.find((name,))
        if item is None:
            return
        state = self.core.world.of(item)
        since = int(state.sinces[item.id].element())
        for time in range(since, int(state.upper)):
            got = sorted(self.db.execute(f"SELECT * FROM {name} AS OF {time}").rows)
            want = self.db.execute(f"SELECT * FROM ({query}) AS q AS OF {time}").rows
            assert got == sorted(want), (name, time)


@pytest.fixture
def air(opener):
    made = Air(opener)
    yield made
    made.engine.going.set()
    made.pool.shutdown()


def test_a_write_does_not_wait_and_gets_a_time_after_the_tick(air):
    before = air.insert(1)
    with air.tick() as flying:
        after = air.insert(2)
        closing = air.core.flights.closing(EPOCH_MS)
        assert before <= closing < after
        assert air.core.world[EPOCH_MS].upper <= before
        assert len(air.core.world[EPOCH_MS].wal.pending) == 3
    assert flying.result().upper == closing + 1
    assert [entry.time for entry in flying.result().wal.pending] == [after]
    air.compare()


def test_writes_of_many_threads_all_count_once(air):
    air.insert(0)
    with air.tick():
        for done in [air.pool.submit(air.insert, k) for k in range(1, 11)]:
            done.result(LONG)
        with pytest.raises(Error, match="duplicate key"):
            air.insert(3)
        with pytest.raises(Error, match="duplicate key"):
            air.insert(0)
        session = air.db.session()
        session.execute("BEGIN")
        session.execute("INSERT INTO u VALUES (1)")
        session.execute("INSERT INTO u VALUES (2)")
        session.execute("COMMIT")
    assert len({time for time, _, _ in air.written}) == 11
    air.compare()
    assert air.db.execute("SELECT count(*) FROM u").rows == [(2,)]


def test_large_writes_keep_their_files(air, monkeypatch):
    monkeypatch.setattr("reclock.engine.write.INLINE_BYTES", 0)
    air.insert(*range(50))
    with air.tick():
        air.insert(*range(50, 100))
        air.core.collect_garbage()
    air.core.collect_garbage()
    air.compare()


def test_reads_of_complete_times_do_not_wait(air):
    air.insert(1)
    air.opener.clock.advance(2)
    air.db.tick()
    done = air.core.world[EPOCH_MS].upper.back()
    air.insert(3)
    with air.tick() as flying:
        session = air.db.session()
        assert session.execute(f"SELECT k FROM t AS OF {done}").rows == [(1,)]
        session.execute("SET transaction_isolation = 'serializable'")
        assert session.execute("SELECT * FROM v").rows == [(1, 1)]
        strict = air.later("SELECT * FROM v")
        assert not flying.done()
    assert strict.result(LONG).rows == [(1, 2)]
    air.compare()


@pytest.mark.parametrize("inline", [0, 4_096])
def test_strict_reads_of_tables_do_not_wait(air, monkeypatch, inline):
    """What is written before and while the tick computes is in the log, and read from there."""
    monkeypatch.setattr("reclock.engine.write.INLINE_BYTES", inline)
    air.db.execute("CREATE INDEX by_a ON t (a)")
    air.insert(1, 2)
    session = air.db.session()
    with air.tick() as flying:
        assert session.execute("SELECT k FROM t ORDER BY k").rows == [(1,), (2,)]
        when = air.insert(3)
        answer = session.execute("SELECT k FROM t ORDER BY k")
        assert (answer.rows, answer.timestamp) == ([(1,), (2,), (3,)], when)
        assert session.execute("SELECT k FROM t WHERE a = 0 AND k > 1 ORDER BY k").rows == [
            (2,), (3,),
        ]  # fmt: skip
        for _ in range(2):  # by its key: the second time the plan is known
            assert session.execute("SELECT a FROM t WHERE k = $1", (3,)).rows == [(0,)]
            by_index = session.execute("SELECT k FROM t WHERE a = $1", (0,)).rows
            assert sorted(by_index) == [(1,), (2,), (3,)]
        air.pool.submit(session.execute, "INSERT INTO u VALUES (3), (4)").result(LONG)
        joined = "SELECT t.k FROM t JOIN u ON t.k = u.k"
        assert session.execute(joined).rows == [(3,)]
        assert session.execute(f"SELECT k FROM t ORDER BY k AS OF {when - 1}").rows == [(1,), (2,)]
        strict = air.later("SELECT t.k FROM t JOIN v ON t.k % 2 = v.odd")
        assert not flying.done()
    assert len(strict.result(LONG).rows) == 3
    air.compare()


def test_a_transaction_that_reads_tables_waits_for_the_tick(air):
    """It reads other objects at that time, too."""
    air.insert(1)
    session = air.db.session()
    session.execute("BEGIN")
    with air.tick() as flying:
        found = air.pool.submit(session.execute, "SELECT k FROM t")
        sleep(0.1)
        assert not found.done()
        assert not flying.done()
    assert found.result(LONG).rows == [(1,)]
    assert session.execute("SELECT * FROM v").rows == [(1, 1)]
    session.execute("COMMIT")


def test_statements_that_need_no_rows_of_the_pace_do_not_wait(air):
    air.insert(1)
    with air.tick() as flying:
        for sql in (
            "CREATE VIEW w AS SELECT k FROM t",
            "CREATE ROLE someone",
            "GRANT SELECT ON t TO someone",
            "ALTER SYSTEM SET timestamp_interval = '2ms'",
            "DROP VIEW w",
            "SET statement_timeout = '1h'",
            "EXPLAIN SELECT * FROM v",
            "SHOW OBJECTS",
        ):
            air.db.session().execute(sql)
        assert not flying.done()
    assert flying.exception() is None
    air.compare()


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE w (k SERIAL PRIMARY KEY)",
        "CREATE MATERIALIZED VIEW w AS SELECT k FROM u",
        "CREATE MATERIALIZED VIEW w AS SELECT sum(n) AS n FROM v",
        "CREATE MATERIALIZED VIEW w AS SELECT t.k FROM t JOIN u ON t.k = u.k",
        "CREATE INDEX w ON t (a)",
        "CREATE INDEX w ON v (n)",
        "DROP MATERIALIZED VIEW v",
        "DROP TABLE u",
        "DROP TABLE t CASCADE",
        "ALTER TABLE t SET (RETAIN HISTORY FOR '2h')",
        "UPDATE t SET a = a + 1",
        "DELETE FROM u",
        "INSERT INTO u SELECT k FROM t",
    ],
)
def test_statements_that_change_the_pace_do_not_wait_for_the_tick(air, sql):
    air.insert(1)
    steps = air.engine.steps
    with air.tick() as flying:
        air.pool.submit(air.db.session().execute, sql).result(LONG)
        if "DROP TABLE t" not in sql:
            air.insert(2)
        assert not flying.done()
        closing = air.core.flights.closing(EPOCH_MS)
    assert flying.result().upper == closing + 1
    assert air.engine.steps == steps + 1, "the tick was not computed again"
    if "DROP TABLE t" in sql:
        assert air.db.execute("SELECT * FROM u").rows == []
        air.opener.clock.advance(2)
        air.db.tick()
        assert air.db.check() == []
        return
    air.compare()
    air.crash()
    air.compare()
    if "AS SELECT sum" in sql:
        assert air.db.execute("SELECT n FROM w").rows == [(2,)]
    if "UPDATE" in sql:
        assert air.db.execute("SELECT a FROM t ORDER BY k").rows == [(1,), (0,)]
    if "INSERT INTO u" in sql:
        assert air.db.execute("SELECT k FROM u").rows == [(1,)]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE MATERIALIZED VIEW w WITH (REFRESH EVERY '1 day') AS SELECT k FROM u",
        ALTER,
        WAITS,
        "INSERT INTO u SELECT n FROM v",
    ],
)
def test_statements_that_need_the_pace_wait_for_the_tick_and_not_for_the_lock(air, sql):
    air.insert(2)
    with air.tick() as flying:
        statement = air.later(sql)
        air.insert(3)
    steps = air.engine.steps
    assert flying.result().upper <= air.core.world[EPOCH_MS].upper
    statement.result(LONG)
    assert air.engine.steps <= steps + 3, "the tick was not computed again"
    if sql == ALTER:  # another table has its place
        assert sorted(air.db.execute("SELECT k, b FROM t").rows) == [(2, None), (3, None)]
    else:
        air.compare()


def test_a_table_that_comes_is_there_at_once(air):
    air.insert(1)
    session = air.db.session()
    with air.tick() as flying:
        air.pool.submit(session.execute, "CREATE TABLE w (k INT PRIMARY KEY)").result(LONG)
        when = session.execute("INSERT INTO w VALUES (7)").timestamp
        answer = session.execute("SELECT k FROM w")
        assert (answer.rows, answer.timestamp) == ([(7,)], when)
        air.view("over", "SELECT w.k, t.a FROM w JOIN t ON t.a = w.k")
        session.execute("UPDATE w SET k = k + 1")
        assert session.execute("SELECT w.k FROM w JOIN t ON t.k < w.k").rows == [(8,)]
        assert not flying.done()
    air.compare()
    air.crash()
    air.compare()
    assert air.db.execute("SELECT * FROM over").rows == []
    assert air.db.execute("SELECT * FROM w").rows == [(8,)]


def test_a_view_that_comes_has_what_the_tick_brings(air):
    """At every time that the tick closes, not only at the last."""
    air.insert(3)
    air.delete(3)
    for k in range(8):
        air.insert(k)
    with air.tick():
        air.view("sums", "SELECT a, sum(k) AS s, max(k) AS m FROM t GROUP BY a")
        air.view("above", "SELECT sum(s) AS s FROM sums")
        air.view("pairs", "SELECT x.k, y.k AS l FROM t AS x JOIN t AS y ON x.a = y.a")
        air.insert(9)
    state = air.core.world[EPOCH_MS]
    first = air.core.world.catalog.find(("sums",)).id
    assert int(state.upper) - int(state.sinces[first].element()) > 5
    air.compare()
    air.crash()
    air.compare()


def test_objects_that_go_and_come_again_while_it_computes(air):
    air.db.execute("CREATE INDEX by_a ON t (a)")
    air.view("sums", "SELECT a, sum(k) AS s FROM t GROUP BY a")
    air.insert(1, 2, 3)
    session = air.db.session()
    with air.tick() as flying:
        for sql in ("DROP INDEX by_a", "DROP MATERIALIZED VIEW sums", "CREATE INDEX by_a ON t (a)"):
            air.pool.submit(session.execute, sql).result(LONG)
        air.view("sums", "SELECT a, sum(k) AS s FROM t GROUP BY a")
        air.insert(4)
        assert not flying.done()
    assert len(air.core.world[EPOCH_MS].wal.pending) == 1
    air.compare()
    assert sorted(air.db.execute("SELECT k FROM t WHERE a = 0").rows) == [(1,), (2,), (3,), (4,)]
    air.crash()
    air.compare()
    assert sorted(air.db.execute("SELECT k FROM t WHERE a = 0").rows) == [(1,), (2,), (3,), (4,)]


@pytest.mark.parametrize("crash", [True, False])
def test_what_is_pending_for_a_table_goes_with_it(air, crash, monkeypatch):
    monkeypatch.setattr("reclock.engine.write.INLINE_BYTES", 0)
    air.insert(1)
    session = air.db.session()
    session.execute("INSERT INTO u VALUES (1)")
    with air.tick() as flying:
        session.execute("INSERT INTO u VALUES (2)")
        air.pool.submit(session.execute, "DROP TABLE u").result(LONG)
        assert session.execute("SELECT * FROM something").rows == [(1,)]
        session.execute("CREATE TABLE u (k INT)")
        session.execute("INSERT INTO u VALUES (3)")
        assert session.execute("SELECT * FROM u").rows == [(3,)]
        assert not flying.done()
        if crash:
            air.core.flights.cancel()
    if crash:
        air.crash()
    assert air.db.execute("SELECT * FROM u").rows == [(3,)]
    air.compare()
    assert air.db.execute("SELECT * FROM u").rows == [(3,)]


def test_a_write_of_a_query_counts_what_is_pending(air):
    air.insert(1)
    session = air.db.session()
    with air.tick() as flying:
        air.insert(2)
        before = session.execute("SELECT * FROM t").timestamp
        run = air.pool.submit(session.execute, "UPDATE t SET a = a + 10 RETURNING k, a")
        done = run.result(LONG)
        assert sorted(done.rows) == [(1, 10), (2, 10)]
        assert done.timestamp > max(before, air.core.flights.closing(EPOCH_MS))
        air.insert(3)
        run = air.pool.submit(session.execute, "DELETE FROM t WHERE a = 0")
        assert run.result(LONG).tag == "DELETE 1"
        air.written.append((int(run.result().timestamp), 3, -1))
        assert not flying.done()
    air.compare()
    for time, rows in (
        (done.timestamp - 1, [(1, 0), (2, 0)]),
        (done.timestamp, [(1, 10), (2, 10)]),
    ):
        assert air.db.execute(f"SELECT k, a FROM t ORDER BY k AS OF {time}").rows == rows
    assert air.db.execute("SELECT k, a FROM t ORDER BY k").rows == [(1, 10), (2, 10)]


def test_objects_wait_for_a_tick_that_was_fitted_often(air, monkeypatch):
    """Whoever makes objects without end does not keep a tick from landing."""
    monkeypatch.setattr(flights, "REFITS", 1)
    air.insert(1)
    session, follow, made = air.db.session(), air.engine.follow, []

    def another(*args, **more):
        made.append(air.pool.submit(session.execute, f"CREATE INDEX i{len(made)} ON t (a, k)"))
        if len(made) <= 1:
            made[-1].result(LONG)
        else:
            sleep(0.2)
            assert not made[-1].done()
        return follow(*args, **more)

    with air.tick() as flying:
        air.view("w0", "SELECT count(*) AS n FROM t")
        monkeypatch.setattr(air.engine, "follow", another)
        air.engine.going.set()
        flying.result(LONG)
    monkeypatch.setattr(air.engine, "follow", follow)
    for one in made:
        one.result(LONG)
    assert len(made) == 2
    air.compare()


DDL = (
    "CREATE TABLE w (k INT)",
    "CREATE MATERIALIZED VIEW w AS SELECT a, count(*) AS n FROM t GROUP BY a",
    "DROP TABLE u",
)


@pytest.mark.parametrize("restart", [True, False], ids=["crash", "go on"])
@pytest.mark.parametrize("sql", DDL)
@pytest.mark.parametrize(
    "point",
    [
        *("ddl.publish.before", "ddl.publish.after"),
        *("durable.append.before", "durable.commit.before", "durable.commit.after"),
    ],
)
def test_a_crash_of_a_change_of_the_catalog_beside_a_tick(air, point, sql, restart):
    air.insert(1, 2)
    air.db.execute("INSERT INTO u VALUES (1)")
    with air.tick() as flying:
        run = air.pool.submit
        with armed({point: "raise"}):
            failed = run(air.db.session().execute, sql).exception(LONG)
        assert isinstance(failed, FailpointRaised)
        air.insert(3)
        if restart:
            air.core.flights.cancel()
    if restart:
        assert isinstance(flying.exception(), Interrupted)
        air.crash()
    else:
        assert flying.exception() is None
    if "AS SELECT" in sql:
        air.queries["w"] = "SELECT a, count(*) AS n FROM t GROUP BY a"
    happened = "after" in point
    name = ("u",) if "DROP" in sql else ("w",)
    assert (air.core.world.catalog.find(name) is not None) is (happened != ("DROP" in sql))
    if not happened:
        air.db.execute(sql)
    air.insert(4)
    air.compare()


@pytest.mark.parametrize("restart", [True, False], ids=["crash", "go on"])
@pytest.mark.parametrize(
    "point",
    [
        *("tick.land.before", "tick.refit.after", "tick.publish.before", "tick.publish.after"),
        *("durable.append.before", "durable.commit.before", "durable.commit.after"),
        "arrangement.segment.after_rename",
    ],
)
def test_a_crash_of_a_tick_that_is_fitted(air, point, restart, monkeypatch):
    monkeypatch.setattr("reclock.engine.arrangements.INLINE_BYTES", 0)
    air.insert(1, 2, 3)
    air.delete(2)
    air.db.execute("INSERT INTO u VALUES (1)")
    with air.tick() as flying:
        air.view("w", "SELECT a, count(*) AS n FROM t GROUP BY a")
        air.pool.submit(air.db.session().execute, "DROP TABLE u").result(LONG)
        air.pool.submit(air.db.session().execute, "CREATE TABLE more (k INT)").result(LONG)
        air.insert(4)
        armed_now = armed({point: "raise"})
        armed_now.__enter__()
    armed_now.__exit__(None, None, None)
    if point == "tick.refit.after":
        assert flying.exception() is None, "it was run again, from what is there now"
    else:
        assert isinstance(flying.exception(), FailpointRaised)
    if restart:
        air.crash()
    air.insert(6)
    air.compare()
    air.crash()
    air.compare()


def test_a_statement_that_waits_can_be_cancelled_and_times_out(air):
    air.insert(1)
    with air.tick() as flying:
        session = air.db.session()
        statement = air.pool.submit(session.execute, WAITS)
        sleep(0.1)
        begun = monotonic()
        session.interrupt.set(Interrupted("enough"))
        with pytest.raises(Interrupted, match="enough"):
            statement.result(LONG)
        assert monotonic() - begun < 5
        session = air.db.session()
        session.execute("SET statement_timeout = '100ms'")
        with pytest.raises(StatementTimeout, match="no turn"):
            session.execute(WAITS)
        assert not flying.done()
    air.compare()


def test_too_many_writes_wait_for_the_tick(air, monkeypatch):
    monkeypatch.setattr(turn, "MOST_PENDING", 4)
    air.insert(50)
    with air.tick():
        for k in range(3):
            air.insert(k)
        waiting = air.pool.submit(air.insert, 99)
        sleep(0.1)
        assert not waiting.done()
    waiting.result(LONG)
    air.compare()


def test_who_holds_the_lock_gets_ahead_and_the_tick_is_dropped(air):
    air.insert(1)
    with air.tick() as flying:
        air.insert(2)
        with air.core.writing():
            ahead = settle(air.core, EPOCH_MS)
            assert ahead.settled
            air.insert(3)
        air.insert(4)
    assert flying.result().upper >= ahead.upper
    air.compare()


def test_a_tick_whose_files_are_gone_because_somebody_got_ahead_is_no_failure(air):
    air.insert(1)
    with air.tick(fails=FileNotFoundError("gone")) as flying, air.core.writing():
        settle(air.core, EPOCH_MS)
    assert flying.exception() is None
    air.compare()


def test_an_error_while_it_computes_is_raised_and_nothing_has_happened(air):
    air.insert(1)
    upper = air.core.world[EPOCH_MS].upper
    with air.tick(fails=ValueError("no")) as flying:
        air.insert(2)
    with pytest.raises(ValueError, match="no"):
        flying.result()
    assert air.core.world[EPOCH_MS].upper == upper
    air.compare()


@pytest.mark.parametrize("point", ["durable.append.before", "durable.commit.after"])
def test_a_world_that_is_read_again_meanwhile(air, point):
    """A write whose end nobody knows: the tick began before, and is run again."""
    air.insert(1)
    with air.tick() as flying:
        with armed({point: "raise"}), pytest.raises(FailpointRaised):
            air.db.session().execute("INSERT INTO t VALUES (5, 0)")
        air.insert(2)
    assert flying.exception() is None
    rows = air.db.execute("SELECT k FROM t ORDER BY k").rows
    assert rows == ([(1,), (2,), (5,)] if "after" in point else [(1,), (2,)])
    assert air.db.check() == []


@pytest.mark.parametrize("restart", [True, False], ids=["crash", "go on"])
@pytest.mark.parametrize(
    "point",
    [
        *("tick.compute.before", "tick.land.before", "tick.publish.before", "tick.publish.after"),
        *("durable.append.before", "durable.commit.before", "durable.commit.after"),
        "arrangement.segment.after_rename",
    ],
)
def test_a_crash_in_every_phase_loses_nothing(air, point, restart, monkeypatch):
    monkeypatch.setattr("reclock.engine.arrangements.INLINE_BYTES", 0)
    air.insert(1, 2, 3)
    air.delete(2)
    if point == "tick.compute.before":
        with armed({point: "raise"}), pytest.raises(FailpointRaised):
            tick(air.core, EPOCH_MS)
        air.insert(4)
    else:
        with air.tick() as flying:
            air.insert(4)
            armed_now = armed({point: "raise"})
            armed_now.__enter__()
        armed_now.__exit__(None, None, None)
        assert isinstance(flying.exception(), FailpointRaised)
    if restart:
        air.crash()
    air.insert(6)
    air.compare()


def test_a_crash_while_it_computes_loses_nothing(air):
    air.insert(1)
    with air.tick() as flying:
        air.insert(2)
        air.core.flights.cancel()
    with pytest.raises(Interrupted):
        flying.result()
    air.crash()
    air.insert(3)
    air.compare()


def test_merges_finish_meanwhile(air):
    for k in range(20):
        air.insert(k)
        air.opener.clock.advance(1)
        air.db.tick()
    air.insert(100)
    with air.tick():
        air.core.merger.wait()
        air.insert(101)
    air.compare()
    assert max(len(r) for r in air.core.world[EPOCH_MS].arrangements.runs.values()) < 20


def test_an_expiration_is_renewed_by_a_tick_without_the_lock(air):
    air.db.execute("CREATE MATERIALIZED VIEW soon AS SELECT k FROM t WHERE mz_now() <= 1000 + k")
    air.insert(10, 500)
    air.db.execute("ALTER SYSTEM SET compute_replica_expiration_offset = '100ms'")
    with air.tick():
        air.insert(12)
        air.db.execute("ALTER SYSTEM SET compute_replica_expiration_offset = '200ms'")
    air.db.execute("ALTER SYSTEM SET expiration_renewal = on")
    for n in range(30):
        air.insert(20 * n + 13)
        with air.tick():
            air.opener.clock.advance(10)
            air.insert(20 * n + 14)
        tick(air.core, EPOCH_MS, regular=True)
        time = air.core.world[EPOCH_MS].upper.back()
        got = air.db.execute(f"SELECT k FROM soon ORDER BY k AS OF {time}").rows
        assert got == [(k,) for k in air.rows(time) if time <= 1000 + k]
    air.compare()


def test_records_get_their_times_without_the_lock(air, tmp_path, monkeypatch):
    lines = tmp_path / "lines.txt"
    lines.write_text("a\nb\n")
    air.db.execute(f"CREATE SOURCE s (line TEXT) FROM FILE '{lines}' FORMAT TEXT")
    lines.write_text("a\nb\nc\n")
    stamp, written = staging.stamp, []

    def stamped(*args):
        written.append(air.pool.submit(air.insert, 1).result(LONG))  # it needs the lock
        return stamp(*args)

    monkeypatch.setattr(staging, "stamp", stamped)
    air.opener.clock.advance(1_000)
    tick(air.core, EPOCH_MS, regular=True)
    assert len(written) == 1
    assert sorted(air.db.execute("SELECT * FROM s").rows) == [("a",), ("b",), ("c",)]
    air.compare()


def test_a_source_that_is_dropped_or_altered_meanwhile(air):
    topic = air.opener.kafka.create_topic(1)
    air.db.execute(f"CREATE SOURCE s (n INT) FROM KAFKA BROKER 'b:1' TOPIC '{topic}' FORMAT JSON")
    records = [Record(json.dumps({"n": n}).encode()) for n in range(4)]
    air.opener.kafka.produce(topic, 0, *records[:2])
    air.insert(1)
    with air.tick():
        air.opener.kafka.produce(topic, 0, *records[2:])
        altered = air.later("ALTER SOURCE s SET (on_error = 'skip')")
        air.insert(2)
    altered.result(LONG)
    air.opener.clock.advance(2)
    air.db.tick()
    assert air.db.execute("SELECT n FROM s ORDER BY n").rows == [(0,), (1,), (2,), (3,)]
    air.opener.kafka.produce(topic, 0, *records)
    with air.tick():
        dropped = air.later("DROP SOURCE s")
        air.insert(3)
    dropped.result(LONG)
    air.compare()


def test_closing_stops_the_tick_under_way(opener):
    air = Air(opener, background=True)
    air.engine.arm()
    air.insert(1)
    air.core.loop.wake(EPOCH_MS, air.core.world[EPOCH_MS].table_upper)
    assert air.engine.inside.wait(LONG)
    air.insert(2)
    begun = monotonic()
    air.db.close()
    assert monotonic() - begun < 5
    air.open()
    air.compare()


def test_other_paces_tick_while_one_computes(opener):
    air = Air(opener, background=True)
    other = opener.kafka.create_topic(1)
    air.db.execute(
        f"CREATE SOURCE own (n BIGINT) FROM KAFKA BROKER 'b:1' TOPIC '{other}' FORMAT JSON "
        "ENVELOPE MATERIALIZE WITH (epoch_ms_timeline = true)"
    )
    own = air.core.world.pace(air.core.world.catalog.find(("own",)))
    air.db.execute("ALTER SYSTEM SET timestamp_interval = '20ms'")
    air.insert(1)
    air.engine.arm()
    air.opener.clock.advance(50)
    assert air.engine.inside.wait(LONG)
    altered = air.later("ALTER TABLE t ADD COLUMN b INT")
    opener.kafka.produce(other, 0, *stated())
    deadline = monotonic() + LONG
    while air.core.world[own].upper <= 900:
        assert monotonic() < deadline
        sleep(0.01)
    assert air.core.flights.among([EPOCH_MS])
    session = air.db.session()
    assert session.execute("SELECT n FROM own AS OF 900").rows == [(7,)]
    strict = air.pool.submit(session.execute, "SELECT * FROM v")
    sleep(0.1)
    assert not strict.done()
    assert not altered.done()
    air.engine.going.set()
    assert strict.result(LONG).rows == [(1, 1)]
    altered.result(LONG)


def stated():
    said = (
        {"array": [{"data": {"n": 7}, "time": 900, "diff": 1}]},
        {"progress": {"lower": [0], "upper": [901], "counts": [{"time": 900, "count": 1}]}},
    )
    return [Record(json.dumps(message).encode()) for message in said]


def test_a_role_may_not_what_it_lost_while_it_waited(air):
    air.db.execute("CREATE ROLE someone")
    air.db.execute("CREATE ROLE other")
    for kept in (True, False):
        air.db.execute("ALTER TABLE t OWNER TO someone")
        air.insert(1 + kept)
        with air.tick() as flying:
            sql = ALTER.replace(" b ", f" b{kept:d} ")
            statement = air.pool.submit(air.db.session("someone").execute, sql)
            sleep(0.1)
            assert not statement.done()
            if not kept:
                air.db.session().execute("ALTER TABLE t OWNER TO other")
            assert not flying.done()
        if kept:
            statement.result(LONG)
        else:
            with pytest.raises(Error, match="owner") as refused:
                statement.result(LONG)
            assert refused.value.code == "42501"


meanwhile = st.one_of(
    st.tuples(st.just("insert"), st.integers(0, 9)),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.just("update"), st.integers(0, 9)),
    st.tuples(st.just("clock"), st.integers(-3, 5)),
    st.tuples(st.just("settle")),
    st.tuples(st.just("view"), st.sampled_from(["t", "u", "join", "nested"])),
    st.tuples(st.just("table")),
    st.tuples(st.just("index"), st.booleans()),
    st.tuples(st.just("drop"), st.integers(0, 9)),
    st.tuples(st.just("fill")),
    st.tuples(st.just("stale")),
    st.tuples(st.just("merge")),
    st.tuples(st.just("read")),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    flights=st.lists(st.lists(meanwhile, max_size=6), min_size=1, max_size=4), ends=st.booleans()
)
def test_whatever_happens_meanwhile(make_opener, flights, ends):
    """In any order, while it computes; only where somebody got ahead of the tick they wait for it.

    With ``ends`` the process dies while the last tick computes.
    """
    air = Air(make_opener())
    try:
        for n, steps in enumerate(flights, 1):
            waiting = []
            with air.tick() as flying:
                for what, *more in steps:
                    waiting += do(air, what, *more)
                if ends and n == len(flights):
                    air.core.flights.cancel()
            flying.exception(LONG)
            for statement in waiting:
                statement.exception(LONG)
        if ends:
            air.crash()
        air.compare()
        air.crash()
        air.compare()
    finally:
        air.engine.going.set()
        air.pool.shutdown()
        air.db.close()


VIEWS = {
    "t": "SELECT count(*) AS n, sum(k) AS s, max(a) AS a FROM t",
    "u": "SELECT k FROM u",
    "join": "SELECT t.k, t.a, u.k AS l FROM t JOIN u ON t.a = u.k",
    "nested": "SELECT sum(n) AS n FROM (SELECT a, count(*) AS n FROM t GROUP BY a) AS x",
}


def do(air, what, *more):
    session = air.db.session()
    match what, more:
        case "insert", [k]:
            if k not in air.rows(2**60):
                try:
                    air.insert(k)
                except Error as error:
                    assert "duplicate" in str(error), error  # noqa: PT017 - a delete waits
        case "clock", [ms]:
            air.opener.clock.set(max(0, air.opener.clock.now_ms() + ms))
        case "settle", []:
            with air.core.writing():
                settle(air.core, EPOCH_MS)
        case "fill", []:
            for item in air.core.world.catalog.items.values():
                if item.name.startswith("x"):
                    session.execute(f"INSERT INTO {item.name} VALUES (0)")
            session.execute("INSERT INTO u VALUES (0), (1)")
        case "stale", []:
            with armed({"durable.append.before": "raise"}), pytest.raises(FailpointRaised):
                session.execute("INSERT INTO u VALUES (1)")
        case "merge", []:
            air.core.merger.wait()
        case "read", []:
            session.execute("SET transaction_isolation = 'serializable'")
            session.execute("SELECT * FROM t")
        case _:
            return [begun(air, what, *more)]
    return []


def begun(air, what, *more):
    """Begin a statement; it ends while the tick computes, if that can land on what it makes."""
    flying = air.core.flights.of(EPOCH_MS)
    at_once = flying.fits(air.core.world) and flying.lets_join and not air.core._stale
    catalog = air.core.world.catalog
    name = f"w{catalog.version}"
    match what, more:
        case "delete", [k]:
            statement = air.pool.submit(air.delete, k)
        case "view", [kind]:
            statement = air.pool.submit(air.view, name, VIEWS[kind])
        case "update", [k]:
            statement = air.later_or_now(f"UPDATE t SET a = a + 1 WHERE k >= {k}")
        case "table", []:
            statement = air.later_or_now(f"CREATE TABLE x{name} (k INT)")
        case "index", [same]:
            on = "t (a)" if same else "v (n)"
            statement = air.later_or_now(f"CREATE INDEX {name} ON {on}")
        case "drop", [n]:
            there = {i.name: i.kind for i in catalog.items.values()}
            names = sorted(there.keys() - {"t", "u", "something"})
            chosen = names[n % len(names)] if names else "none"
            kind = there.get(chosen, "table")
            statement = air.later_or_now(f"DROP {kind} IF EXISTS {chosen} CASCADE")
    if at_once:
        statement.exception(LONG)
        assert air.core.flights.of(EPOCH_MS) is flying
    return statement
