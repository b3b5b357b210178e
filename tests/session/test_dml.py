"""RETURNING, ON CONFLICT, UPDATE … FROM, DELETE … USING, MERGE: examples, sessions, restart."""

from __future__ import annotations

import pytest

from reclock.errors import ConstraintViolation, Error, SerializationFailure


@pytest.fixture
def db(db):
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT NOT NULL, s VARCHAR(3) DEFAULT 'd')")
    db.execute("CREATE TABLE u (k INT, b INT)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(a) AS s FROM t")
    db.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
    db.execute("INSERT INTO u VALUES (1, 1), (1, 1), (3, 3)")
    return db


@pytest.fixture
def two(db):
    with db.session() as one, db.session() as other:
        one.execute("BEGIN")
        other.execute("BEGIN")
        yield one, other


def rows(session, sql):
    return session.execute(sql).rows


def test_returning_gives_columns_rows_and_a_tag(db):
    result = db.execute("INSERT INTO t (a, k) VALUES (7, 9), (8, 4) RETURNING k, a + 1 AS next, s")
    assert (result.tag, result.columns) == ("INSERT 0 2", ("k", "next", "s"))
    assert result.rows == [(9, 8, "d"), (4, 9, "d")], "in the order of VALUES"
    assert result.to_arrow().column_names == ["k", "next", "s"]
    assert result.timestamp is not None
    assert rows(db, "INSERT INTO t VALUES (6, 1, 'ab  '), (5, 1, NULL) RETURNING *") == [
        (6, 1, "ab "), (5, 1, None),
    ]  # fmt: skip
    assert rows(db, "INSERT INTO t VALUES (0, 1) RETURNING k, (SELECT count(*) FROM t) AS n") == [
        (0, 6)
    ]
    db.execute("DELETE FROM t WHERE k = 0")
    assert rows(db, "UPDATE t SET s = 'x  y' WHERE false RETURNING k") == []
    assert rows(db, "UPDATE t SET s = 'z    ', a = a + 1 WHERE k = 1 RETURNING s, a, t.k") == [
        ("z  ", 11, 1)
    ]
    assert rows(db, "DELETE FROM t AS x WHERE k > 2 RETURNING x.*, (SELECT count(*) FROM t)") == [
        (4, 8, "d", 6), (5, 1, None, 6), (6, 1, "ab ", 6), (9, 7, "d", 6),
    ]  # fmt: skip


def test_a_write_without_returning_has_no_columns(db):
    result = db.execute("UPDATE t SET a = 1")
    assert (result.columns, result.rows, result.schema) == ((), [], None)


def test_an_upsert_survives_and_views_follow(db, opener):
    sql = "INSERT INTO t VALUES (1, 5), (7, 70) ON CONFLICT (k) DO UPDATE SET a = t.a + excluded.a"
    assert db.execute(sql).tag == "INSERT 0 2"
    assert db.execute("INSERT INTO t VALUES (7, 0), (8, 1), (8, 2) ON CONFLICT DO NOTHING").tag == (
        "INSERT 0 1"
    )
    for restart in (False, True):
        again = opener.reopened(db) if restart else db
        assert rows(again, "SELECT k, a FROM t ORDER BY k") == [(1, 15), (2, 20), (7, 70), (8, 1)]
        assert rows(again, "SELECT n, s FROM v") == [(4, 106)]
        assert again.check() == []


def test_a_failed_upsert_changes_nothing(db):
    for sql, code in [
        ("VALUES (1, 1), (1, 2) ON CONFLICT (k) DO UPDATE SET a = excluded.a", "21000"),
        ("VALUES (3, 1), (3, 2) ON CONFLICT (k) DO UPDATE SET a = excluded.a", "21000"),
        ("VALUES (1, 1) ON CONFLICT (k) DO UPDATE SET k = 2", "23505"),
        ("VALUES (1, 1) ON CONFLICT (k) DO UPDATE SET a = NULL", "23502"),
        ("VALUES (1, NULL) ON CONFLICT (k) DO UPDATE SET a = a", "42702"),
        ("VALUES (NULL, 1) ON CONFLICT (k) DO NOTHING", "23502"),
        ("VALUES (1, 1) ON CONFLICT (a) DO NOTHING", "42P10"),
        ("VALUES (1, 1) ON CONFLICT (nope) DO NOTHING", "42703"),
        ("VALUES (1, 1) ON CONFLICT ON CONSTRAINT nope DO NOTHING", "42704"),
    ]:
        with pytest.raises(Error) as caught:
            db.execute(f"INSERT INTO t {sql}")
        assert caught.value.code == code, sql
    assert rows(db, "SELECT k, a FROM t ORDER BY k") == [(1, 10), (2, 20)]


def test_a_row_that_several_match_is_updated_once(db):
    sql = "UPDATE t SET a = a + 1 FROM u WHERE u.k = t.k RETURNING t.k, t.a, b"
    assert db.execute(sql).rows == [(1, 11, 1)]
    assert rows(db, "UPDATE u SET b = 9 FROM t, t AS x WHERE u.k = t.k RETURNING u.*") == [
        (1, 9), (1, 9),
    ]  # fmt: skip
    assert db.execute("DELETE FROM u USING t, t AS x WHERE u.k = t.k").tag == "DELETE 2"


def test_merge(db, opener):
    db.execute("DELETE FROM u WHERE k = 1; INSERT INTO u VALUES (1, 5)")
    sql = (
        "MERGE INTO t USING u ON t.k = u.k"
        " WHEN MATCHED THEN UPDATE SET a = t.a + u.b"
        " WHEN NOT MATCHED THEN INSERT (k, a) VALUES (u.k, u.b)"
        " WHEN NOT MATCHED BY SOURCE THEN DELETE RETURNING merge_action(), t.k, t.a, b"
    )
    result = db.execute(sql)
    assert result.tag == "MERGE 3"
    assert sorted(result.rows) == [
        ("DELETE", 2, 20, None), ("INSERT", 3, 3, 3), ("UPDATE", 1, 15, 5),
    ]  # fmt: skip
    for restart in (False, True):
        again = opener.reopened(db) if restart else db
        assert rows(again, "SELECT k, a FROM t ORDER BY k") == [(1, 15), (3, 3)]
        assert rows(again, "SELECT n, s FROM v") == [(2, 18)]
        assert again.check() == []
    again.execute("INSERT INTO u VALUES (1, 6)")
    with pytest.raises(Error) as caught:
        again.execute(sql)
    assert caught.value.code == "21000"
    assert rows(again, "SELECT k, a FROM t ORDER BY k") == [(1, 15), (3, 3)]


def test_in_a_transaction_with_savepoints(db, opener):
    with db.session() as one:
        one.execute("BEGIN")
        assert rows(one, "INSERT INTO t VALUES (5, 50) RETURNING k") == [(5,)]
        one.execute("SAVEPOINT s")
        sql = "INSERT INTO t VALUES (5, 1) ON CONFLICT (k) DO UPDATE SET a = t.a + 1 RETURNING a"
        assert rows(one, sql) == [(51,)]
        assert rows(one, "MERGE INTO t USING u ON t.k = u.k WHEN NOT MATCHED THEN INSERT"
                         " VALUES (u.k, b) RETURNING t.k") == [(3,)]  # fmt: skip
        assert rows(one, "DELETE FROM t RETURNING k") == [(1,), (2,), (3,), (5,)]
        one.execute("ROLLBACK TO s")
        assert rows(one, sql) == [(51,)]
        assert rows(db, "SELECT k FROM t ORDER BY k") == [(1,), (2,)]
        one.execute("COMMIT")
    for restart in (False, True):
        again = opener.reopened(db) if restart else db
        assert rows(again, "SELECT k, a FROM t ORDER BY k") == [(1, 10), (2, 20), (5, 51)]
        assert again.check() == []


def test_upserts_of_one_key_come_after_each_other(db, two):
    one, other = two
    sql = "INSERT INTO t VALUES (5, 1) ON CONFLICT (k) DO UPDATE SET a = t.a + 1"
    for session in two:
        assert session.execute(sql).tag == "INSERT 0 1"
    one.execute("COMMIT")
    other.execute("COMMIT")
    assert rows(db, "SELECT a FROM t WHERE k = 5") == [(2,)], "the second one updated"


def test_what_was_given_back_must_still_be_so(db, two):
    one, other = two
    sql = "INSERT INTO t VALUES (5, 1) ON CONFLICT (k) DO UPDATE SET a = t.a + 1 RETURNING a"
    assert rows(one, sql) == rows(other, sql) == [(1,)]
    one.execute("COMMIT")
    with pytest.raises(SerializationFailure):
        other.execute("COMMIT")
    assert rows(db, "SELECT a FROM t WHERE k = 5") == [(1,)]


def test_a_key_that_came_meanwhile(db, two):
    one, other = two
    assert rows(one, "SELECT b FROM u") == rows(other, "SELECT b FROM u")
    db.execute("INSERT INTO t VALUES (5, 5)")
    assert one.execute("INSERT INTO t VALUES (5, 1) ON CONFLICT DO NOTHING").tag == "INSERT 0 1"
    with pytest.raises(SerializationFailure):
        one.execute("COMMIT")
    assert other.execute(
        "INSERT INTO t VALUES (5, 1) ON CONFLICT (k) DO UPDATE SET a = t.a + 1"
    ).tag == ("INSERT 0 1")
    other.execute("COMMIT")
    assert rows(db, "SELECT a FROM t WHERE k = 5") == [(6,)]


def test_a_key_of_its_own_is_refused_at_once(db, two):
    one, _ = two
    one.execute("INSERT INTO t VALUES (5, 5)")
    with pytest.raises(ConstraintViolation):
        one.execute("INSERT INTO t VALUES (4, 1) ON CONFLICT (k) DO NOTHING; "
                    "UPDATE t SET k = 5 WHERE k = 4")  # fmt: skip


def test_with_before_a_write(db):
    sql = "WITH q AS (SELECT 3 AS k), r AS (SELECT k * 10 AS a, k FROM q)"
    assert rows(db, f"{sql} INSERT INTO t SELECT k, a FROM r RETURNING k, a") == [(3, 30)]
    assert rows(db, f"{sql} UPDATE t SET a = r.a + 1 FROM r WHERE r.k = t.k RETURNING t.a") == [
        (31,)
    ]
    assert rows(db, f"{sql} DELETE FROM t WHERE k IN (SELECT k FROM r) RETURNING k") == [(3,)]
    with pytest.raises(Error) as caught:
        db.execute("WITH q AS (SELECT 1 AS k) UPDATE q SET k = 2")
    assert caught.value.code == "42P01", "what is written to is a table"


def test_parameters_get_types_and_rows_a_description(db):
    with db.session() as session:
        (parsed,) = session.parsed(
            "INSERT INTO t VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET a = excluded.a + $3"
            " RETURNING k, s || $4 AS x"
        )
        found = session.describe(parsed)
        assert [str(kind) for kind in found.parameters] == ["integer"] * 3 + ["text"]
        assert [(c.name, str(c.type)) for c in found.schema] == [("k", "integer"), ("x", "text")]
        result = session.execute(parsed.text, (1, 2, 3, "!"))
        assert result.rows == [(1, "d!")]
        (parsed,) = session.parsed("UPDATE t SET a = 1")
        assert session.describe(parsed).schema is None
