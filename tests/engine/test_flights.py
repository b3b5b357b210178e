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

from reclock.engine.tick import settle, tick
from reclock.errors import Error, Interrupted, StatementTimeout, UndefinedName
from reclock.ingest import staging
from reclock.session.statements import context as turn
from reclock.testing.failpoints import FailpointRaised, armed
from reclock.testing.kafka_conformance import Record
from reclock.testing.local_engine import LocalEngine
from reclock.time.timeline import EPOCH_MS

LONG = 20
"""Seconds until a test gives up."""


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

    def later(self, sql):
        """Run a statement that waits for the tick; return what it will give."""
        statement = self.pool.submit(self.db.session().execute, sql)
        sleep(0.1)
        assert not statement.done(), statement.result()
        return statement

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
        "CREATE TABLE w (k INT)",
        "CREATE MATERIALIZED VIEW w AS SELECT k FROM u",
        "CREATE MATERIALIZED VIEW w AS SELECT sum(n) AS n FROM v",
        "CREATE INDEX w ON t (a)",
        "DROP MATERIALIZED VIEW v",
        "DROP TABLE u",
        "ALTER TABLE t SET (RETAIN HISTORY FOR '2h')",
        "UPDATE t SET a = a + 1",
        "DELETE FROM u",
    ],
)
def test_statements_that_need_the_pace_wait_for_the_tick_and_not_for_the_lock(air, sql):
    air.insert(1)
    with air.tick() as flying:
        statement = air.later(sql)
        air.insert(2)
    steps = air.engine.steps
    assert flying.result().upper <= air.core.world[EPOCH_MS].upper
    statement.result(LONG)
    assert air.engine.steps <= steps + 3, "the tick was not computed again"
    air.compare()
    if "AS SELECT sum" in sql:
        assert air.db.execute("SELECT n FROM w").rows == [(2,)]


def test_a_statement_that_waits_can_be_cancelled_and_times_out(air):
    air.insert(1)
    with air.tick() as flying:
        session = air.db.session()
        statement = air.pool.submit(session.execute, "DROP TABLE t CASCADE")
        sleep(0.1)
        begun = monotonic()
        session.interrupt.set(Interrupted("enough"))
        with pytest.raises(Interrupted, match="enough"):
            statement.result(LONG)
        assert monotonic() - begun < 5
        session = air.db.session()
        session.execute("SET statement_timeout = '100ms'")
        with pytest.raises(StatementTimeout, match="no turn"):
            session.execute("DROP TABLE t CASCADE")
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
    dropped = air.later("DROP TABLE u")
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
    assert not dropped.done()
    air.engine.going.set()
    assert strict.result(LONG).rows == [(1, 1)]
    dropped.result(LONG)


def stated():
    said = (
        {"array": [{"data": {"n": 7}, "time": 900, "diff": 1}]},
        {"progress": {"lower": [0], "upper": [901], "counts": [{"time": 900, "count": 1}]}},
    )
    return [Record(json.dumps(message).encode()) for message in said]


def test_a_role_may_not_what_it_lost_while_it_waited(air):
    air.db.execute("CREATE ROLE someone")
    air.db.execute("ALTER TABLE u OWNER TO someone")
    air.insert(1)
    with air.tick():
        statement = air.pool.submit(air.db.session("someone").execute, "DROP TABLE u")
        sleep(0.1)
        assert not statement.done()
    statement.result(LONG)
    with pytest.raises(UndefinedName):
        air.db.execute("SELECT * FROM u")


meanwhile = st.one_of(
    st.tuples(st.just("insert"), st.integers(0, 9)),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.just("clock"), st.integers(-3, 5)),
    st.tuples(st.just("settle")),
    st.tuples(st.just("view"), st.booleans()),
    st.tuples(st.just("drop")),
    st.tuples(st.just("stale")),
    st.tuples(st.just("merge")),
    st.tuples(st.just("read")),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(flights=st.lists(st.lists(meanwhile, max_size=5), min_size=1, max_size=4))
def test_whatever_happens_meanwhile(make_opener, flights):
    """Statements that wait are begun while it computes, in any order, and end after it."""
    air = Air(make_opener())
    try:
        for steps in flights:
            waiting = []
            with air.tick():
                for what, *more in steps:
                    waiting += do(air, what, *more)
            for statement in waiting:
                statement.exception(LONG)
        air.compare()
        air.crash()
        air.compare()
    finally:
        air.engine.going.set()
        air.pool.shutdown()
        air.db.close()


def do(air, what, *more):
    session = air.db.session()
    match what, more:
        case "insert", [k]:
            if k not in air.rows(2**60):
                try:
                    air.insert(k)
                except Error as error:
                    assert "duplicate" in str(error), error  # noqa: PT017 - a delete waits
        case "delete", [k]:
            return [air.pool.submit(air.delete, k)]
        case "clock", [ms]:
            air.opener.clock.set(max(0, air.opener.clock.now_ms() + ms))
        case "settle", []:
            with air.core.writing():
                settle(air.core, EPOCH_MS)
        case "view", [same]:
            query = "SELECT count(*) AS n FROM t" if same else "SELECT k FROM u"
            name = f"w{len(air.core.world.catalog.items)}"
            return [air.pool.submit(session.execute, f"CREATE MATERIALIZED VIEW {name} AS {query}")]
        case "drop", []:
            return [air.pool.submit(session.execute, "DROP MATERIALIZED VIEW IF EXISTS v")]
        case "stale", []:
            with armed({"durable.append.before": "raise"}), pytest.raises(FailpointRaised):
                session.execute("INSERT INTO u VALUES (1)")
        case "merge", []:
            air.core.merger.wait()
        case "read", []:
            session.execute("SET transaction_isolation = 'serializable'")
            session.execute("SELECT * FROM t")
    return []
