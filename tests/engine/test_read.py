"""Reads: errors of views, times, settings, and waiting for the background loop."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from time import monotonic, sleep

import pytest

from reclock.engine.leaves import leaves_of
from reclock.errors import Error, ExpressionFailed, InvalidValue, StatementTimeout, Unreadable
from reclock.session.plans import plan_once
from reclock.sql.parse import parse_statement
from reclock.time.frontier import at
from reclock.time.timeline import EPOCH_MS


@pytest.fixture
def ratios(db):
    db.execute("CREATE TABLE t (k INT, a INT)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT k, 10 / a AS r FROM t")
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM t")
    db.execute("INSERT INTO t VALUES (1, 5)")
    return db


def test_a_view_with_an_error_reports_it_until_the_row_is_gone(ratios, opener):
    assert ratios.execute("SELECT * FROM v").rows == [(1, 2)]
    ratios.execute("INSERT INTO t VALUES (2, 0)")
    for restart in (False, True):
        db = opener.reopened(ratios) if restart else ratios
        with pytest.raises(ExpressionFailed) as caught:
            db.execute("SELECT * FROM v")
        assert caught.value.code == "22012"
        assert "materialized view v" in caught.value.detail
        assert db.execute("SELECT * FROM w").rows == [(2,)]
    db.execute("DELETE FROM t WHERE a = 0")
    assert db.execute("SELECT * FROM v").rows == [(1, 2)]


def test_an_error_in_the_query_itself_is_only_this_querys(ratios):
    with pytest.raises(ExpressionFailed) as caught:
        ratios.execute("SELECT 1 / (a - 5) FROM t")
    assert caught.value.code == "22012"
    assert ratios.execute("SELECT * FROM v").rows == [(1, 2)]


def test_views_over_a_view_with_an_error_have_it_too(ratios):
    ratios.execute("CREATE MATERIALIZED VIEW x AS SELECT r + 1 AS s FROM v")
    ratios.execute("INSERT INTO t VALUES (2, 0)")
    with pytest.raises(ExpressionFailed):
        ratios.execute("SELECT * FROM x")


def test_a_strict_read_sees_the_write_before_it_and_a_serializable_one_does_not_wait(ratios):
    ratios.tick()
    ratios.execute("SET transaction_isolation = 'serializable'; INSERT INTO t VALUES (2, 1)")
    stale = ratios.execute("SELECT n FROM w")
    assert stale.rows == [(1,)]
    ratios.execute("RESET transaction_isolation")
    fresh = ratios.execute("SELECT n FROM w")
    assert fresh.rows == [(2,)]
    assert fresh.timestamp > stale.timestamp


def test_constants_need_no_timeline(db):
    assert db.execute("SELECT 1 + 1 AS two").rows == [(2,)]
    assert db.execute("VALUES (1, 'a'), (2, 'b')").rows == [(1, "a"), (2, "b")]


def test_results_have_names_types_and_order(ratios):
    ratios.execute("INSERT INTO t VALUES (3, 1), (2, 1)")
    result = ratios.execute("SELECT k AS key, a FROM t ORDER BY k DESC LIMIT 2")
    assert result.columns == ("key", "a")
    assert result.rows == [(3, 1), (2, 1)]
    assert result.tag == "SELECT 2"
    assert [str(c.type) for c in result.schema] == ["integer", "integer"]


# AS OF.


@pytest.fixture
def history(db, opener):
    """Five rows, written a second apart; returns the times of the writes."""
    db.execute("CREATE TABLE t (a INT, b INT)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    times = []
    for n in range(5):
        opener.clock.advance(1_000)
        times.append(db.execute(f"INSERT INTO t VALUES ({n}, {n})").timestamp)
    opener.clock.advance(1_000)
    db.tick()
    return times


def test_any_time_that_is_kept_can_be_read(db, history, opener):
    for restart in (False, True):
        again = opener.reopened(db) if restart else db
        for count, time in enumerate(history, 1):
            for shift in (0, 1, 999):
                answer = again.execute(f"SELECT n FROM v AS OF {time + shift}")
                assert (answer.rows, answer.timestamp) == ([(count,)], time + shift)
            assert len(again.execute(f"SELECT * FROM t AS OF {time}").rows) == count


def test_as_of_takes_dates_in_the_timeline_that_has_them(db, history):
    assert history[1] < 3_500 < history[2]
    for text in ("1970-01-01 00:00:03.5", "1970-01-01T03:00:03.500+03:00", "3500"):
        answer = db.execute(f"SELECT n FROM v AS OF '{text}'")
        assert (answer.rows, answer.timestamp) == ([(2,)], 3_500)
    db.execute("CREATE TABLE m (a INT) WITH (timeline = 'mine')")
    with pytest.raises(InvalidValue, match="not a time of timeline User"):
        db.execute("SELECT * FROM m AS OF '1970-01-01'")
    for wrong, code in (("'soon'", "22P02"), ("'1969-12-31'", "22023"), (str(2**63), "22008")):
        with pytest.raises(Error) as caught:
            db.execute(f"SELECT * FROM t AS OF {wrong}")
        assert caught.value.code == code


@pytest.mark.parametrize(
    "time",
    [
        3_500, "3500", "1970-01-01T03:00:03.500+03:00",
        datetime(1970, 1, 1, 0, 0, 3, 500_000),  # noqa: DTZ001  without a zone: in UTC
        datetime(1970, 1, 1, 3, 0, 3, 500_000, tzinfo=timezone(timedelta(hours=3))),
    ],
)  # fmt: skip
def test_a_time_may_be_a_parameter(db, history, time):
    answer = db.execute("SELECT n + $1 FROM v AS OF $2", (10, time))
    assert (answer.rows, answer.timestamp) == ([(12,)], 3_500)
    assert db.execute("SELECT n FROM v AS OF AT LEAST $1", (time,)).rows == [(5,)]
    assert list(db.copy("COPY (SELECT n FROM v AS OF $1) TO STDOUT", (time,))) == ["2\n"]
    (explained,) = db.execute("EXPLAIN TIMESTAMP FOR SELECT n FROM v AS OF $1", (time,)).rows[0]
    assert "timestamp: 3500" in explained
    with db.session() as session:
        session.execute("BEGIN; SELECT n FROM v AS OF $1", (time,))
        assert session.execute("SELECT n FROM v").rows == [(2,)]


@pytest.mark.parametrize(
    ("given", "code"),
    [((), "42P02"), ((None,), "42804"), ((True,), "42804"), ((1.5,), "42804"), ((-1,), "22023")],
)
def test_a_parameter_that_is_no_time_is_refused(db, history, given, code):
    for sql in ("SELECT * FROM t AS OF $1", "SELECT * FROM t AS OF AT LEAST $1"):
        with pytest.raises(Error) as caught:
            db.execute(sql, given)
        assert caught.value.code == code
    for sql in ("SUBSCRIBE t AS OF $1", "SUBSCRIBE t UP TO $1"):
        with pytest.raises(Error) as caught:
            db.subscribe(sql, given)
        assert caught.value.code == code


def test_as_of_at_least_takes_a_fresher_time_that_needs_no_wait(db, history):
    upper = db._core.world[EPOCH_MS].upper
    answer = db.execute(f"SELECT n FROM v AS OF AT LEAST {history[0]}")
    assert (answer.rows, answer.timestamp) == ([(5,)], upper - 1)


def test_before_since_every_input_is_named(db, history, opener):
    opener.clock.advance(10_000)
    db.execute("CREATE MATERIALIZED VIEW late AS SELECT a FROM t")
    with pytest.raises(Unreadable) as caught:
        db.execute(f"SELECT * FROM late, v AS OF {history[3]}")
    since = db._core.world[EPOCH_MS].sinces
    assert caught.value.detail == f"late has since {since['u3']}, v has since {since['u2']}"
    assert str(since["u3"].element()) in caught.value.hint
    assert db.execute(f"SELECT n FROM v AS OF {history[3]}").rows == [(4,)]


def test_what_compaction_may_forget_cannot_be_read_whether_it_has_or_not(db, history, opener):
    db.execute("ALTER SYSTEM SET logical_compaction_window = '3s'")
    opener.clock.advance(1_000)
    db.tick()
    with pytest.raises(Unreadable, match="compacted away"):
        db.execute(f"SELECT n FROM v AS OF {history[0]}")
    assert db.execute(f"SELECT n FROM v AS OF {history[4]}").rows == [(5,)]


def test_without_a_loop_a_time_that_the_clock_has_not_reached_is_refused(db, history, opener):
    upper = db._core.world[EPOCH_MS].upper
    with pytest.raises(Unreadable) as caught:
        db.execute("SELECT n FROM v AS OF 60000")
    assert f"v (upper {upper}, " in caught.value.detail
    assert "clock" in caught.value.hint
    with pytest.raises(Unreadable):
        db.execute("SELECT n FROM v AS OF AT LEAST 60000")
    assert db._core.holds.rows() == ()
    opener.clock.set(59_500)
    answer = db.execute("SELECT n FROM v AS OF 60000")
    assert (answer.rows, answer.timestamp) == ([(5,)], 60_000)


def test_a_timeline_without_a_clock_does_not_hang(db):
    db.execute("CREATE TABLE m (a INT) WITH (timeline = 'mine')")
    time = db.execute("INSERT INTO m VALUES (1)").timestamp
    assert db.execute(f"SELECT * FROM m AS OF {time}").rows == [(1,)]
    with pytest.raises(Unreadable):
        db.execute(f"SELECT * FROM m AS OF {time + 100}")


def test_constants_are_read_at_any_time(db):
    answer = db.execute("SELECT 1 AS one AS OF 17")
    assert (answer.rows, answer.timestamp) == ([(1,)], 17)


def test_an_index_that_is_younger_than_the_time_is_not_used(db, history):
    db.execute("CREATE INDEX i ON t (b)")
    state = db._core.world[EPOCH_MS]
    query = parse_statement("SELECT a FROM t WHERE b = 1").query
    plan = plan_once(query, (), db._core.world.catalog)
    shape, traces = state.shape, state.traces
    assert len(leaves_of(plan, shape, traces, state.upper.back())["u1"]) == 2
    (only,) = leaves_of(plan, shape, traces, history[2])["u1"]
    assert only.keying.key == (0, 1)
    assert db.execute(f"SELECT a FROM t WHERE b = 1 AS OF {history[2]}").rows == [(1,)]


# Waiting.


def test_a_read_waits_for_the_background_loop(opener):
    db = opener(background=True)
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    assert db.execute("SELECT a FROM t").rows == [(1,)]


def test_a_future_time_is_waited_for_and_kept_until_it_has_come(opener):
    """The clock jumps far beyond, and nothing but the reader's hold keeps its time."""
    db = opener(background=True)
    db.execute("ALTER SYSTEM SET logical_compaction_window = '0'")
    db.execute("ALTER SYSTEM SET timestamp_interval = '20ms'; CREATE TABLE t (a INT)")
    db.execute("INSERT INTO t VALUES (1)")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(db.session().execute, "SELECT a FROM t AS OF 5000")
        deadline = monotonic() + 60
        while [row.since for row in db._core.holds.rows()] != [at(5_000)]:
            assert monotonic() < deadline
            sleep(0.01)
        assert not waiting.done()
        opener.clock.set(60_000)
        answer = waiting.result()
    assert (answer.rows, answer.timestamp) == ([(1,)], 5_000)
    db.execute("INSERT INTO t VALUES (2); SELECT * FROM t")
    with pytest.raises(Unreadable):
        db.execute("SELECT a FROM t AS OF 5000")


def test_a_read_waits_no_longer_than_its_timeout(opener):
    db = opener(background=True)
    db.execute("SET statement_timeout = '50ms'; CREATE TABLE t (a INT)")
    db.execute("INSERT INTO t VALUES (1)")
    upper = db._core.world[EPOCH_MS].upper
    with pytest.raises(StatementTimeout) as caught:
        db.execute("SELECT a FROM t AS OF 90000")
    assert caught.value.code == "57014"
    assert f"t (upper {upper}" in caught.value.detail
    assert "90000" in caught.value.message
    assert db._core.holds.rows() == ()


def test_a_write_waits_no_longer_than_its_timeout_for_its_turn(db):
    db.execute("SET statement_timeout = '20ms'; CREATE TABLE t (a INT)")
    statements = (
        "INSERT INTO t VALUES (1)",
        "DELETE FROM t",
        "CREATE TABLE u (a INT)",
        "ALTER TABLE t SET (RETAIN HISTORY FOR '1h')",
    )
    with ThreadPoolExecutor(1) as pool, db._core.lock:
        for statement in statements:
            with pytest.raises(StatementTimeout, match="no turn"):
                pool.submit(db.execute, statement).result()
    assert db.execute("SELECT * FROM t").rows == []


# EXPLAIN TIMESTAMP.


def test_explain_timestamp_says_why_and_what_it_waits_for(db, opener):
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    state = db._core.world[EPOCH_MS]
    assert state.oracle.read_ts == state.upper
    (text,) = db.execute("EXPLAIN TIMESTAMP FOR SELECT * FROM t").rows[0]
    since, upper, read = state.sinces["u1"].element(), state.upper, state.oracle.read_ts
    assert text.splitlines() == [
        "   timeline: EpochMilliseconds",
        f"  timestamp: {read}",
        f"  chosen as: strict serializable: the later of since {since} and the oracle's {read}",
        f"oracle read: {read}",
        f" can answer: when t (upper {upper}, 1 behind) advances past {read}",
        f"    input t: since {{{since}}} upper {{{upper}}}",
    ]
    assert db._core.world[EPOCH_MS] is state, "it changes nothing"
    db.tick()
    (text,) = db.execute("EXPLAIN TIMESTAMP FOR SELECT * FROM t").rows[0]
    assert " can answer: now" in text
    (text,) = db.execute("EXPLAIN TIMESTAMP FOR SUBSCRIBE t AS OF 99000").rows[0]
    assert "chosen as: AS OF 99000" in text
    (text,) = db.execute("EXPLAIN TIMESTAMP FOR SELECT 1").rows[0]
    assert "timeline: none" in text


def test_a_reader_keeps_the_files_it_reads(db, opener):
    db.execute("CREATE TABLE t (a INT)")
    db.insert("t", [(n,) for n in range(5_000)])
    db.tick()
    with db._core.reading() as world:
        db.execute("DROP TABLE t")
        (state,) = world.timelines.values()
        rows = sum(b.num_rows for b in state.traces["u1"].snapshot(state.upper.back()))
        assert rows == 5_000
        assert world.named_segments() <= set(db._core.segments.names())
    with db._core.writing():
        assert db._core.collect_garbage()
    assert db._core.segments.names() == []
