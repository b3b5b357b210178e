"""Defaults that are expressions, and conditions that rows must fulfil."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.errors import ConstraintViolation


def test_a_moment_is_that_of_the_statement(opener):
    db = opener()
    db.execute("CREATE TABLE t (a INT, at TIMESTAMPTZ DEFAULT now(), d DATE DEFAULT current_date)")
    db.execute("INSERT INTO t (a) VALUES (1), (2)")
    opener.clock.advance(60_000)
    db.execute("INSERT INTO t (a) SELECT 3")
    db.insert("t", pa.table({"a": [4]}))
    rows = dict(db.execute("SELECT a, at FROM t").rows)
    assert rows[1] == rows[2] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert rows[3] == rows[4] == datetime(1970, 1, 1, 0, 1, 1, tzinfo=UTC)


def test_a_default_is_kept_as_it_was_written(opener):
    db = opener()
    db.execute("CREATE TABLE t (a INT, b TEXT DEFAULT upper('x') || 'y', c INT DEFAULT 1 + 1)")
    db = opener.reopened(db)
    db.execute("INSERT INTO t (a) VALUES (1)")
    assert db.execute("SELECT * FROM t").rows == [(1, "Xy", 2)]


@given(rows=st.lists(st.tuples(st.none() | st.integers(-3, 3), st.none() | st.integers(-3, 3))))
@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize("condition", ["a < b", "a + b <> 0", "a IS NULL OR b > 0"])
def test_no_row_is_there_for_which_a_check_is_false(make_opener, condition, rows):
    def holds(a, b):
        if condition == "a IS NULL OR b > 0":
            return None if a is not None and b is None else a is None or b > 0
        if a is None or b is None:
            return None
        return a < b if condition == "a < b" else a + b != 0

    db = make_opener()()
    db.execute(f"CREATE TABLE t (a INT, b INT, CHECK ({condition}))")
    wrong = [row for row in rows if holds(*row) is False]
    if not rows:
        return
    if not wrong:
        db.insert("t", rows)
    else:
        with pytest.raises(ConstraintViolation) as refused:
            db.insert("t", rows)
        assert refused.value.code == "23514"
        assert rows[refused.value.row] == wrong[0]
        assert not db.execute("SELECT * FROM t").rows


def test_a_check_holds_in_transactions_and_for_all_writes(db):
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT CONSTRAINT small CHECK (a < 10))")
    db.execute("INSERT INTO t VALUES (1, 1)")
    for sql in (
        "INSERT INTO t VALUES (2, 10)",
        "INSERT INTO t SELECT 2, 10",
        "UPDATE t SET a = a + 9",
        "INSERT INTO t VALUES (1, 10) ON CONFLICT (k) DO UPDATE SET a = excluded.a",
        "MERGE INTO t USING (VALUES (1)) AS v (k) ON v.k = t.k WHEN MATCHED THEN UPDATE SET a = 11",
    ):
        with pytest.raises(ConstraintViolation) as refused:
            db.execute(sql)
        assert (refused.value.code, refused.value.constraint) == ("23514", "small")
        with db.session() as session, pytest.raises(ConstraintViolation, match="small"):
            session.execute(f"BEGIN; {sql}")
    assert db.execute("SELECT * FROM t").rows == [(1, 1)]
