"""CREATE and DROP: what they refuse, what they leave, and that it is there after a restart."""

from __future__ import annotations

import pytest

from reclock.errors import (
    DependentObjects,
    DuplicateName,
    Error,
    StatementError,
    TimelineMismatch,
    UndefinedName,
)


def objects(db):
    return db.execute("SHOW OBJECTS").rows


@pytest.fixture
def sales(db):
    db.execute("CREATE TABLE t (a INT, b TEXT)")
    db.execute("INSERT INTO t VALUES (1, 'x'), (2, 'x'), (3, 'y')")
    return db


def test_a_view_over_what_is_already_there_is_right_at_once(sales):
    sales.execute("CREATE MATERIALIZED VIEW v AS SELECT b, sum(a) AS s FROM t GROUP BY b")
    assert sorted(sales.execute("SELECT * FROM v").rows) == [("x", 3), ("y", 3)]
    sales.execute("CREATE MATERIALIZED VIEW w AS SELECT max(s) AS m FROM v")
    assert sales.execute("SELECT m FROM w").rows == [(3,)]
    sales.execute("INSERT INTO t VALUES (9, 'y')")
    assert sales.execute("SELECT m FROM w").rows == [(12,)]


def test_a_view_that_is_not_materialized_stands_for_its_query(sales):
    sales.execute("CREATE VIEW v (total) AS SELECT sum(a) FROM t")
    assert sales.execute("SELECT total FROM v").rows == [(6,)]
    sales.execute("CREATE MATERIALIZED VIEW m AS SELECT total + 1 AS n FROM v")
    sales.execute("DELETE FROM t WHERE a = 1")
    assert sales.execute("SELECT total, n FROM v, m").rows == [(5, 6)]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (x INT)",
        "CREATE VIEW t AS SELECT 1",
        "CREATE MATERIALIZED VIEW t AS SELECT 1",
        "CREATE INDEX t ON t (a)",
    ],
)
def test_a_name_that_is_taken_is_refused_unless_that_is_fine(sales, statement):
    before = objects(sales)
    with pytest.raises(DuplicateName) as caught:
        sales.execute(statement)
    assert caught.value.code == "42P07"
    words = statement.split(" t ", 1)
    sales.execute(f"{words[0]} IF NOT EXISTS t {words[1]}")
    assert objects(sales) == before


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE VIEW v AS SELECT nothing FROM t", "42703"),
        ("CREATE MATERIALIZED VIEW v AS SELECT * FROM nothing", "42P01"),
        ("CREATE VIEW v (x, y) AS SELECT a FROM t", "42601"),
        ("CREATE VIEW v AS SELECT a, a FROM t", "42701"),
        ("CREATE INDEX i ON nothing (a)", "42P01"),
        ("CREATE INDEX i ON t (nothing)", "42703"),
        ("CREATE INDEX i ON t (a + 1)", "0A000"),
        ("CREATE MATERIALIZED VIEW v WITH (REFRESH AT 1) AS SELECT a FROM t", "42P17"),
        ("CREATE TABLE elsewhere.t (a INT)", "3F000"),
        ("CREATE TABLE u (a INT) WITH (timeline = 'mz_x')", "42602"),
        ("DROP TABLE nothing", "42P01"),
        ("DROP VIEW t", "42809"),
        ("DROP SOURCE t", "42809"),
    ],
)
def test_what_is_wrong_is_refused_and_leaves_nothing(sales, statement, code):
    before = objects(sales)
    with pytest.raises(Error) as caught:
        sales.execute(statement)
    assert caught.value.code == code
    assert objects(sales) == before
    assert sales.execute("SELECT count(*) FROM t").rows == [(3,)]


def test_dropping_what_others_need_asks_for_cascade(sales):
    sales.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t; CREATE VIEW w AS SELECT a FROM v")
    with pytest.raises(DependentObjects) as caught:
        sales.execute("DROP TABLE t")
    assert caught.value.detail == (
        "materialized view v depends on table t; view w depends on materialized view v"
    )
    sales.execute("DROP TABLE t CASCADE")
    assert objects(sales) == []
    with pytest.raises(UndefinedName):
        sales.execute("SELECT * FROM v")


def test_several_objects_are_dropped_at_once_or_none(sales):
    sales.execute("CREATE TABLE u (a INT)")
    with pytest.raises(UndefinedName):
        sales.execute("DROP TABLE u, nothing")
    assert objects(sales) == [("t", "table"), ("u", "table")]
    sales.execute("DROP TABLE IF EXISTS u, nothing, t")
    assert objects(sales) == []


def test_a_view_can_be_replaced_if_nothing_needs_it(sales):
    sales.execute("CREATE VIEW v AS SELECT a FROM t")
    sales.execute("CREATE OR REPLACE VIEW v AS SELECT b FROM t WHERE a = 3")
    assert sales.execute("SELECT * FROM v").rows == [("y",)]
    with pytest.raises(UndefinedName):
        sales.execute("CREATE OR REPLACE VIEW v AS SELECT b FROM v")
    sales.execute("CREATE VIEW w AS SELECT b FROM v")
    with pytest.raises(DependentObjects):
        sales.execute("CREATE OR REPLACE VIEW v AS SELECT a FROM t")
    with pytest.raises(StatementError) as caught:
        sales.execute("CREATE OR REPLACE VIEW t AS SELECT 1")
    assert caught.value.code == "42809"
    assert sales.execute("SELECT * FROM w").rows == [("y",)]


def test_an_index_gets_a_name_and_goes_with_its_table(sales):
    sales.execute("CREATE INDEX ON t (b); CREATE INDEX ON t (b)")
    rows = sales.execute("SHOW INDEXES ON t").rows
    assert rows == [("t_b_idx", "t", "b"), ("t_b_idx1", "t", "b")]
    sales.execute("DROP INDEX t_b_idx; DROP TABLE t")
    assert objects(sales) == []


def test_an_index_on_a_view_keeps_its_rows(sales):
    sales.execute("CREATE VIEW v AS SELECT a + 1 AS b FROM t")
    before = sales.execute("SELECT * FROM v").rows
    sales.execute("CREATE INDEX i ON v (b)")
    assert sorted(sales.execute("SELECT * FROM v").rows) == sorted(before)
    sales.execute("DROP INDEX i")
    assert sorted(sales.execute("SELECT * FROM v").rows) == sorted(before)


def test_timelines_do_not_meet_and_leave_nothing_behind(sales):
    sales.execute("CREATE TABLE other (a INT) WITH (timeline = 'other')")
    before = objects(sales)
    for statement in (
        "CREATE VIEW v AS SELECT t.a FROM t, other",
        "CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE a IN (SELECT a FROM other)",
        "INSERT INTO t SELECT a, 'x' FROM other",
        "SELECT * FROM t, other",
    ):
        with pytest.raises(TimelineMismatch):
            sales.execute(statement)
    assert objects(sales) == before


def test_everything_is_there_after_a_restart(opener, sales):
    sales.execute("CREATE VIEW v (n) AS SELECT a + 1 FROM t")
    sales.execute("CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS c FROM t GROUP BY b")
    sales.execute("CREATE INDEX i ON m (c)")
    sales.execute("INSERT INTO t VALUES (4, 'z')")
    questions = ("SELECT * FROM t ORDER BY a", "SELECT * FROM v ORDER BY n",
                 "SELECT * FROM m ORDER BY b", "SHOW OBJECTS", "SHOW INDEXES")  # fmt: skip
    before = [sales.execute(q).rows for q in questions]
    ids = {item.name: item.id for item in sales._core.world.catalog.items.values()}
    again = opener.reopened(sales)
    assert [again.execute(q).rows for q in questions] == before
    assert {item.name: item.id for item in again._core.world.catalog.items.values()} == ids


def test_ids_are_never_given_twice_through_drops_and_restarts(opener, db):
    seen = set()
    for _ in range(3):
        db.execute("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t")
        ids = set(db._core.world.catalog.items)
        assert not ids & seen
        seen |= ids
        db.execute("DROP TABLE t CASCADE")
        db = opener.reopened(db)


def test_state_of_another_division_is_hydrated_anew(opener, sales):
    """As when a later version plans the same views differently: also with writes pending."""
    sales.execute("CREATE MATERIALIZED VIEW v AS SELECT b, sum(a) AS s FROM t GROUP BY b")
    sales.execute("CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM v")
    (state,) = sales._core.world.timelines.values()
    stray = {"elsewhere": state.arrangements.runs["u1"]}
    with sales._core.writing() as world:
        appends, moved = state.reshaped(state.shape, stray, frozenset({"u2"}))
        sales._core.publish(world, appends, moved)
    sales.execute("INSERT INTO t VALUES (10, 'y'), (1, 'z')")
    again = opener.reopened(sales)
    (state,) = again._core.world.timelines.values()
    assert state.arrangements.runs.keys() == state.shape.graph.arrangements.keys()
    assert sorted(again.execute("SELECT * FROM v").rows) == [("x", 3), ("y", 13), ("z", 1)]
    assert again.execute("SELECT * FROM w").rows == [(3,)]
    again.execute("DELETE FROM t WHERE b = 'z'")
    assert again.execute("SELECT * FROM w").rows == [(2,)]


def test_an_object_dropped_leaves_no_state(sales):
    empty = sorted(sales._core.segments.names())
    sales.execute("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS c FROM t GROUP BY a")
    sales.execute("DROP MATERIALIZED VIEW v")
    (state,) = sales._core.world.timelines.values()
    assert list(state.arrangements.runs) == ["u1"]
    assert sorted(sales._core.segments.names()) == empty
