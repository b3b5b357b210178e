"""ALTER SOURCE … REFRESH: columns that were added come in, with what rows have in them."""

from __future__ import annotations

from importlib import import_module

import pytest

from engines.model_engine import ModelEngine
from engines.task_engine import TaskEngine, TaskModel
from reclock.connectors.postgres import snapshot
from reclock.errors import Error
from reclock.ingest.postgres import copying

pytestmark = pytest.mark.postgres


@pytest.fixture
def db(upstream, opener):
    upstream("CREATE TABLE accounts (id INT PRIMARY KEY, n INT)")
    upstream("CREATE TABLE bare (t TEXT)")
    upstream("ALTER TABLE bare REPLICA IDENTITY FULL")
    upstream("INSERT INTO accounts SELECT i, i FROM generate_series(1, 3) i")
    upstream("INSERT INTO bare VALUES ('a'), ('a')")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()} WITH (RETAIN HISTORY FOR '1 h')")
    tick(db, opener)
    return db


def tick(db, opener, times=1):
    for _ in range(times):
        opener.clock.advance(1_000)
        db.tick()


def grow(upstream):
    upstream("ALTER TABLE accounts ADD COLUMN owner TEXT DEFAULT 'nobody'")
    upstream("ALTER TABLE bare ADD COLUMN m INT")
    upstream(
        "INSERT INTO accounts VALUES (4, 4, 'ann'); UPDATE bare SET m = 1 WHERE ctid = '(0,1)'"
    )


def same(db, upstream, *tables):
    for table in tables:
        found = sorted(db.execute(f"SELECT * FROM {table}").rows, key=repr)
        assert found == sorted(upstream(f"SELECT * FROM {table}"), key=repr)


def test_columns_come_in_with_their_values(db, upstream, opener):
    grow(upstream)
    tick(db, opener)
    assert db.execute("SELECT * FROM accounts WHERE id = 4").rows == [(4, 4)]
    upstream("INSERT INTO accounts VALUES (5, 5, 'bob')")  # not read yet
    assert db.execute("ALTER SOURCE s REFRESH").tag == "ALTER SOURCE"
    same(db, upstream, "accounts", "bare")
    upstream("UPDATE accounts SET owner = 'eve' WHERE id = 1; DELETE FROM accounts WHERE id = 2")
    upstream("DELETE FROM bare WHERE m = 1; INSERT INTO bare VALUES ('z', 9)")
    tick(db, opener)
    same(db, upstream, "accounts", "bare")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT owner, sum(n) AS n FROM accounts GROUP BY 1")
    db = opener.reopened(db)
    upstream("TRUNCATE accounts; INSERT INTO accounts VALUES (7, 7, 'kim')")
    for _ in range(20):
        tick(db, opener)
    same(db, upstream, "accounts", "bare")
    assert db.execute("SELECT * FROM v").rows == [("kim", 7)]
    assert db.execute("SELECT * FROM reclock.errors").rows == []
    assert len(upstream.slots()) == 1
    (notice,) = db.execute("ALTER SOURCE s REFRESH").notices
    assert "no table" in notice


def test_a_transaction_over_grown_and_other_tables_is_whole(db, upstream, opener):
    upstream("ALTER TABLE accounts ADD COLUMN extra INT DEFAULT 0")
    for turn in range(5):
        upstream("BEGIN; UPDATE accounts SET n = n + 1 WHERE id = 1;"
                 f"INSERT INTO bare VALUES ('{turn}'); COMMIT")  # fmt: skip
        if turn == 2:
            db.execute("ALTER SOURCE s REFRESH")
        tick(db, opener)
    times = db.execute('SELECT timestamp FROM reclock.bindings WHERE "offset" > 0').rows
    ((first,),) = db.execute("SELECT since FROM reclock.frontiers WHERE object = 'accounts'").rows
    late = [time for (time,) in times if time >= first]
    assert len(late) > 1
    for time in late:
        ((n,),) = db.execute(f"SELECT n FROM accounts WHERE id = 1 AS OF {time}").rows
        ((rows,),) = db.execute(f"SELECT count(*) FROM bare AS OF {time}").rows
        assert n - 1 == rows - 2


@pytest.mark.parametrize("engine", [ModelEngine, TaskModel, TaskEngine])
def test_rows_are_written_as_they_come_and_not_held(upstream, opener, monkeypatch, engine):
    monkeypatch.setattr(copying, "SLICE_BYTES", 1)
    monkeypatch.setattr(snapshot, "_BATCH_ROWS", 50)
    opener.engine = engine
    upstream("CREATE TABLE accounts (id INT PRIMARY KEY, n NUMERIC)")
    upstream("CREATE TABLE bare (t INT)")
    upstream("ALTER TABLE bare REPLICA IDENTITY FULL")
    upstream("INSERT INTO accounts SELECT i, i FROM generate_series(1, 500) i")
    upstream("INSERT INTO accounts VALUES (1000, 'NaN')")
    upstream("INSERT INTO bare SELECT i % 7 FROM generate_series(1, 500) i")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()} WITH (RETAIN HISTORY FOR '1 h')")
    tick(db, opener)
    upstream("ALTER TABLE accounts ADD COLUMN owner TEXT DEFAULT 'ann'")
    upstream("ALTER TABLE bare ADD COLUMN m INT DEFAULT 3")
    module = import_module("reclock.session.statements.refresh_source")
    taken, before = [], module._at

    def noted(pieces, at):
        taken.append(pieces)
        return before(pieces, at)

    monkeypatch.setattr(module, "_at", noted)
    db.execute("ALTER SOURCE s REFRESH")
    assert [sum(piece.rows for piece in pieces) for pieces in taken] == [501, 500]
    if engine is ModelEngine:
        assert [len(pieces) for pieces in taken] == [11, 10]
    same(db, upstream, "bare")
    with pytest.raises(Error, match='column "n" has a value'):
        db.execute("SELECT * FROM accounts")
    upstream("UPDATE accounts SET n = 0 WHERE id > 500; DELETE FROM bare WHERE t = 3")
    upstream("UPDATE accounts SET owner = 'bob' WHERE id < 3")
    tick(db, opener)
    same(db, upstream, "accounts", "bare")
    assert db.check() == []
    db._core.collect_garbage()
    named = db._core.named()
    assert [name for name in db._core.segments.names() if name not in named] == []


def test_a_table_that_has_another_name_there_keeps_its_name_here(db, upstream, opener):
    upstream("CREATE SCHEMA kept; ALTER TABLE accounts SET SCHEMA kept")
    upstream("ALTER TABLE kept.accounts RENAME TO konten; ALTER TABLE bare RENAME TO empty")
    upstream("INSERT INTO kept.konten VALUES (4, 4)")
    tick(db, opener)
    assert len(db.execute("SELECT * FROM accounts").rows) == 4
    upstream("ALTER TABLE kept.konten ADD COLUMN owner TEXT DEFAULT 'ann'")
    db.execute("ALTER SOURCE s REFRESH")
    upstream("UPDATE kept.konten SET owner = 'bob' WHERE id = 4; INSERT INTO empty VALUES ('z')")
    tick(db, opener)
    found = sorted(db.execute("SELECT * FROM accounts").rows)
    assert found == sorted(upstream("SELECT * FROM kept.konten"))
    assert db.execute("SELECT count(*) FROM bare").rows == [(3,)]


def test_a_table_may_get_another_name_before_it_is_copied(upstream, opener):
    upstream("CREATE TABLE accounts (id INT PRIMARY KEY); INSERT INTO accounts VALUES (1)")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    upstream("ALTER TABLE accounts RENAME TO konten; INSERT INTO konten VALUES (2)")
    tick(db, opener)
    assert sorted(db.execute("SELECT * FROM accounts").rows) == [(1,), (2,)]


def test_what_depends_on_a_table_is_dropped_first(db, upstream, opener):
    db.execute("CREATE VIEW v AS SELECT * FROM accounts")
    grow(upstream)
    with pytest.raises(Error, match="other objects depend on it") as caught:
        db.execute("ALTER SOURCE s REFRESH")
    assert caught.value.code == "2BP01"
    assert "view v depends on source accounts" in caught.value.detail
    db.execute("DROP VIEW v")
    db.execute("ALTER SOURCE s REFRESH")
    same(db, upstream, "accounts", "bare")


def test_it_is_for_databases(db, opener):
    db.execute("CREATE SOURCE g FROM LOAD GENERATOR COUNTER")
    for name in ("g", "accounts"):
        with pytest.raises(Error) as caught:
            db.execute(f"ALTER SOURCE {name} REFRESH")
        assert caught.value.code == "42809"
