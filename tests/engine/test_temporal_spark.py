"""Temporal filters through Spark: bounds of every type, one-off reads, and large ticks.

What the filter does is tested without Spark (test_temporal.py); here Spark computes the bounds.
"""

from __future__ import annotations

import pytest

import reclock
from reclock.errors import ExpressionFailed

pytestmark = pytest.mark.spark


@pytest.fixture
def clock():
    return reclock.ManualClock(1_000)


@pytest.fixture
def db(tmp_path, clock):
    with reclock.open(tmp_path, clock=clock, background=False) as db:
        db.execute("ALTER SYSTEM SET logical_compaction_window = '2 days'")
        db.execute("ALTER SYSTEM SET timestamp_interval = '1ms'")
        yield db


TESTS = {
    "mz_now() < n": 5_000,
    "b > mz_now()": 5_000,
    "mz_now() <= s": 5_001,
    "ts + INTERVAL '1 second' >= mz_now()": 6_001,
    "mz_now() < ts + i": 7_000,
    "mz_now() < tz": 5_000,
    "mz_now() < d + INTERVAL '7 s'": 7_000,
    "mz_now() < d + 1 OR mz_now() < NULL": 86_400_000,
    "mz_now() < ts OR mz_now() BETWEEN b + 1000 AND b + 2000 - 1": 7_000,
    "mz_now() < ts - INTERVAL '1 month' + INTERVAL '1 month'": 5_000,
    "mz_now() <= ts + INTERVAL '999999 microseconds'": 6_000,
}


def test_bounds_of_every_type(db, clock):
    db.execute(
        "CREATE TABLE t (n int, b bigint, s smallint, ts timestamp, tz timestamptz, d date,"
        " i interval)"
    )
    db.execute(
        "INSERT INTO t VALUES (5000, 5000, 5000, '1970-01-01 00:00:05', '1970-01-01 01:00:05+01',"
        " '1970-01-01', INTERVAL '2 seconds')"
    )
    parts = [f"SELECT {at} AS k FROM t WHERE {test}" for at, test in enumerate(TESTS)]
    text = " UNION ALL ".join(parts)
    db.execute(f"CREATE MATERIALIZED VIEW v AS {text}")
    clock.set(90_000_000)
    db.tick()
    for at, (condition, end) in enumerate(TESTS.items()):
        for time, there in ((end - 1, True), (end, False)):
            kept = db.execute(f"SELECT * FROM v AS OF {time}").rows
            assert ((at,) in kept) is there, (condition, time)
    for time in (4_999, 6_000):
        kept = db.execute(f"SELECT * FROM v AS OF {time}").rows
        assert sorted(kept) == sorted(db.execute(f"{text} AS OF {time}").rows)


def test_a_read_has_its_timestamp(db):
    db.execute("CREATE TABLE t (a int)")
    db.execute("INSERT INTO t VALUES (1)")
    made = db.execute("SELECT a, mz_now() - a, mz_now()::text FROM t WHERE mz_now() > a")
    time = int(made.timestamp)
    assert made.rows == [(1, time - 1, str(time))]


def test_a_bound_that_overflows_is_an_error_row(db):
    db.execute("CREATE TABLE t (a int, b bigint)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE mz_now() < b + 1")
    db.execute("INSERT INTO t VALUES (1, 50000), (2, 9223372036854775807)")
    with pytest.raises(ExpressionFailed) as caught:
        db.execute("SELECT * FROM v")
    assert caught.value.code == "22003"
    db.execute("UPDATE t SET b = 60000 WHERE a = 2")
    assert sorted(db.execute("SELECT * FROM v").rows) == [(1,), (2,)]


def test_a_tick_in_parts_emits_what_is_due(db, clock):
    db.execute("CREATE TABLE t (a bigint, s text)")
    db.execute(
        "CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n FROM t"
        " WHERE mz_now() BETWEEN a AND a + 999 GROUP BY s"
    )
    db.execute("INSERT INTO t SELECT 2000 + g, 'x' FROM generate_series(0, 999) AS x (g)")
    clock.set(1_500)
    db.tick()
    db.execute("ALTER SYSTEM SET execution = 'spark'")
    db.execute("INSERT INTO t SELECT 2500 + g, 'y' FROM generate_series(0, 99) AS x (g)")
    clock.set(2_700)
    db.tick()
    for time in (1_999, 2_000, 2_499, 2_500, 2_550, 2_650):
        asked = "SELECT s, count(*) FROM t WHERE mz_now() BETWEEN a AND a + 999 GROUP BY s"
        kept = sorted(db.execute(f"SELECT s, n FROM v AS OF {time}").rows)
        assert kept == sorted(db.execute(f"{asked} AS OF {time}").rows), time
