"""What a transaction sees of what it has done, and that others see all of it or nothing."""

from __future__ import annotations

import pytest

from reclock.errors import (
    ConstraintViolation,
    DuplicateName,
    InvalidTransactionState,
    UndefinedName,
)


@pytest.fixture
def db(db):
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT NOT NULL); CREATE TABLE u (a INT)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(a) AS s FROM t")
    db.execute("CREATE VIEW w AS SELECT n + 1 AS m FROM v")
    db.execute("CREATE INDEX by_a ON t (a)")
    db.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
    return db


@pytest.fixture
def one(db):
    with db.session() as session:
        session.execute("BEGIN")
        yield session


def rows(session, sql):
    return session.execute(sql).rows


def test_it_reads_what_it_wrote_and_nobody_else_does(db, one, opener):
    one.execute("INSERT INTO t VALUES (3, 30)")
    assert one.execute("UPDATE t SET a = a + 1 WHERE k >= 2").tag == "UPDATE 2"
    assert one.execute("DELETE FROM t WHERE k = 1").tag == "DELETE 1"
    assert rows(one, "SELECT * FROM t ORDER BY k") == [(2, 21), (3, 31)]
    assert rows(one, "SELECT k FROM t WHERE a = 21") == [(2,)], "the index is not used"
    assert rows(one, "SELECT k FROM t WHERE k = 3") == [(3,)]
    assert rows(one, "SELECT n, s FROM v") == [(2, 52)], "a kept view is its query"
    assert rows(one, "SELECT m FROM w") == [(3,)]
    assert rows(db, "SELECT * FROM t ORDER BY k") == [(1, 10), (2, 20)]
    time = one.execute("COMMIT").timestamp
    assert time is not None
    for restart in (False, True):
        again = opener.reopened(db) if restart else db
        assert rows(again, "SELECT * FROM t ORDER BY k") == [(2, 21), (3, 31)]
        assert rows(again, "SELECT n, s FROM v") == [(2, 52)]
        assert again.check() == []


def test_definitions_happen_with_the_rows_at_one_time(db, one, opener):
    one.execute("CREATE TABLE new (k INT PRIMARY KEY, a INT)")
    one.execute("INSERT INTO new SELECT k, a FROM t")
    one.execute("CREATE MATERIALIZED VIEW kept AS SELECT sum(a) AS s FROM new")
    one.execute("CREATE VIEW plain AS SELECT s FROM kept; CREATE INDEX ON new (a)")
    one.execute("INSERT INTO new VALUES (9, 9); INSERT INTO t VALUES (9, 9)")
    assert rows(one, "SELECT s FROM plain") == [(39,)]
    assert ("new",) in rows(one, "SHOW TABLES")
    names = rows(one, "SELECT relname FROM pg_catalog.pg_class WHERE relname = 'new'")
    assert names == [("new",)]
    with pytest.raises(UndefinedName):
        db.execute("SELECT * FROM new")
    assert ("new",) not in rows(db, "SHOW TABLES")
    time = one.execute("COMMIT").timestamp
    for restart in (False, True):
        again = opener.reopened(db) if restart else db
        assert rows(again, "SELECT s FROM plain") == [(39,)]
        assert rows(again, f"SELECT k, a FROM new ORDER BY k AS OF {time}") == [
            (1, 10), (2, 20), (9, 9),
        ]  # fmt: skip
        assert rows(again, "SELECT k FROM new WHERE a = 9") == [(9,)]
        assert again.check() == []
    again.execute("CREATE TABLE later (a INT)")
    ids = [item.id for item in again._core.world.catalog.items.values()]
    assert len(set(ids)) == len(ids)
    assert again._core.world.catalog[ids[-1]].name == "later"


def test_what_is_rolled_back_was_never_there(db, one, opener):
    before = db._core.world.catalog
    one.execute("CREATE TABLE new (a INT); INSERT INTO new VALUES (1); DROP TABLE t CASCADE")
    with pytest.raises(UndefinedName):
        one.execute("SELECT * FROM t")
    one.execute("ROLLBACK")
    assert db._core.world.catalog is before
    assert rows(opener.reopened(db), "SELECT n FROM v") == [(2,)]


def test_made_and_dropped_in_one_transaction_is_nothing(db, one):
    one.execute("CREATE TABLE new (a INT); INSERT INTO new VALUES (1); DROP TABLE new")
    one.execute("CREATE TABLE new (b TEXT); INSERT INTO new VALUES ('x'); COMMIT")
    assert rows(db, "SELECT b FROM new") == [("x",)]


def test_a_table_that_is_only_made_is_read_without_a_time(db, one):
    one.execute("CREATE TABLE new (a INT); INSERT INTO new VALUES (1), (2)")
    assert rows(one, "SELECT sum(a) FROM new") == [(3,)]
    assert one.execute("DELETE FROM new WHERE a = 1").tag == "DELETE 1"
    assert rows(one, "SELECT a FROM new") == [(2,)]
    one.execute("COMMIT")
    assert rows(db, "SELECT a FROM new") == [(2,)]


def test_savepoints_are_over_all_of_it(db, one):
    one.execute("INSERT INTO t VALUES (3, 30); SAVEPOINT a")
    one.execute("CREATE TABLE new (a INT); UPDATE t SET a = 0; SAVEPOINT b; DELETE FROM t")
    assert rows(one, "SELECT count(*) FROM t") == [(0,)]
    one.execute("ROLLBACK TO b")
    assert rows(one, "SELECT sum(a) FROM t") == [(0,)]
    with pytest.raises(ConstraintViolation):
        one.execute("INSERT INTO t VALUES (3, 1)")
    one.execute("ROLLBACK TO a")
    assert rows(one, "SELECT sum(a) FROM t") == [(60,)]
    one.execute("CREATE TABLE new (b INT); COMMIT")
    assert rows(db, "SELECT sum(a) FROM t") == [(60,)]
    assert rows(db, "SELECT b FROM new") == []


def test_keys_count_what_the_transaction_took_away(db, one):
    one.execute("DELETE FROM t WHERE k = 1; INSERT INTO t VALUES (1, 11)")
    with pytest.raises(ConstraintViolation):
        one.execute("INSERT INTO t VALUES (1, 12)")


def test_definitions_of_others_meanwhile(db, one):
    one.execute("CREATE TABLE new (a INT); INSERT INTO new VALUES (1)")
    db.execute("CREATE TABLE other (a INT); INSERT INTO other VALUES (7)")
    one.execute("CREATE MATERIALIZED VIEW mine AS SELECT a + 1 AS b FROM new; COMMIT")
    assert rows(db, "SELECT b FROM mine") == [(2,)]
    assert rows(db, "SELECT a FROM other") == [(7,)]
    one.execute("BEGIN; CREATE TABLE both (a INT)")
    db.execute("CREATE TABLE both (b INT)")
    with pytest.raises(DuplicateName):
        one.execute("COMMIT")
    assert one.transaction is None


def test_begin_in_a_transaction_is_a_warning(db, one):
    one.execute("INSERT INTO u VALUES (1)")
    assert one.execute("BEGIN").warnings[0][0] == "25001"
    one.execute("COMMIT")
    assert rows(db, "SELECT a FROM u") == [(1,)]


def test_who_reads_the_past_cannot_write(db, one):
    time = db.execute("INSERT INTO u VALUES (1)").timestamp
    one.execute(f"SELECT * FROM u AS OF {time}")
    with pytest.raises(InvalidTransactionState):
        one.execute("INSERT INTO u VALUES (2)")
