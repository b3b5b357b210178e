"""CREATE OR REPLACE MATERIALIZED VIEW: what it keeps, what it changes, and what it refuses."""

from __future__ import annotations

import pytest

from reclock.errors import Error

REPLACE = "CREATE OR REPLACE MATERIALIZED VIEW v AS "
DOUBLE = REPLACE + "SELECT b, 2 * sum(a) AS s FROM t GROUP BY b"


@pytest.fixture
def sales(db):
    db.execute("CREATE TABLE t (a INT, b TEXT)")
    db.execute("INSERT INTO t VALUES (1, 'x'), (2, 'x'), (3, 'y')")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT b, sum(a) AS s FROM t GROUP BY b")
    return db


def rows(db, query="SELECT * FROM v"):
    return sorted(db.execute(query).rows)


def test_a_view_has_the_rows_of_the_new_query_and_the_past_of_the_old_one(sales, opener):
    before = sales.execute("SELECT * FROM v").timestamp
    opener.clock.advance(10)
    assert sales.execute(DOUBLE).tag == "CREATE MATERIALIZED VIEW"
    assert rows(sales) == [("x", 6), ("y", 6)]
    assert rows(sales, f"SELECT * FROM v AS OF {before}") == [("x", 3), ("y", 3)]
    sales.execute("INSERT INTO t VALUES (7, 'y')")
    assert rows(sales) == [("x", 6), ("y", 20)]
    again = opener.reopened(sales)
    assert rows(again) == [("x", 6), ("y", 20)]
    assert rows(again, f"SELECT * FROM v AS OF {before}") == [("x", 3), ("y", 3)]


def test_a_view_that_is_not_there_is_made(db):
    db.execute("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1 AS a")
    assert rows(db) == [(1,)]


def test_owner_rights_comments_and_indexes_stay(sales, opener):
    sales.execute("CREATE ROLE ann; CREATE ROLE joe; GRANT SELECT ON v TO joe")
    sales.execute("GRANT SELECT ON t TO ann; ALTER MATERIALIZED VIEW v OWNER TO ann")
    sales.execute("COMMENT ON MATERIALIZED VIEW v IS 'sums'; COMMENT ON COLUMN v.s IS 'the sum'")
    sales.execute("CREATE INDEX i ON v (s); CREATE VIEW w AS SELECT s FROM v WHERE s > 3")
    item = sales._core.world.catalog.find(("v",))
    sales.execute(DOUBLE)
    for db in (sales, opener.reopened(sales)):
        now = db._core.world.catalog.find(("v",))
        assert (now.id, now.owner, now.comments) == (item.id, "ann", item.comments)
        assert db._core.world.roles.has("joe", "SELECT", now)
        assert db.execute("SELECT b FROM v WHERE s = 6 ORDER BY b").rows == [("x",), ("y",)]
        assert db.execute("SELECT s FROM w").rows == [(6,), (6,)]
        assert db.execute("SHOW INDEXES ON v").rows == db.execute("SHOW INDEXES").rows


def test_it_may_be_made_of_younger_objects_ever_after(sales, opener):
    sales.execute("CREATE MATERIALIZED VIEW below AS SELECT count(*) AS n FROM v WHERE s > 3")
    sales.execute("CREATE TABLE young (a INT, b TEXT); INSERT INTO young VALUES (9, 'z')")
    sales.execute(
        "CREATE MATERIALIZED VIEW m AS SELECT b, max(a)::bigint AS s FROM young GROUP BY b"
    )
    sales.execute(REPLACE + "SELECT b, s FROM m")
    for db in (sales, opener.reopened(sales)):
        assert rows(db) == [("z", 9)]
        assert rows(db, "SELECT n FROM below") == [(1,)]
    db.execute("INSERT INTO young VALUES (1, 'a'); ALTER TABLE young RENAME COLUMN a TO c")
    assert rows(db) == [("a", 1), ("z", 9)]
    with pytest.raises(Error) as caught:
        db.execute("DROP TABLE young")
    assert caught.value.code == "2BP01"
    db = opener.reopened(db)
    db.execute("DROP TABLE t; DROP TABLE young CASCADE")
    assert db.execute("SHOW OBJECTS").rows == []


def test_the_same_query_changes_nothing(sales):
    item = sales._core.world.catalog.find(("v",))
    runs = sales._core.world.of(item).arrangements.runs[str(item.id)]
    sales.execute(REPLACE + "SELECT b, sum(a) AS s FROM t GROUP BY b")
    now = sales._core.world.catalog.find(("v",))
    assert now.revision == 0
    assert sales._core.world.of(now).arrangements.runs[str(item.id)] == runs


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        ("SELECT b FROM t", "42P16", "cannot drop columns from view"),
        ("SELECT b, sum(a) AS z FROM t GROUP BY b", "42P16", 'column "s" to "z"'),
        ("SELECT b, a AS s FROM t", "42P16", 'column "s" from bigint to integer'),
        ("SELECT b, sum(a) AS s, 1 AS n FROM t GROUP BY b", "0A000", 'cannot add column "n"'),
        ("SELECT b, s FROM v", "42P17", "made of itself"),
        ("SELECT b, s FROM below", "42P17", "made of itself"),
        ("SELECT 'x' AS b, 1::bigint AS s", "0A000", "without inputs"),
        ("SELECT b, nothing AS s FROM t", "42703", "nothing"),
    ],
)
def test_what_readers_could_not_go_on_with_is_refused(sales, query, code, said):
    sales.execute("CREATE MATERIALIZED VIEW below AS SELECT b, s FROM v")
    with pytest.raises(Error) as caught:
        sales.execute(REPLACE + query)
    assert caught.value.code == code
    assert said in str(caught.value)
    assert rows(sales) == [("x", 3), ("y", 3)]


@pytest.mark.parametrize(
    ("first", "replacement", "code"),
    [
        ("CREATE VIEW w AS SELECT 1 AS a", "CREATE OR REPLACE MATERIALIZED VIEW w AS SELECT 1 AS a",
         "42809"),
        ("SELECT 1", "CREATE OR REPLACE TABLE t (a INT)", "0A000"),
        ("SELECT 1", REPLACE.replace("AS ", "WITH (REFRESH EVERY '1s') AS ")
         + "SELECT b, sum(a) AS s FROM t GROUP BY b", "0A000"),
        ("CREATE MATERIALIZED VIEW r WITH (REFRESH EVERY '1s') AS SELECT s FROM v", DOUBLE,
         "0A000"),
    ],
)  # fmt: skip
def test_other_kinds_are_refused(sales, first, replacement, code):
    sales.execute(first)
    with pytest.raises(Error) as caught:
        sales.execute(replacement)
    assert caught.value.code == code


def test_a_subscribed_query_that_relies_on_what_was_unique_refuses(sales):
    follower = sales.subscribe("SUBSCRIBE (SELECT DISTINCT b FROM v)")
    with pytest.raises(Error) as caught:
        sales.execute(REPLACE + "SELECT b, a::bigint AS s FROM t")
    assert caught.value.code == "55006"
    follower.close()
    sales.execute(REPLACE + "SELECT b, a::bigint AS s FROM t")
    assert rows(sales) == [("x", 1), ("x", 2), ("y", 3)]


def test_in_a_transaction_it_happens_at_its_time_or_not_at_all(sales, opener):
    sales.execute("CREATE MATERIALIZED VIEW below AS SELECT sum(s) AS s FROM v")
    sales.execute("BEGIN")
    sales.execute("INSERT INTO t VALUES (4, 'z')")
    sales.execute(DOUBLE)
    assert rows(sales) == [("x", 6), ("y", 6), ("z", 8)]
    assert rows(sales, "SELECT s FROM below") == [(20,)]
    other = sales.session()
    assert sorted(other.execute("SELECT * FROM v").rows) == [("x", 3), ("y", 3)]
    sales.execute("ROLLBACK")
    assert rows(sales) == [("x", 3), ("y", 3)]
    follower = sales.subscribe("SUBSCRIBE below WITH (SNAPSHOT = false)")
    opener.clock.advance(5)
    sales.execute("BEGIN; INSERT INTO t VALUES (4, 'z')")
    sales.execute(DOUBLE)
    sales.execute("COMMIT")
    assert [(u.diff, u.row) for u in follower.fetch()] in (
        [(-1, (6,)), (1, (20,))], [(1, (20,)), (-1, (6,))],
    )  # fmt: skip
    again = opener.reopened(sales)
    assert rows(again) == [("x", 6), ("y", 6), ("z", 8)]


def test_a_role_replaces_what_is_its_own(sales):
    sales.execute("CREATE ROLE ann LOGIN PASSWORD 'a'; GRANT CREATE ON DATABASE reclock TO ann")
    sales.execute("GRANT SELECT ON t TO ann")
    ann = sales.session(role="ann")
    with pytest.raises(Error) as caught:
        ann.execute(DOUBLE)
    assert caught.value.code == "42501"
    sales.execute("ALTER MATERIALIZED VIEW v OWNER TO ann")
    ann.execute(DOUBLE)
    assert rows(sales) == [("x", 6), ("y", 6)]
