"""An index on a view keeps the view: reads use it, it is right at every time, it goes with DROP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.local_engine import LocalEngine
from reclock.errors import (
    DependentObjects,
    ExpressionFailed,
    Forbidden,
    NotSupported,
    StatementError,
    Unreadable,
)
from reclock.testing.failpoints import armed

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTS = "SELECT a, count(*) AS n FROM t GROUP BY a"


@pytest.fixture
def shop(opener):
    opener.engine = LocalEngine
    db = opener()
    db.execute("ALTER SYSTEM SET timestamp_interval = '1ms'")
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT)")
    db.execute("INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)")
    db.execute(f"CREATE VIEW v AS {COUNTS}")
    db.execute("CREATE VIEW w AS SELECT n FROM v WHERE a > 1")
    return db


def reads(db, sql):
    """Return the objects whose rows a query reads."""
    with db._session.reading(sql, ()) as at:
        from reclock.engine.leaves import leaves  # noqa: PLC0415

        return {item.name for item in leaves(at.world, at.plan)}


def rows(db, sql):
    return sorted(db.execute(sql).rows)


def sizes(db):
    query = "SELECT object, operator, records FROM reclock.arrangement_sizes WHERE object <> 't'"
    return set(db.execute(query).rows)


def test_reads_of_the_view_use_it_and_are_right(shop, opener):
    assert reads(shop, "SELECT * FROM v") == {"t"}
    shop.execute("CREATE INDEX i ON v (a)")
    assert reads(shop, "SELECT * FROM v") == {"i"}
    assert reads(shop, "SELECT * FROM w") == {"i"}
    assert reads(shop, "SELECT * FROM v JOIN t USING (a)") == {"i", "t"}
    assert reads(shop, COUNTS) == {"t"}  # what does not name the view is left as it is
    assert rows(shop, "SELECT * FROM v") == [(1, 2), (2, 1)]
    shop.execute("INSERT INTO t VALUES (4, 2)")
    shop.execute("DELETE FROM t WHERE k = 1")
    assert rows(shop, "SELECT * FROM v") == [(1, 1), (2, 2)]
    assert rows(shop, "SELECT * FROM w") == [(2,)]
    again = opener.reopened(shop)
    assert reads(again, "SELECT * FROM v") == {"i"}
    assert rows(again, "SELECT * FROM v") == [(1, 1), (2, 2)]
    assert again.check() == []


def test_it_is_looked_up_by_its_columns_and_by_those_of_others(shop):
    shop.execute("CREATE INDEX i ON v (a)")
    shop.execute("CREATE INDEX j ON v (n)")
    for where, found in (("a = 1", [(1, 2)]), ("n = 1", [(2, 1)])):
        query = f"SELECT * FROM v WHERE {where}"
        way = shop.execute(f"EXPLAIN {query}").rows[0][0]
        assert way.startswith("Answered by: look-up in v by"), way
        for _ in range(3):
            assert rows(shop, query) == found
            assert rows(shop, f"SELECT a FROM v WHERE {where}") == [(a,) for a, _ in found]
    shop.execute("DROP INDEX i")
    assert reads(shop, "SELECT * FROM v") == {"j"}
    assert rows(shop, "SELECT * FROM v WHERE a = 1") == [(1, 2)]
    assert shop.check() == []


def test_times_before_it_was_made_are_answered_from_what_the_view_is_made_of(shop, opener):
    shop.execute("ALTER SYSTEM SET logical_compaction_window = '1 h'")
    before = shop.execute("INSERT INTO t VALUES (9, 9)").timestamp
    opener.clock.advance(1_000)
    shop.execute("DELETE FROM t WHERE k = 9")
    with shop.session() as session:
        session.execute("BEGIN")
        assert session.execute("SELECT count(*) FROM t").rows == [(3,)]
        opener.clock.advance(1_000)
        shop.execute("INSERT INTO t VALUES (5, 5)")
        shop.execute("CREATE INDEX i ON v (a)")
        assert sorted(session.execute("SELECT * FROM v").rows) == [(1, 2), (2, 1)]
        session.execute("COMMIT")
    assert rows(shop, f"SELECT * FROM v AS OF {before}") == [(1, 2), (2, 1), (9, 1)]
    assert rows(shop, f"SELECT * FROM v WHERE a = 9 AS OF {before}") == [(9, 1)]
    shown = shop.execute(f"EXPLAIN TIMESTAMP FOR SELECT * FROM v AS OF {before}").rows[0][0]
    assert str(before) in shown
    with pytest.raises(Unreadable):
        shop.execute("SELECT * FROM v AS OF 1")


def test_drop_index_ends_it_and_the_view_is_its_query_again(shop):
    empty = sizes(shop)
    shop.execute("CREATE INDEX i ON v (a)")
    assert {("i", "index", 2), ("i", "errors", 0)} < sizes(shop)
    shop.execute("DROP INDEX i")
    assert sizes(shop) == empty
    assert reads(shop, "SELECT * FROM v") == {"t"}
    assert rows(shop, "SELECT * FROM v") == [(1, 2), (2, 1)]


def test_dependents_and_replacing(shop):
    shop.execute("CREATE INDEX i ON v (a)")
    assert shop.execute("SHOW INDEXES ON v").rows == [("i", "v", "a")]
    assert ("i", "index") in shop.execute("SHOW OBJECTS").rows
    shop.execute("DROP VIEW w")
    with pytest.raises(DependentObjects, match="cannot replace view v because an index keeps it"):
        shop.execute("CREATE OR REPLACE VIEW v AS SELECT 1 AS a")
    shop.execute("DROP VIEW v")
    assert shop.execute("SHOW INDEXES").rows == []
    assert sizes(shop) == set()


def test_what_is_made_over_the_view_does_not_need_the_index(shop, opener):
    shop.execute("CREATE INDEX i ON v (a)")
    shop.execute("CREATE MATERIALIZED VIEW m AS SELECT sum(n) AS s FROM v")
    with shop.subscribe("SUBSCRIBE v") as sub:
        assert sorted(u.row for u in sub.fetch()) == [(1, 2), (2, 1)]
        shop.execute("DROP INDEX i")
        shop.execute("INSERT INTO t VALUES (4, 1)")
        assert sorted((u.diff, u.row) for u in sub.fetch(10)) == [(-1, (1, 2)), (1, (1, 3))]
    assert shop.execute("SELECT s FROM m").rows == [(4,)]
    assert opener.reopened(shop).check() == []


def test_a_view_that_is_another_name_of_a_relation_has_its_rows(shop, opener):
    shop.execute("CREATE VIEW same AS SELECT * FROM t")
    shop.execute("CREATE INDEX s ON same (a)")
    way = shop.execute("EXPLAIN SELECT * FROM t WHERE a = 2").rows[0][0]
    assert way.startswith("Answered by: look-up in t by (a)")
    assert sizes(shop) == {("s", "index", 3)}
    again = opener.reopened(shop)
    assert rows(again, "SELECT * FROM same WHERE a = 2") == [(3, 2)]
    assert again.check() == []


def test_a_view_of_constants_can_be_indexed(shop, opener):
    shop.execute("CREATE VIEW c AS SELECT x FROM (VALUES (1), (2)) y (x)")
    shop.execute("CREATE INDEX i ON c (x)")
    again = opener.reopened(shop)
    assert rows(again, "SELECT * FROM c WHERE x = 2") == [(2,)]
    assert again.check() == []


def test_what_cannot_be_kept_is_refused(shop):
    shop.execute("CREATE VIEW ticks AS SELECT * FROM reclock.ticks")
    shop.execute("CREATE VIEW rows AS SELECT phase FROM reclock.ticks")
    for name, column in (("ticks", "phase"), ("rows", "phase")):
        with pytest.raises(NotSupported, match="an index over"):
            shop.execute(f"CREATE INDEX ON {name} ({column})")
    with pytest.raises(StatementError, match='column "z"'):
        shop.execute("CREATE INDEX ON v (z)")
    with pytest.raises(NotSupported, match="expression"):
        shop.execute("CREATE INDEX ON v ((a + 1))")
    assert shop.execute("CREATE INDEX IF NOT EXISTS i ON v (a)").notices == ()
    assert shop.execute("CREATE INDEX IF NOT EXISTS i ON v (a)").notices
    shop.execute("CREATE INDEX ON v (n)")
    assert ("v_n_idx", "v", "n") in shop.execute("SHOW INDEXES").rows


def test_a_row_that_fails_is_an_error_of_the_view_until_it_is_gone(shop):
    shop.execute("CREATE VIEW f AS SELECT k, 6 / a AS x FROM t")
    shop.execute("CREATE INDEX i ON f (k)")
    shop.execute("INSERT INTO t VALUES (7, 0)")
    with pytest.raises(ExpressionFailed) as told:
        shop.execute("SELECT * FROM f WHERE k = 1")
    assert told.value.code == "22012"
    shop.execute("DELETE FROM t WHERE k = 7")
    assert rows(shop, "SELECT x FROM f WHERE k = 3") == [(3,)]


def test_rights_are_those_of_the_view(shop):
    shop.execute("CREATE ROLE ann; CREATE ROLE bob; GRANT CREATE ON DATABASE reclock TO ann")
    ann, bob = shop.session("ann"), shop.session("bob")
    with pytest.raises(Forbidden):
        ann.execute("CREATE INDEX i ON v (a)")
    shop.execute("GRANT SELECT ON v TO ann")
    ann.execute("CREATE INDEX i ON v (a)")
    assert sorted(ann.execute("SELECT * FROM v").rows) == [(1, 2), (2, 1)]
    with pytest.raises(Forbidden, match="view v"):
        bob.execute("SELECT * FROM v")
    with pytest.raises(StatementError):
        bob.execute("SELECT * FROM i")
    shop.execute("GRANT SELECT ON v TO bob")
    assert bob.execute("SELECT n FROM v WHERE a = 1").rows == [(2,)]
    shop.execute("REVOKE SELECT ON v FROM bob")
    with pytest.raises(Forbidden, match="view v"):
        bob.execute("SELECT n FROM v WHERE a = 1")
    with pytest.raises(Forbidden):
        bob.execute("DROP INDEX i")
    ann.execute("DROP INDEX i")


def test_it_expires_and_derives_as_a_materialized_view_does(shop, opener):
    offset = "ALTER SYSTEM SET compute_replica_expiration_offset"
    shop.execute(f"{offset} = '20s'; ALTER SYSTEM SET expiration_renewal = 'false'")
    shop.execute("CREATE VIEW e AS SELECT k FROM t WHERE mz_now() < 30000 + k")
    shop.execute("CREATE INDEX i ON e (k)")
    told = "SELECT expiration, dropped, pending FROM reclock.expirations WHERE object = 'i'"
    started = 1_000
    assert shop.execute(told).rows == [(started + 20_000, 3, 0)]
    pending = "SELECT pending FROM reclock.arrangement_sizes WHERE operator = 'temporal'"
    assert shop.execute(pending).rows == [(0,)]
    assert reads(shop, "SELECT * FROM e") == {"i"}
    shown = shop.execute("EXPLAIN CREATE INDEX j ON e (k)").rows[0][0]
    assert "which keeps its rows" in shown
    opener.clock.set(15_000)
    again = opener.reopened(shop)
    again.tick()
    assert again.execute(told).rows == [(35_000, 0, 3)]
    opener.clock.set(30_002)
    again.tick()
    assert rows(again, "SELECT * FROM e") == [(3,)]
    assert again.check() == []


def test_one_that_is_made_while_rows_come_is_right(shop, opener):
    session = shop.session()
    numbers = iter(range(100, 200))

    def happen():
        for _ in range(3):
            n = next(numbers)
            session.execute(f"INSERT INTO t VALUES ({n}, {n % 3})")
            opener.clock.advance(3)
            shop.tick()

    with armed({"ddl.prepare.before": happen, "ddl.prepare.after": happen}):
        shop.execute("CREATE INDEX i ON v (a)")
    assert reads(shop, "SELECT * FROM v") == {"i"}
    assert rows(shop, "SELECT * FROM v") == rows(shop, COUNTS)


QUERIES = (
    COUNTS,
    "SELECT t.k, t.a, u.a AS b FROM t LEFT JOIN u ON t.a = u.k",
    "SELECT DISTINCT a FROM t",
    "SELECT a, k FROM t ORDER BY a DESC, k LIMIT 2",
    "SELECT a, k FROM t WHERE mz_now() <= 1010 + 3 * a",
    "SELECT k, a FROM t EXCEPT ALL SELECT k, a FROM u",
)

step = st.one_of(
    st.tuples(st.just("insert"), st.sampled_from("tu"), st.integers(0, 9), st.integers(0, 3)),
    st.tuples(st.just("delete"), st.sampled_from("tu"), st.integers(0, 9)),
    st.tuples(st.just("clock"), st.integers(0, 5)),
    st.tuples(st.just("create"), st.integers(0, 2)),
    st.tuples(st.just("drop"), st.integers(0, 2)),
    st.tuples(st.just("restart")),
)


def histories(make_opener: Callable, query: str, steps: list) -> None:
    """At each step, and at all times there are, the view is what its query gives."""
    opener = make_opener()
    opener.engine = LocalEngine
    db = opener()
    db.execute("ALTER SYSTEM SET timestamp_interval = '1ms'")
    db.execute("CREATE TABLE t (k INT, a INT); CREATE TABLE u (k INT, a INT)")
    db.execute(f"CREATE VIEW v AS {query}; CREATE VIEW w AS SELECT * FROM v")
    times = []
    for what, *values in steps:
        match what, values:
            case "insert", [table, k, a]:
                db.execute(f"INSERT INTO {table} VALUES ({k}, {a})")
            case "delete", [table, k]:
                db.execute(f"DELETE FROM {table} WHERE k = {k}")
            case "clock", [ms]:
                opener.clock.advance(ms)
            case "create", [n]:
                column = db.execute("SELECT * FROM v").columns[n % 2 - 1]
                db.execute(f"CREATE INDEX IF NOT EXISTS i{n} ON v ({column})")
            case "drop", [n]:
                db.execute(f"DROP INDEX IF EXISTS i{n}")
            case "restart", []:
                db = opener.reopened(db)
        times.append(db.execute("SELECT count(*) FROM t, u").timestamp)
        for time in (times[-1], times[len(times) // 2]):
            expected = rows(db, f"({query}) AS OF {time}")
            assert rows(db, f"SELECT * FROM v AS OF {time}") == expected
            assert rows(db, f"SELECT * FROM w AS OF {time}") == expected
    assert db.check() == []
    db.close()


def some(examples: int):
    slow = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    return settings(max_examples=examples, deadline=None, suppress_health_check=slow)


@given(query=st.sampled_from(QUERIES), steps=st.lists(step, max_size=8))
@some(8)
def test_random_histories(make_opener, query, steps):
    histories(make_opener, query, steps)


@pytest.mark.slow
@given(query=st.sampled_from(QUERIES), steps=st.lists(step, max_size=25))
@some(200)
def test_more_random_histories(make_opener, query, steps):
    histories(make_opener, query, steps)
