"""Transactions that the server sends before they end, and those that do not fit the memory.

The server streams every change at once here. Limits are small, so that every transaction is large:
it is kept in a file and written in slices. What is shown is the same.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest
from hypothesis import HealthCheck, given, settings
from tests.ingest.postgres.test_random import STEPS, TRANSACTIONS, follow

from engines.model_engine import ModelEngine
from engines.task_engine import TaskEngine
from reclock.ingest.postgres import intake, large, unfinished

pytestmark = pytest.mark.postgres

SERVER = {
    "debug_logical_replication_streaming": "immediate", "max_prepared_transactions": "5",
    "logical_decoding_work_mem": "64kB",
}  # fmt: skip
_FIXTURES = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def shrink(patch, size, rows):
    """Have every transaction be large."""
    patch.setattr(unfinished, "SPILL_BYTES", size)
    patch.setattr(intake, "SPILL_BYTES", size)
    patch.setattr(large, "SLICE_ROWS", rows)


@pytest.fixture(params=["streamed", "large"])
def limits(request, monkeypatch):
    if request.param == "large":
        shrink(monkeypatch, 1, 2)


def tick(db, opener, times=3):
    for _ in range(times):
        opener.clock.advance(1_000)
        db.tick()


@settings(max_examples=4, deadline=None, suppress_health_check=_FIXTURES)
@given(before=TRANSACTIONS, steps=STEPS)
def test_every_time_is_what_the_database_was(make_upstream, make_opener, limits, before, steps):
    upstream, opener = make_upstream(), make_opener()
    try:
        follow(upstream, opener, before, steps)
    finally:
        opener.close()
        opener._opened.clear()
        upstream.close()


@pytest.mark.parametrize("engine", [ModelEngine, TaskEngine])
def test_rows_are_those_of_the_database(upstream, opener, limits, engine):
    opener.engine = engine
    upstream("CREATE TABLE docs (id INT PRIMARY KEY, body TEXT, n INT)")
    upstream("CREATE TABLE bare (t TEXT)")
    upstream("ALTER TABLE bare REPLICA IDENTITY FULL")
    upstream("ALTER TABLE docs ALTER body SET STORAGE EXTERNAL")
    upstream("INSERT INTO docs SELECT i, repeat('x', 3000), 0 FROM generate_series(1, 5) i")
    upstream("INSERT INTO bare VALUES ('a'), ('b')")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS c, sum(n) AS n FROM docs")
    tick(db, opener, 1)
    upstream(
        "BEGIN; INSERT INTO docs SELECT i, repeat('y', 3000), 0 FROM generate_series(10, 20) i;"
        "UPDATE docs SET n = 1 WHERE id < 3; UPDATE docs SET n = n + 1 WHERE id IN (1, 12);"
        "SAVEPOINT a; DELETE FROM docs; TRUNCATE bare; ROLLBACK TO a;"
        "UPDATE docs SET id = 100 WHERE id = 2; UPDATE docs SET n = 7 WHERE id = 100;"
        "DELETE FROM docs WHERE id = 3; INSERT INTO bare VALUES ('c'), ('c'); COMMIT"
    )
    tick(db, opener)
    for table in ("docs", "bare"):
        theirs = upstream(f"SELECT * FROM {table}")
        assert sorted(db.execute(f"SELECT * FROM {table}").rows) == sorted(theirs)
    assert db.execute("SELECT * FROM v").rows == upstream("SELECT count(*), sum(n) FROM docs")
    upstream("BEGIN; INSERT INTO docs VALUES (200, 'z', 0); INSERT INTO bare VALUES ('d');"
             "TRUNCATE docs, bare; INSERT INTO docs VALUES (1, 'w', 3);"
             "UPDATE docs SET n = 4; INSERT INTO bare VALUES ('e'); COMMIT")  # fmt: skip
    tick(db, opener)
    assert db.execute("SELECT * FROM docs").rows == [(1, "w", 4)]
    assert db.execute("SELECT * FROM bare").rows == [("e",)]
    assert db.execute("SELECT * FROM reclock.errors").rows == []


def test_a_transaction_that_rolls_back_leaves_nothing(upstream, opener, limits):
    upstream("CREATE TABLE t (id INT PRIMARY KEY)")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    tick(db, opener, 1)
    other = upstream.connect()
    with other.cursor() as cursor:
        cursor.execute("BEGIN; INSERT INTO t SELECT generate_series(1, 100)")
        upstream("INSERT INTO t VALUES (1000)")
        tick(db, opener)  # the parts that came are kept, and not shown
        assert db.execute("SELECT * FROM t").rows == [(1000,)]
        cursor.execute("ROLLBACK")
        cursor.execute("BEGIN; INSERT INTO t SELECT generate_series(200, 210)")
        upstream("INSERT INTO t VALUES (1001)")
        tick(db, opener)
        db = opener.reopened(db)
        cursor.execute("COMMIT")
    tick(db, opener)
    expected = sorted([(1000,), (1001,), *((i,) for i in range(200, 211))])
    assert sorted(db.execute("SELECT * FROM t").rows) == expected
    other.close()


@pytest.fixture(params=["whole", "in pieces"])
def pair(request, upstream, opener, monkeypatch):
    """Two tables of a server that streams what outgrows its memory, and nothing else."""
    if request.param == "in pieces":
        shrink(monkeypatch, 1, 1_000)
    upstream(f"ALTER DATABASE {upstream.name} SET debug_logical_replication_streaming = buffered")
    upstream("CREATE TABLE t (id INT PRIMARY KEY, n INT); CREATE TABLE notes (id INT PRIMARY KEY)")
    upstream("INSERT INTO t SELECT i, 0 FROM generate_series(1, 3) i")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    tick(db, opener, 1)
    return db


def streamed(upstream):
    ((count,),) = upstream("SELECT stream_txns FROM pg_stat_replication_slots s "
                           "JOIN pg_replication_slots USING (slot_name) "
                           f"WHERE database = '{upstream.name}'")  # fmt: skip
    return count


def same(db, upstream):
    for table in ("t", "notes"):
        theirs = upstream(f"SELECT * FROM {table}")
        assert sorted(db.execute(f"SELECT * FROM {table}").rows) == sorted(theirs)
    assert db.execute("SELECT * FROM reclock.errors").rows == []


MANY = "INSERT INTO t SELECT i, 1 FROM generate_series({}, {}) i"


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO t VALUES (-1, 5)", "TRUNCATE t, notes",
        "ALTER TABLE t ADD COLUMN more INT DEFAULT 3", "ALTER TABLE t DROP COLUMN n",
        "ALTER TABLE t RENAME n TO m", "ALTER TABLE t ALTER n TYPE BIGINT",
    ],
)  # fmt: skip
def test_what_a_savepoint_takes_back_of_a_streamed_transaction(pair, upstream, opener, change):
    """The server sends what is rolled back, too, and what the table was then."""
    upstream(
        f"BEGIN; {MANY.format(100, 1500)}; SAVEPOINT a; {change};"
        "INSERT INTO t (id) SELECT generate_series(1501, 3000); ROLLBACK TO a; SAVEPOINT b;"
        f"{MANY.format(3001, 4500)}; UPDATE t SET n = n + 1 WHERE id < 102; RELEASE b;"
        "INSERT INTO notes VALUES (1); COMMIT"
    )
    tick(pair, opener, 3)
    assert streamed(upstream) > 0
    same(pair, upstream)


def test_a_streamed_transaction_that_is_given_up_leaves_nothing(pair, upstream, opener):
    other = upstream.connect()
    with other.cursor() as cursor:
        cursor.execute(f"BEGIN; {MANY.format(100, 4000)}; INSERT INTO notes VALUES (1)")
        upstream("INSERT INTO notes VALUES (3)")
        tick(pair, opener, 3)
        assert streamed(upstream) > 0
        same(pair, upstream)
        cursor.execute("ROLLBACK")
    other.close()
    upstream("INSERT INTO notes VALUES (2)")
    tick(pair, opener, 3)
    same(pair, upstream)


@pytest.mark.parametrize("last", [4000, 110])
def test_a_transaction_that_is_prepared_comes_when_it_is_committed(pair, upstream, opener, last):
    for name, end in (("one", "COMMIT PREPARED 'one'"), ("two", "ROLLBACK PREPARED 'two'")):
        upstream(f"BEGIN; {MANY.format(100, last)}; INSERT INTO notes VALUES (1);"
                 f"PREPARE TRANSACTION '{name}'")  # fmt: skip
        tick(pair, opener, 3)
        same(pair, upstream)
        db = opener.reopened(pair)
        upstream(end)
        tick(db, opener, 20)
        same(db, upstream)
        upstream("TRUNCATE t, notes")
        pair = db
    tick(db, opener, 3)
    same(db, upstream)


@pytest.mark.slow(seconds=60)
@pytest.mark.parametrize("streaming", ["immediate", "buffered"])
def test_a_transaction_larger_than_memory_is_held_in_files(upstream, opener, streaming):
    """256 MB in one transaction; while it is read, the process grows by far less."""
    opener.engine = TaskEngine
    upstream("CREATE TABLE t (id INT PRIMARY KEY, s TEXT)")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    upstream(f"ALTER DATABASE {upstream.name} SET debug_logical_replication_streaming={streaming}")
    upstream(f"ALTER DATABASE {upstream.name} SET logical_decoding_work_mem = '1GB'")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    tick(db, opener, 1)
    upstream("INSERT INTO t SELECT i, repeat(md5(i::text), 32) FROM generate_series(1, 256000) i")
    intake = db._core.intakes[db._core.world.catalog.find(("s",)).id]
    before = resident()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is that of what follows
    deadline = monotonic() + 120
    while intake.staged_rows < 256_000:
        assert intake.stall is None, intake.stall
        intake.pull()
        assert monotonic() < deadline
    grown = peak() - before
    assert grown < 160, f"{grown:.0f} MB more than before, for a transaction of 256 MB"
    tick(db, opener, 2)
    assert db.execute("SELECT count(*), min(length(s)) FROM t").rows == [(256_000, 1024)]


def resident():
    return megabytes("VmRSS")


def peak():
    return megabytes("VmHWM")


def megabytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def test_a_large_transaction_that_is_not_streamed_is_read_again(upstream, opener, monkeypatch):
    shrink(monkeypatch, 20_000, 100)
    upstream("CREATE TABLE t (id INT PRIMARY KEY, s TEXT)")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    upstream("SET debug_logical_replication_streaming = buffered")
    upstream(f"ALTER DATABASE {upstream.name} SET debug_logical_replication_streaming = buffered")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    tick(db, opener, 1)
    upstream("INSERT INTO t VALUES (0, 'before')")
    upstream("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 1000) i")
    upstream("INSERT INTO t VALUES (2000, 'after')")
    tick(db, opener, 4)
    assert db.execute("SELECT count(*), max(id) FROM t").rows == [(1002, 2000)]
