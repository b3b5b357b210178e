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

SERVER = {"debug_logical_replication_streaming": "immediate"}
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
