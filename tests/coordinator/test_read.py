"""Reads: errors of views, times, settings, and waiting for the background loop."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from reclock.errors import ExpressionFailed, NotSupported, StatementTimeout, StorageError
from reclock.testing.failpoints import FailpointRaised, armed


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


def test_as_of_is_of_a_later_version(ratios):
    with pytest.raises(NotSupported, match="AS OF is not supported"):
        ratios.execute("SELECT * FROM t AS OF 5")


def test_a_read_waits_for_the_background_loop(opener):
    db = opener(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '20ms'")
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    assert db.execute("SELECT a FROM t").rows == [(1,)]


def test_a_read_waits_no_longer_than_its_timeout(opener):
    db = opener(background=True)
    db.execute("SET statement_timeout = '50ms'; CREATE TABLE t (a INT)")
    db.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(StatementTimeout) as caught:
        db.execute("SELECT a FROM t")
    assert caught.value.code == "57014"
    assert "t (upper " in caught.value.detail


def test_who_waits_is_told_why_the_loop_fails_and_it_goes_on(opener):
    db = opener(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '20ms'")
    db.execute("CREATE TABLE t (a INT)")
    with armed({"tick.compute.before": "raise"}):
        db.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(FailpointRaised):
            db.execute("SELECT a FROM t")
    for _ in range(100):
        try:
            assert db.execute("SELECT a FROM t").rows == [(1,)]
            break
        except FailpointRaised:  # until the loop has ticked once more
            sleep(0.02)
    assert db._core.loop.failure is None


def test_who_waits_while_the_database_closes_is_told(opener):
    db = opener(background=True)
    db.execute("CREATE TABLE t (a INT)")
    db.execute("ALTER SYSTEM SET timestamp_interval = '60000ms'")
    sleep(1.2)  # the pause that has begun is of the old length
    db.execute("INSERT INTO t VALUES (1)")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(db.execute, "SELECT a FROM t")
        sleep(0.1)
        db.close()
        with pytest.raises(StorageError, match="closed"):
            waiting.result()


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
