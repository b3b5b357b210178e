"""PREPARE, EXECUTE and DEALLOCATE."""

from __future__ import annotations

from decimal import Decimal

import pytest

from engines.model_engine import ModelEngine
from reclock.errors import Error, StatementError
from reclock.session.database import Database


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "state", ModelEngine(), background=False) as made:
        made.execute("CREATE TABLE t (id INT PRIMARY KEY, n NUMERIC(12,2), name TEXT)")
        yield made


def test_a_statement_is_run_with_other_values(db):
    session = db.session()
    session.execute("PREPARE put (int, numeric) AS INSERT INTO t VALUES ($1, $2, $3)")
    assert session.execute("EXECUTE put (1, 1.555, 'a')").tag == "INSERT 0 1"
    session.execute("EXECUTE put (1 + 1, '2', upper('b')); EXECUTE put (3, NULL, NULL)")
    session.execute("PREPARE one AS SELECT * FROM t WHERE id = $1")
    assert session.execute("EXECUTE one (1)").rows == [(1, Decimal("1.56"), "a")]
    assert session.execute("EXECUTE one ('2')").rows == [(2, Decimal("2.00"), "B")]
    session.execute("PREPARE gone AS DELETE FROM t WHERE id > $1; EXECUTE gone (1)")
    session.execute("PREPARE all_of AS TABLE t")
    assert [row[0] for row in session.execute("EXECUTE all_of").rows] == [1]
    session.execute("PREPARE c AS SELECT relname FROM pg_class WHERE relname = $1")
    assert session.execute("EXECUTE c ('t')").rows == [("t",)]
    assert session.execute("EXECUTE one ($1)", [1]).rows == [(1, Decimal("1.56"), "a")]


def test_writes_that_return_rows_merge_or_read_first_are_run_with_other_values(db):
    session = db.session()
    session.execute(
        "PREPARE put AS INSERT INTO t VALUES ($1, $2, 'a')"
        " ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING id, n"
    )
    assert session.execute("EXECUTE put (1, 1)").rows == [(1, Decimal("1.00"))]
    again = session.execute("EXECUTE put (1, 2)")
    assert (again.tag, again.rows) == ("INSERT 0 1", [(1, Decimal("2.00"))])
    session.execute(
        "PREPARE merged (int) AS MERGE INTO t USING (VALUES ($1)) AS s (id) ON t.id = s.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0, 'm')"
    )
    assert session.execute("EXECUTE merged (2)").tag == "MERGE 1"
    assert session.execute("EXECUTE merged (2)").tag == "MERGE 1"
    session.execute(
        "PREPARE doubled AS WITH s AS (SELECT id + $1 AS id, n FROM t)"
        " INSERT INTO t SELECT id, n * 2, 'd' FROM s"
    )
    session.execute("EXECUTE doubled (10)")
    found = session.execute("SELECT id, n, name FROM t ORDER BY id").rows
    assert found == [(1, Decimal("2.00"), "a"), (11, Decimal("4.00"), "d")]


def test_it_is_one_sessions_and_outlives_a_rollback(db):
    session, other = db.session(), db.session()
    session.execute("BEGIN; PREPARE p AS SELECT 1; ROLLBACK")
    assert session.execute("EXECUTE p").rows == [(1,)]
    for text in ("EXECUTE p", "DEALLOCATE p"):
        with pytest.raises(StatementError, match='"p" does not exist') as caught:
            other.execute(text)
        assert caught.value.code == "26000"
    session.execute("DISCARD ALL")
    with pytest.raises(StatementError, match="does not exist"):
        session.execute("EXECUTE p")


def test_it_is_part_of_a_transaction(db):
    session = db.session()
    session.execute("PREPARE put AS INSERT INTO t VALUES ($1, 0, '')")
    session.execute("BEGIN; EXECUTE put (1); EXECUTE put (2); ROLLBACK")
    assert session.execute("SELECT count(*) FROM t").rows == [(0,)]
    session.execute("BEGIN READ ONLY")
    with pytest.raises(Error, match="read-only"):
        session.execute("EXECUTE put (1)")
    with pytest.raises(Error, match="aborted"):
        session.execute("EXECUTE put (1)")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("PREPARE p AS SELECT 2", "42P05"),
        ("EXECUTE p", "42601"),
        ("EXECUTE p (1, 2)", "42601"),
        ("EXECUTE p ('x')", "22P02"),
        ("EXECUTE p (true)", "42804"),
        ("EXECUTE p (3000000000)", "22003"),
        ("EXECUTE p ((SELECT max(id) FROM t))", "0A000"),
        ("EXECUTE p (id)", "42703"),
        ("PREPARE q AS CREATE TABLE u (a INT)", "42601"),
        ("PREPARE q AS SELECT nothing FROM t", "42703"),
        ("PREPARE q (int", "42601"),
    ],
)
def test_what_is_wrong_is_said(db, text, code):
    session = db.session()
    session.execute("PREPARE p (int) AS SELECT $1 + 1")
    with pytest.raises(Error) as caught:
        session.execute(text)
    assert caught.value.code == code
    assert session.execute("EXECUTE p (41)").rows == [(42,)]


def test_rights_are_those_of_what_is_run(db):
    db.execute("CREATE ROLE joe LOGIN")
    session = db.session("joe")
    with pytest.raises(Error) as caught:
        session.execute("PREPARE p AS SELECT * FROM t")
    assert caught.value.code == "42501"
    db.execute("GRANT SELECT ON t TO joe")
    session.execute("PREPARE p AS SELECT * FROM t; EXECUTE p")
    db.execute("REVOKE SELECT ON t FROM joe")
    with pytest.raises(Error) as caught:
        session.execute("EXECUTE p")
    assert caught.value.code == "42501"
