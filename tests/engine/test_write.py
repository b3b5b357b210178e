"""INSERT, UPDATE, DELETE and db.insert: what they do, what they refuse, and their times."""

from __future__ import annotations

from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.errors import Error, WrongType


@pytest.fixture
def t(db):
    db.execute(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT NOT NULL DEFAULT 'none',"
        " amount NUMERIC(6, 2) DEFAULT -1, at TIMESTAMP)"
    )
    return db


def rows(db, query="SELECT id, name, amount FROM t ORDER BY id"):
    return db.execute(query).rows


def test_values_columns_and_defaults(t):
    assert (
        t.execute("INSERT INTO t VALUES (1, 'a', 2.5, '2026-01-02 03:04:05')").tag == "INSERT 0 1"
    )
    t.execute("INSERT INTO t (name, id) VALUES ('b', 2), (DEFAULT, 3)")
    t.execute("INSERT INTO t VALUES (4)")
    assert rows(t) == [
        (1, "a", Decimal("2.50")),
        (2, "b", Decimal("-1.00")),
        (3, "none", Decimal("-1.00")),
        (4, "none", Decimal("-1.00")),
    ]
    assert str(t.execute("SELECT at FROM t WHERE id = 1").rows[0][0]) == "2026-01-02 03:04:05"


def test_default_values(db):
    db.execute("CREATE TABLE d (a INT DEFAULT 7, b TEXT)")
    db.execute("INSERT INTO d DEFAULT VALUES")
    assert db.execute("SELECT * FROM d").rows == [(7, None)]


def test_expressions_and_queries_are_evaluated(t):
    t.execute("INSERT INTO t (id, name) VALUES (1 + 1, upper('x'))")
    t.execute("INSERT INTO t (id, name) SELECT id + 10, name FROM t")
    t.execute("INSERT INTO t (id, name) VALUES ((SELECT max(id) FROM t) + 1, 'last')")
    assert rows(t, "SELECT id, name FROM t ORDER BY id") == [(2, "X"), (12, "X"), (13, "last")]


def test_parameters(t):
    t.execute("INSERT INTO t (id, name, amount) VALUES ($1, $2, $3)", (1, "a", Decimal("3.25")))
    t.execute("UPDATE t SET name = $2 WHERE id = $1", (1, "b"))
    assert t.execute("SELECT amount FROM t WHERE name = $1", ("b",)).rows == [(Decimal("3.25"),)]


def test_update_and_delete_see_their_own_table(t):
    t.execute("INSERT INTO t (id, amount) VALUES (1, 1), (2, 2), (3, 3)")
    assert (
        t.execute("UPDATE t SET amount = amount * 10, name = DEFAULT WHERE id > 1").tag
        == "UPDATE 2"
    )
    assert (
        t.execute("DELETE FROM t AS x WHERE x.amount = (SELECT max(amount) FROM t)").tag
        == "DELETE 1"
    )
    assert rows(t, "SELECT id, amount FROM t ORDER BY id") == [(1, 1), (2, 20)]
    assert t.execute("DELETE FROM t").tag == "DELETE 2"
    assert t.execute("DELETE FROM t").tag == "DELETE 0"


def test_duplicate_rows_without_a_key_are_counted(db):
    db.execute("CREATE TABLE d (a INT)")
    db.execute("INSERT INTO d VALUES (1), (1), (2)")
    assert db.execute("UPDATE d SET a = 2 WHERE a = 1").tag == "UPDATE 2"
    assert db.execute("SELECT a, count(*) FROM d GROUP BY a").rows == [(2, 3)]


def test_an_update_that_changes_nothing_writes_nothing(t):
    t.execute("INSERT INTO t (id) VALUES (1)")
    t.tick()
    t.execute("UPDATE t SET name = 'none'")
    (state,) = t._core.world.timelines.values()
    assert state.wal.pending == ()


@pytest.mark.parametrize(
    ("statement", "code", "column"),
    [
        ("INSERT INTO t VALUES ('abc')", "22P02", "id"),
        ("INSERT INTO t (id, amount) VALUES (9, 99999.5)", "22003", "amount"),
        ("INSERT INTO t (id, at) VALUES (9, 'yesterday')", "22P02", "at"),
        ("INSERT INTO t (id, at) VALUES (9, 5)", "42804", "at"),
        ("INSERT INTO t (id, name) VALUES (9, NULL)", "23502", "name"),
        ("INSERT INTO t (name) VALUES ('x')", "23502", "id"),
        ("INSERT INTO t (id) VALUES (9), (10), (9)", "23505", "id"),
        ("INSERT INTO t (id) VALUES (2), (1)", "23505", "id"),
        ("INSERT INTO t (id) SELECT id FROM t", "23505", "id"),
        ("INSERT INTO t (nothing) VALUES (1)", "42703", "nothing"),
        ("INSERT INTO t (id, id) VALUES (1, 2)", "42701", "id"),
        ("INSERT INTO t (id) VALUES (9, 10)", "42601", ""),
        ("INSERT INTO t (id, name) SELECT 9", "42601", ""),
        ("INSERT INTO nothing VALUES (1)", "42P01", "nothing"),
        ("INSERT INTO v VALUES (1)", "42809", "v"),
        ("UPDATE t SET name = NULL", "23502", "name"),
        ("UPDATE t SET id = 5", "23505", "id"),
        ("UPDATE t SET nothing = 5", "42703", "nothing"),
        ("UPDATE t SET name = 'a', name = 'b'", "42601", "name"),
        ("UPDATE t SET id = 1 / (id - 1)", "22012", ""),
        ("DELETE FROM v", "42809", "v"),
        ("DELETE FROM t WHERE 1 / (id - 1) > 0", "22012", ""),
    ],
)
def test_what_is_refused_says_why_and_leaves_nothing(t, statement, code, column):
    t.execute("CREATE VIEW v AS SELECT id FROM t; INSERT INTO t (id) VALUES (1)")
    t.tick()
    t.execute("INSERT INTO t (id) VALUES (2)")
    before = rows(t)
    with pytest.raises(Error) as caught:
        t.execute(statement)
    assert caught.value.code == code
    assert column in f"{caught.value.message} {caught.value.detail}"
    assert rows(t) == before
    t.execute("INSERT INTO t (id) VALUES (3)")
    assert len(rows(t)) == 3


def test_many_rows_at_once(t):
    assert t.insert("t", [(1, "a", "1.5", None), (2, "b", 2, None)]).tag == "INSERT 0 2"
    t.insert("t", pa.table({"name": ["c"], "id": pa.array([3], pa.int16())}))
    t.insert("public.t", pl.DataFrame({"id": [4], "name": ["d"], "amount": [0.25]}))
    t.insert("t", [])
    assert rows(t) == [
        (1, "a", Decimal("1.50")),
        (2, "b", Decimal("2.00")),
        (3, "c", Decimal("-1.00")),
        (4, "d", Decimal("0.25")),
    ]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ([(1, "a", 2)], "42601"),
        (["abcd"], "42601"),
        ([(1, 5, 2, None)], "42804"),
        ([(2**70, "a", 2, None)], "22003"),
        (pa.table({"id": [1], "other": [1]}), "42703"),
        (pa.table({"id": [[1]]}), "42804"),
        (pa.table({"id": [1], "amount": [1e9]}), "22003"),
        (pa.table({"name": ["x"]}), "23502"),
        (5, "42804"),
    ],
)
def test_rows_that_do_not_fit_are_refused_whole(t, given, code):
    with pytest.raises(Error) as caught:
        t.insert("t", given)
    assert caught.value.code == code
    assert rows(t) == []


def test_a_large_write_goes_to_a_segment_and_is_folded(t, opener):
    many = pa.table({"id": range(20_000), "name": [f"name {i}" for i in range(20_000)]})
    t.insert("t", many)
    (state,) = t._core.world.timelines.values()
    assert state.wal.pending[0].run.segment in t._core.segments.names()
    again = opener.reopened(t)
    assert again.execute("SELECT count(*), max(name) FROM t").rows == [(20_000, "name 9999")]
    with pytest.raises(Error, match="duplicate key"):
        again.insert("t", many)


def test_wrong_rows_name_their_column(t):
    with pytest.raises(WrongType) as caught:
        t.insert("t", [(1, object(), 2, None)])
    assert 'column "name"' in caught.value.detail


def test_many_pending_writes_are_folded_on_the_way(t, monkeypatch):
    monkeypatch.setattr("reclock.engine.write.FOLD_AFTER", 5)
    for n in range(12):
        t.execute("INSERT INTO t (id) VALUES ($1)", (n,))
        (state,) = t._core.world.timelines.values()
        assert len(state.wal.pending) <= 5
    assert len(rows(t)) == 12


@given(walk=st.lists(st.integers(-5_000, 5_000), min_size=1, max_size=12), data=st.data())
@settings(max_examples=15)
def test_times_of_writes_increase_through_clock_jumps_and_restarts(make_opener, walk, data):
    """P7: and every read sees every write before it, at a time that never goes back."""
    opener = make_opener()
    db = opener()
    db.execute("CREATE TABLE t (a INT)")
    last = read = 0
    for count, jump in enumerate(walk, 1):
        opener.clock.set(max(0, opener.clock.now_ms() + jump))
        match data.draw(st.sampled_from(["crash", "tick", "go on"])):
            case "crash":
                db = opener.reopened(db)
            case "tick":
                db.tick()
        written = db.execute("INSERT INTO t VALUES (1)").timestamp
        assert written > max(last, read)
        answer = db.execute("SELECT count(*) FROM t")
        assert answer.rows == [(count,)]
        assert answer.timestamp >= written
        last, read = written, answer.timestamp
