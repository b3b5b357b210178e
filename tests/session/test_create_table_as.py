"""CREATE TABLE … AS: columns and rows of a query, whole or not at all."""

from __future__ import annotations

from importlib import import_module

import pytest

from reclock.errors import Error, SerializationFailure

create_table_as = import_module("reclock.session.statements.create_table_as")


@pytest.fixture
def db(db):
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a NUMERIC(8,2), s VARCHAR(5), i INTERVAL)")
    db.execute("INSERT INTO t VALUES (1, 1.5, 'x', '1 day'), (2, NULL, 'y', NULL)")
    return db


def rows(session, sql):
    return session.execute(sql).rows


def test_it_has_the_types_and_rows_of_the_query(db, opener):
    result = db.execute(
        'CREATE TABLE c (k, "Half") AS SELECT k, a / 2 AS h, s, i, ARRAY[k] AS l FROM t'
    )
    assert (result.tag, result.schema) == ("SELECT 2", None)
    assert result.timestamp is not None
    db.execute("CREATE TABLE copy AS TABLE t; CREATE TABLE v AS VALUES (1, 'a'), (2, 'b')")
    for restart in (False, True):
        again = opener.reopened(db) if restart else db
        names = [row[0] for row in rows(again, "SHOW COLUMNS FROM c")]
        assert names == ["k", "Half", "s", "i", "l"]
        assert rows(again, 'SELECT k, "Half", s, l FROM c WHERE k = 1') == [(1, 0.75, "x", [1])]
        assert sorted(map(repr, rows(again, "SELECT * FROM copy"))) == sorted(
            map(repr, rows(again, "SELECT * FROM t"))
        )
        assert rows(again, "SELECT column2 FROM v WHERE column1 = 2") == [("b",)]
        assert again.check() == []
    again.execute("INSERT INTO copy VALUES (1, 0, 'long enough', NULL)")  # text has no length


def test_without_rows_and_if_it_is_there(db):
    assert db.execute("CREATE TABLE e AS SELECT * FROM t WITH NO DATA").tag == "CREATE TABLE AS"
    assert rows(db, "SELECT * FROM e") == []
    again = db.execute("CREATE TABLE IF NOT EXISTS e AS SELECT 1 AS a")
    assert (again.tag, len(again.notices)) == ("CREATE TABLE AS", 1)
    assert db.execute("CREATE TABLE IF NOT EXISTS f AS SELECT 1 AS a WITH DATA").tag == "SELECT 1"


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("CREATE TABLE t AS SELECT 1 AS a", "42P07"),
        ("CREATE TABLE x AS SELECT 1 AS a, 2 AS a", "42701"),
        ("CREATE TABLE x (a, b) AS SELECT 1", "42601"),
        ("CREATE TABLE x AS SELECT nope FROM t", "42703"),
        ("CREATE TABLE x AS SELECT 1 / (k - k) AS a FROM t", "22012"),
        ("CREATE TABLE x AS SELECT t FROM t", "0A000"),
        ("CREATE TABLE x AS", "42601"),
    ],
)
def test_what_fails_leaves_nothing(db, sql, code):
    with pytest.raises(Error) as caught:
        db.execute(sql)
    assert caught.value.code == code
    assert rows(db, "SHOW TABLES") == [("t",)]
    assert db.session().transaction is None


def test_in_a_transaction(db):
    with db.session() as one:
        one.execute("BEGIN; INSERT INTO t VALUES (3, 3, 'z', NULL); SAVEPOINT s")
        assert one.execute("CREATE TABLE c AS SELECT k FROM t").tag == "SELECT 3"
        one.execute("ROLLBACK TO s")
        assert one.execute("CREATE TABLE c AS SELECT k FROM t WHERE k > 1").tag == "SELECT 2"
        assert rows(one, "UPDATE c SET k = k + 1 RETURNING k") == [(3,), (4,)]
        one.execute("COMMIT")
    assert rows(db, "SELECT k FROM c ORDER BY k") == [(3,), (4,)]


def test_it_is_tried_again_if_others_change_what_it_reads(db, monkeypatch):
    commit, left = create_table_as.commit, [1]

    def disturbed(context, statement):
        if left:
            left.pop()
            db.execute("DELETE FROM t WHERE k = 2")
        return commit(context, statement)

    monkeypatch.setattr(create_table_as, "commit", disturbed)
    with db.session() as one:
        assert one.execute("CREATE TABLE c AS SELECT k FROM t").tag == "SELECT 1"
        monkeypatch.setattr(create_table_as, "ATTEMPTS", 1)
        left.append(1)
        db.execute("INSERT INTO t VALUES (2, 0, '', NULL)")
        with pytest.raises(SerializationFailure):
            one.execute("CREATE TABLE d AS SELECT k FROM t")
    assert rows(db, "SELECT k FROM c") == [(1,)]
    assert rows(db, "SHOW TABLES") == [("c",), ("t",)]
