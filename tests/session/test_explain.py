"""EXPLAIN: of views with costs and arrangements, of queries with how they are answered."""

from __future__ import annotations

import pytest

from engines.local_engine import LocalEngine
from reclock.errors import NotSupported, StatementError


@pytest.fixture
def tables(db):
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT, s TEXT); CREATE TABLE u (a INT, c INT)")
    db.execute("INSERT INTO t VALUES (1, 1, 'x'), (2, 1, 'y'); INSERT INTO u VALUES (1, 2)")
    db.execute("CREATE INDEX u_a ON u (a)")
    return db


def explained(db, text):
    (row,) = db.execute(f"EXPLAIN {text}").rows
    return row[0].splitlines()


@pytest.mark.parametrize(
    ("query", "way"),
    [
        ("SELECT s FROM t WHERE k = 2", "look-up in t by (k): without a Spark job"),
        ("SELECT c FROM u WHERE a = 1 AND c = 2", "look-up in u by (a, c): without a Spark job"),
        ("SELECT c FROM u WHERE a = 1", "look-up in u by (a): without a Spark job"),
        ("SELECT * FROM t ORDER BY s LIMIT 1", "scan of t, 2 updates: without a Spark job"),
        ("VALUES (1), (2)", "constants: without a Spark job"),
        ("SELECT sum(a) FROM t", "a Spark job in one task over 2 updates of t"),
        ("SELECT x * 2 FROM generate_series(1, 3) x", "a Spark job in one task"),
    ],
)
def test_a_query_says_how_it_is_answered(tables, query, way):
    first, *rest = explained(tables, query)
    assert first == f"Answered by: {way}"
    assert not [line for line in rest if "cost" in line or "keeps" in line], "nothing is kept"


def test_a_view_says_what_it_costs_and_whose_arrangements_it_reads(tables):
    query = "SELECT t.a, c FROM t JOIN u ON t.k = u.a"
    lines = [
        line.strip(" |") for line in explained(tables, f"CREATE MATERIALIZED VIEW m AS {query}")
    ]
    assert "cost: the changed rows and their matches" in lines
    assert "uses table t by (k)" in lines
    assert "uses index u_a of table u by (a)" in lines
    tables.execute(f"CREATE MATERIALIZED VIEW m AS {query}")
    assert [line.strip(" |") for line in explained(tables, "MATERIALIZED VIEW m")] == lines
    other = explained(tables, "CREATE VIEW w AS SELECT s FROM t JOIN u ON t.a = u.c")
    assert [line.strip(" |") for line in other if "keeps" in line] == [
        "keeps t arranged by (a)",
        "keeps u arranged by (c)",
    ]


def test_a_view_that_cannot_keep_up_is_refused_unless_that_is_allowed(tables, opener):
    query = "SELECT k, lag(s) OVER (ORDER BY k) AS before FROM t"
    with pytest.raises(NotSupported, match="lag over all of t has no PARTITION BY") as raised:
        tables.execute(f"CREATE MATERIALIZED VIEW m AS {query}")
    assert raised.value.code == "0A000"
    assert raised.value.position == 26
    assert "WITH (allow_full_recompute = true)" in raised.value.hint
    assert tables.execute("SHOW MATERIALIZED VIEWS").rows == []
    assert "not at the cost of the change" in "".join(
        explained(tables, f"CREATE VIEW m AS {query}")
    )
    tables.execute(f"CREATE MATERIALIZED VIEW m WITH (allow_full_recompute = true) AS {query}")
    tables.execute("INSERT INTO t VALUES (0, 0, 'w')")
    db = opener.reopened(tables)
    assert sorted(db.execute("SELECT * FROM m").rows) == [(0, None), (1, "w"), (2, "x")]


def test_only_views_and_queries_have_plans(tables):
    with pytest.raises(StatementError, match="is not a view") as raised:
        tables.execute("EXPLAIN VIEW t")
    assert raised.value.hint


def test_a_query_that_may_join_many_rows_runs_on_all_cores(tables):
    rows = ", ".join(f"({i}, {i})" for i in range(1_000))
    tables.execute(f"INSERT INTO u VALUES {rows}")
    tables.tick()
    for query, cores in (
        ("SELECT count(*) FROM u x JOIN u y ON x.a = y.a", True),
        ("SELECT count(*) FROM u x, u y WHERE x.a < y.c", True),
        ("SELECT count(*) FROM u JOIN t ON u.a = t.k", False),  # at most one match
        ("SELECT count(*) FROM u, (SELECT max(a) FROM u) m", False),
        ("SELECT count(*) FROM u x, (SELECT * FROM u ORDER BY a LIMIT 10) y", False),
    ):
        assert ("on all cores" in explained(tables, query)[0]) == cores, query


@pytest.mark.parametrize(
    ("statement", "lines"),
    [
        ("SUBSCRIBE t", ["Followed: the changes of table t, which are kept anyway"]),
        ("PLAN FOR SUBSCRIBE (SELECT * FROM t)",
         ["Followed: the changes of table t, which are kept anyway"]),
        ("CREATE INDEX ON u (c)",
         ["Index of table u by (c)", "  cost: the changed rows", "  keeps u arranged by (c)"]),
        ("PLAN FOR CREATE INDEX x ON u (a)",
         ["Index of table u by (a)", "  cost: the changed rows",
          "  uses index u_a of table u by (a)"]),
    ],
)  # fmt: skip
def test_what_follows_or_arranges_says_what_it_keeps(tables, statement, lines):
    before = tables.execute("SHOW OBJECTS").rows
    assert explained(tables, statement) == lines
    assert tables.execute("SHOW OBJECTS").rows == before


def test_a_query_that_is_followed_is_explained_as_the_view_it_is(tables):
    query = "SELECT t.a, count(*) FROM t JOIN u ON t.k = u.a GROUP BY t.a"
    first, *rest = explained(tables, f"SUBSCRIBE ({query})")
    assert first == "Kept as long as someone is subscribed:"
    assert rest == explained(tables, f"CREATE VIEW w AS {query}")


def test_a_table_has_nothing_to_explain(tables):
    with pytest.raises(NotSupported) as raised:
        tables.execute("EXPLAIN CREATE TABLE x (a INT)")
    assert raised.value.hint


def test_analyze_runs_a_query_and_counts_its_rows(tables):
    for text in (
        "ANALYZE SELECT * FROM t",
        "(ANALYZE, VERBOSE, COSTS, BUFFERS off, FORMAT TEXT) SELECT * FROM t",
        "analyze verbose select * from t",
        "(analyze true, timing false) (SELECT * FROM t)",
    ):
        lines = explained(tables, text)
        assert lines[0] == "Answered by: scan of t, 2 updates: without a Spark job"
        assert "Rows: 2" in lines
        assert lines[-1].startswith("Execution Time: ")
    assert "Rows: 0" in explained(tables, "ANALYZE SELECT * FROM t WHERE k = 9")
    assert not [
        line for line in explained(tables, "(ANALYZE off) SELECT * FROM t") if "Rows" in line
    ]
    assert explained(tables, "(SELECT * FROM t)") == explained(tables, "SELECT * FROM t")
    assert tables.execute("SELECT * FROM reclock.holds WHERE holder LIKE 'select/%'").rows == []


def test_analyze_says_what_the_operators_of_a_view_took_and_keep(opener):
    opener.engine = LocalEngine
    tables = opener()
    tables.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT, s TEXT)")
    tables.execute("INSERT INTO t VALUES (1, 1, 'x'), (2, 1, 'y')")
    tables.execute("CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a")
    title = "Operators, on average of {} of this process:"
    assert title.format("0 ticks") in explained(tables, "ANALYZE MATERIALIZED VIEW m")
    for k in (3, 4):
        tables.execute(f"INSERT INTO t VALUES ({k}, {k}, 'z'), ({k + 10}, {k}, 'z')")
        tables.tick()
    lines = [line.strip(" |") for line in explained(tables, "ANALYZE MATERIALIZED VIEW m")]
    lines = lines[lines.index(title.format("2 ticks")) :]
    at = next(i for i, line in enumerate(lines) if "Accumulate" in line)
    assert "rows: 1, keeps: 3 records" in lines[at + 1]
    assert "rows: 2" in lines[next(i for i, line in enumerate(lines) if "Input" in line) + 1]
    assert explained(tables, "MATERIALIZED VIEW m")[-1] not in lines, "no numbers without ANALYZE"


@pytest.mark.parametrize(
    "text",
    ["ANALYZE CREATE VIEW w AS SELECT 1", "ANALYZE VIEW v", "ANALYZE SUBSCRIBE TO t",
     "(FORMAT XML) SELECT 1"],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused(tables, text):
    tables.execute("CREATE VIEW v AS SELECT a FROM t")
    with pytest.raises(NotSupported):
        explained(tables, text)
