"""An error over rows names one of them, to who may read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reclock.engine import witness
from reclock.errors import Error, ExpressionFailed

if TYPE_CHECKING:
    from reclock.session.database import Database
    from reclock.session.session import Session

    from .conftest import Opener

SETUP = """
CREATE TABLE t (k INT PRIMARY KEY, x INT, note TEXT);
CREATE TABLE u (k INT PRIMARY KEY, y INT);
INSERT INTO t VALUES (1, 5, 'five'), (2, 0, 'nil'), (3, 0, 'zero'), (4, NULL, NULL);
INSERT INTO u VALUES (1, 1), (2, 0), (3, 3);
CREATE USER joe; GRANT CREATE ON DATABASE reclock TO joe
"""

QUERIES = {
    "output": ("SELECT 10 / x FROM t", "t.k = 2, t.x = 0"),
    "filter": ("SELECT k FROM t WHERE 10 / x > 1", "t.k = 2, t.x = 0"),
    "filtered": ("SELECT 10 / x FROM t WHERE k > 2", "t.k = 3, t.x = 0"),
    "aggregate": ("SELECT sum(10 / x) FROM t", "t.k = 2, t.x = 0"),
    "grouped": ("SELECT note, max(10 / x) FROM t GROUP BY note", "t.k = 2, t.x = 0"),
    "of a group": (
        "SELECT x, 10 / (count(*) - 2) FROM t GROUP BY x", "t.x = 0, count = 2",
    ),
    "join": ("SELECT 10 / y FROM t JOIN u ON t.k = u.k", "t.k = 2, u.y = 0"),
    "join condition": (
        "SELECT t.k, y FROM t JOIN u ON t.k = u.k AND 10 / u.y > t.x",
        "t.k = 2, t.x = 0, u.y = 0",
    ),
    "outer join condition": (
        "SELECT t.k, y FROM t LEFT JOIN u ON t.k = u.k AND 10 / u.y > t.x",
        "t.k = 2, t.x = 0, u.y = 0",
    ),
    "subquery": ("SELECT 1 / y FROM (SELECT y - 3 AS y FROM u) AS v", "u.k = 3, u.y = 3"),
    "union": ("SELECT 1 / y FROM u UNION ALL SELECT x FROM t", "u.k = 2, u.y = 0"),
    "set": ("SELECT n FROM t, generate_series(1, 10 / x) AS g(n)", "t.k = 2, t.x = 0"),
    "cast": ("SELECT note::int FROM t WHERE x = 5", "t.k = 1, t.note = 'five'"),
    "NULL": ("SELECT 1 / coalesce(x, 0) FROM t WHERE x IS NULL", "t.k = 4, t.x is null"),
}  # fmt: skip


@pytest.fixture
def made(db: Database) -> Database:
    db.execute(SETUP)
    return db


def refused(session: Database | Session, sql: str) -> ExpressionFailed:
    with pytest.raises(ExpressionFailed) as caught:
        session.execute(sql)
    return caught.value


def row(error: Error) -> str | None:
    """Return what the detail of an error says of a row."""
    return (error.detail or "").partition("for example where ")[2] or None


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_names_a_row(made: Database, name: str) -> None:
    sql, expected = QUERIES[name]
    assert row(refused(made, sql)) == expected


@pytest.mark.parametrize("name", QUERIES)
def test_a_kept_view_names_a_row(made: Database, name: str) -> None:
    sql, expected = QUERIES[name]
    made.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    error = refused(made, "SELECT * FROM v")
    assert row(error) == expected
    assert error.detail is not None
    assert error.detail.startswith("in materialized view v at ")
    ((object_, detail),) = made.execute("SELECT object, detail FROM reclock.errors").rows
    assert object_ == "v"
    assert detail.endswith(f"for example where {expected}")


def test_a_constant_has_no_row_and_values_have_one(db: Database) -> None:
    assert refused(db, "SELECT 1 / 0").detail is None
    error = refused(db, "SELECT 1 / column1 FROM (VALUES (1, 'a'), (0, 'b')) AS v")
    assert row(error) == "column1 = 0, column2 = 'b'"


def test_it_is_a_row_of_the_time_of_the_read(made: Database) -> None:
    options = "RETAIN HISTORY FOR '1 h'"
    made.execute(f"CREATE MATERIALIZED VIEW v WITH ({options}) AS SELECT 1 / x FROM t")
    made.execute(f"ALTER TABLE t SET ({options})")
    first = made.execute("DELETE FROM t WHERE k = 2").timestamp
    assert row(refused(made, "SELECT * FROM v")) == "t.k = 3, t.x = 0"
    made.execute("DELETE FROM t WHERE k = 3")
    assert len(made.execute("SELECT * FROM v").rows) == 2
    assert row(refused(made, f"SELECT * FROM v AS OF {first}")) == "t.k = 3, t.x = 0"
    assert row(refused(made, f"SELECT 1 / x FROM t AS OF {first}")) == "t.k = 3, t.x = 0"


def test_a_view_over_a_view_names_what_fails_first(made: Database) -> None:
    made.execute("CREATE MATERIALIZED VIEW v AS SELECT k, 10 / x AS q FROM t")
    made.execute("CREATE MATERIALIZED VIEW w AS SELECT k, q + 1 AS r FROM v")
    assert row(refused(made, "SELECT * FROM w")) == "t.k = 2, t.x = 0"
    made.execute("UPDATE t SET x = 10")
    made.execute("CREATE MATERIALIZED VIEW z AS SELECT 1 / (q - 1) FROM v")
    assert row(refused(made, "SELECT * FROM z")) == "v.k = 1, v.q = 1"


def test_values_are_cut_and_quoted(db: Database) -> None:
    db.execute("CREATE TABLE t (a TEXT, b BYTEA, c NUMERIC(5, 2), d INT[], e DATE, x INT)")
    long = "it''s " + "x" * 100
    db.execute(f"INSERT INTO t VALUES ('{long}', '\\x00ff', 1.50, ARRAY[1, NULL], '2020-02-03', 0)")
    first = f"t.a = 'it''s {'x' * (witness.VALUE - 6)}…', t.b = '\\x00ff', t.c = 1.50, "
    error = refused(db, "SELECT 1 / x, b, c, d, e FROM t")
    assert row(error) == first + "t.x = 0"
    error = refused(db, "SELECT d, e FROM t WHERE x / (cardinality(d) - 2) = 1 OR e = e")
    assert row(error) == first + "t.d = '{1,NULL}', t.e = '2020-02-03', t.x = 0"


def test_of_many_columns_some_are_shown(db: Database) -> None:
    names = [f"c{i}" for i in range(20)]
    db.execute(f"CREATE TABLE t ({', '.join(f'{n} INT' for n in names)})")
    db.execute(f"INSERT INTO t VALUES ({', '.join(['0'] * 20)})")
    error = refused(db, f"SELECT 1 / ({' + '.join(names)}) FROM t")
    assert row(error) == ", ".join(f"t.c{i} = 0" for i in range(6))


def test_temporal_filters_count(opener: Opener) -> None:
    db = opener()
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, x INT, until BIGINT)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT 1 / x FROM t WHERE mz_now() < until")
    db.execute("INSERT INTO t VALUES (1, 0, 5000), (2, 0, 90000)")
    assert row(refused(db, "SELECT * FROM v")) == "t.k = 1, t.x = 0"
    opener.clock.set(6_000)
    db.tick()
    assert row(refused(db, "SELECT * FROM v")) == "t.k = 2, t.x = 0"


def test_writes_name_a_row(made: Database) -> None:
    assert row(refused(made, "INSERT INTO u SELECT k + 10, 1 / x FROM t")) == "t.k = 2, t.x = 0"
    assert row(refused(made, "UPDATE t SET x = 1 / x")) == "t.k = 2, t.x = 0"
    assert row(refused(made, "DELETE FROM t WHERE 1 / x = 1")) == "t.k = 2, t.x = 0"


def test_transactions_name_a_row_of_their_time(made: Database) -> None:
    with made.session() as session, made.session() as other:
        session.execute("BEGIN; SELECT * FROM t")
        other.execute("DELETE FROM t WHERE k = 2")
        assert row(refused(session, "SELECT 1 / x FROM t")) == "t.k = 2, t.x = 0"


def test_a_subscription_names_a_row(made: Database) -> None:
    made.execute("CREATE MATERIALIZED VIEW v AS SELECT 1 / x AS q FROM t WHERE k > 2")
    with pytest.raises(ExpressionFailed) as caught:
        next(iter(made.subscribe("SUBSCRIBE v")))
    assert row(caught.value) == "t.k = 3, t.x = 0"
    made.execute("UPDATE t SET x = 1")
    subscription = made.subscribe("SUBSCRIBE v")
    made.execute("UPDATE t SET x = 0 WHERE k = 4")
    with pytest.raises(ExpressionFailed) as caught:
        for _ in subscription:
            pass
    assert row(caught.value) == "t.k = 4, t.x = 0"


def test_a_sink_names_a_row(made: Database) -> None:
    made.execute("CREATE MATERIALIZED VIEW v AS SELECT k, 1 / x AS q FROM t")
    made.execute(
        "CREATE SINK s FROM v INTO KAFKA BROKER 'b:9092' TOPIC 'out' KEY (k) NOT ENFORCED "
        "FORMAT JSON ENVELOPE UPSERT"
    )
    made.tick()
    made.execute("CREATE USER ann")
    asked = "SELECT detail FROM reclock.sink_status"
    ((detail,),) = made.execute(asked).rows
    assert "for example where t.k = 2, t.x = 0" in detail
    ((detail,),) = made.session("ann").execute(asked).rows
    assert "division by zero" in detail
    assert "for example" not in detail


# Who may see it.

READERS = {
    "nothing": ("", None),
    "the table": ("GRANT SELECT ON t TO joe", "t.k = 2, t.x = 0"),
}


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
@pytest.mark.parametrize("what", READERS)
def test_a_reader_of_a_view_sees_no_row_of_what_he_may_not_read(
    made: Database, kind: str, what: str
) -> None:
    grant, expected = READERS[what]
    made.execute(f"CREATE {kind} v AS SELECT note, 1 / x AS q FROM t")
    made.execute("GRANT SELECT ON v TO joe; GRANT SELECT ON reclock.errors TO joe")
    if grant:
        made.execute(grant)
    joe = made.session("joe")
    assert row(refused(joe, "SELECT q FROM v")) == expected
    assert row(refused(made, "SELECT q FROM v")) == "t.k = 2, t.x = 0"
    for (detail,) in joe.execute("SELECT detail FROM reclock.errors").rows:
        assert (f"for example where {expected}" in detail) is (expected is not None)
    with pytest.raises(ExpressionFailed) as caught:
        next(iter(joe.subscribe("SUBSCRIBE v")))
    assert row(caught.value) == expected
    joe.execute("BEGIN")
    assert row(refused(joe, "SELECT q FROM v")) == expected


def test_all_that_is_read_must_be_readable(made: Database) -> None:
    made.execute("CREATE VIEW v AS SELECT t.k, x, y FROM t JOIN u ON t.k = u.k")
    made.execute("GRANT SELECT ON v TO joe; GRANT SELECT ON t TO joe")
    joe = made.session("joe")
    assert row(refused(joe, "SELECT 1 / x FROM v")) is None
    made.execute("GRANT SELECT ON u TO joe")
    assert row(refused(joe, "SELECT 1 / x FROM v")) == "t.k = 2, t.x = 0"


def test_what_is_ones_own_is_named(made: Database) -> None:
    joe = made.session("joe")
    joe.execute("CREATE TABLE his (k INT PRIMARY KEY, x INT); INSERT INTO his VALUES (7, 0)")
    assert row(refused(joe, "SELECT 1 / x FROM his")) == "his.k = 7, his.x = 0"


# What cannot be looked up is told without.


def test_too_much_is_not_searched(made: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "MOST_ROWS", 1)
    monkeypatch.setattr(witness.row_of, "__kwdefaults__", {"stop": None, "most": 1})
    assert refused(made, "SELECT 1 / x FROM t").detail is None


def test_scheduled_views_name_rows_of_their_refresh_while_inputs_have_them(opener: Opener) -> None:
    db = opener()
    db.execute(SETUP)
    db.execute("ALTER TABLE t SET (RETAIN HISTORY FOR '1 h')")
    db.execute(
        "CREATE MATERIALIZED VIEW v WITH (REFRESH AT CREATION, REFRESH EVERY '1 h') AS "
        "SELECT 1 / x FROM t"
    )
    db.execute("DELETE FROM t WHERE k = 2")
    assert row(refused(db, "SELECT * FROM v")) == "t.k = 2, t.x = 0"
    db.execute("ALTER TABLE t SET (RETAIN HISTORY FOR '1 ms')")
    for n in range(100):
        opener.clock.advance(1_000)
        db.execute(f"INSERT INTO t VALUES ({10 + n}, 1, 'one')")
        db.tick()
        db._core.merger.wait()
        if row(refused(db, "SELECT * FROM v")) is None:
            break
    else:
        pytest.fail("it is never forgotten")


MOST = 9 * 10**37


def groups(db: Database, kind: str) -> None:
    db.execute("CREATE TABLE m (note TEXT, x NUMERIC(38,0))")
    rows = ", ".join(f"('n{n}', {n})" for n in range(40))
    db.execute(f"INSERT INTO m VALUES {rows}, ('b', {MOST}), ('b', {MOST}), (NULL, 1), ('', 1)")
    db.execute(f"CREATE {kind} v AS SELECT note, sum(x) AS s FROM m GROUP BY note")


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_an_error_over_a_whole_group_names_its_keys(db: Database, kind: str) -> None:
    groups(db, kind)
    assert row(refused(db, "SELECT * FROM v")) == "m.note = 'b'"
    db.execute("DELETE FROM m WHERE note = 'b'")
    db.execute(f"INSERT INTO m VALUES (NULL, {MOST}), (NULL, {MOST})")
    assert row(refused(db, "SELECT * FROM v")) == "m.note is null"
    db.execute("DELETE FROM m WHERE note IS NULL")
    assert len(db.execute("SELECT * FROM v").rows) == 41


def test_too_many_groups_are_not_searched(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    groups(db, "VIEW")
    monkeypatch.setattr("reclock.sql.witness.GROUPS", 43)
    monkeypatch.setattr(witness, "GROUPS", 43)
    assert row(refused(db, "SELECT * FROM v")) == "m.note = 'b'"
    monkeypatch.setattr("reclock.sql.witness.GROUPS", 42)
    monkeypatch.setattr(witness, "GROUPS", 42)
    assert row(refused(db, "SELECT * FROM v")) is None


def test_the_keys_of_a_group_may_be_of_any_types(db: Database) -> None:
    db.execute("CREATE TABLE m (a INT[], d DATE, f FLOAT8, b BOOLEAN, y BYTEA, x NUMERIC(38,0))")
    key = "'{1,2}', '2026-01-31', 1.5, true, 'é'"
    other = "'{1}', '2026-01-31', 1.5, true, 'é'"
    db.execute(f"INSERT INTO m VALUES ({key}, {MOST}), ({key}, {MOST}), ({other}, {MOST})")
    found = row(refused(db, "SELECT a, d, f, b, y, sum(x) FROM m GROUP BY 1, 2, 3, 4, 5"))
    assert found == ("m.a = '{1,2}', m.d = '2026-01-31', m.f = 1.5, m.b = t, m.y = '\\xc3a9'")


def test_an_error_over_a_window_names_the_keys_of_its_partition(db: Database) -> None:
    groups(db, "VIEW")
    sql = "SELECT x, sum(x) OVER (PARTITION BY note ORDER BY x) FROM m"
    assert row(refused(db, sql)) == "m.note = 'b'"


def test_an_error_over_all_rows_has_no_keys(db: Database) -> None:
    groups(db, "VIEW")
    assert row(refused(db, "SELECT sum(x) FROM m")) is None


def test_it_costs_no_tick(made: Database) -> None:
    made.execute("CREATE MATERIALIZED VIEW v AS SELECT 1 / x FROM t")
    made.tick()
    steps = made._core.engine.steps  # type: ignore[attr-defined]
    refused(made, "SELECT * FROM v")
    refused(made, "SELECT * FROM v")
    assert made._core.engine.steps == steps  # type: ignore[attr-defined]


def test_errors_of_other_rows_are_not_mixed_up(made: Database) -> None:
    made.execute("CREATE MATERIALIZED VIEW v AS SELECT note::int / x AS q, k FROM t")
    made.execute("DELETE FROM t WHERE note IN ('nil', 'zero')")
    made.execute("INSERT INTO t VALUES (9, 0, '12')")
    made.tick()
    found = made.execute("SELECT code, detail FROM reclock.errors ORDER BY 1, 2").rows
    assert [(code, detail.rpartition("where ")[2]) for code, detail in found] == [
        ("22P02", "t.k = 1, t.x = 5, t.note = 'five'"),
    ]  # the model keeps one error of a view
