"""SHOW says what the system relations say, and helps whoever mistypes."""

from __future__ import annotations

import pytest

from reclock.errors import Error


@pytest.fixture
def some(db):
    db.execute("CREATE TABLE t (k INT PRIMARY KEY, a INT); CREATE TABLE b (x TEXT)")
    db.execute("CREATE VIEW v AS SELECT a FROM t; CREATE MATERIALIZED VIEW m AS SELECT a FROM t")
    db.execute("CREATE INDEX i ON m (a); CREATE INDEX ON t (a, k)")
    return db


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("TABLES", "table"),
        ("VIEWS", "view"),
        ("MATERIALIZED VIEWS", "materialized view"),
        ("SOURCES", "source"),
        ("SINKS", "sink"),
    ],
)
def test_lists_are_those_of_the_relation(some, words, kind):
    query = f"SELECT name FROM reclock.objects WHERE kind = '{kind}' ORDER BY name"
    result = some.execute(f"SHOW {words}")
    assert result.columns == ("name",)
    assert result.rows == some.execute(query).rows
    assert bool(result.rows) == (kind not in {"source", "sink"})


def test_objects_and_indexes(some):
    query = "SELECT name, kind FROM reclock.objects ORDER BY name"
    assert some.execute("SHOW OBJECTS").rows == some.execute(query).rows
    indexes = some.execute("SHOW INDEXES")
    assert indexes.columns == ("name", "on", "key")
    assert indexes.rows == [("i", "m", "a"), ("t_a_k_idx", "t", "a, k")]
    assert some.execute("SHOW INDEXES ON t").rows == [("t_a_k_idx", "t", "a, k")]
    assert some.execute("SHOW INDEXES FROM b").rows == []


def test_columns_and_statements(some):
    assert some.execute("SHOW COLUMNS FROM t").rows == [
        ("k", False, "integer"),
        ("a", True, "integer"),
    ]
    assert some.execute("SHOW COLUMNS FROM reclock.holds").rows == [
        ("object", False, "text"),
        ("holder", False, "text"),
        ("since", True, "bigint"),
    ]
    for kind, name in (("TABLE", "b"), ("VIEW", "v"), ("MATERIALIZED VIEW", "m"), ("INDEX", "i")):
        query = f"SELECT name, sql FROM reclock.objects WHERE name = '{name}'"
        assert some.execute(f"SHOW CREATE {kind} {name}").rows == some.execute(query).rows


@pytest.mark.parametrize(
    ("statement", "code", "hint"),
    [
        ("SHOW TABELS", "42704", "SHOW TABLES"),
        ("SHOW INDEX", "42704", "SHOW INDEXES"),
        ("SHOW statement_timeouts", "42704", '"statement_timeout"'),
        ("SHOW xyzzy", "42704", "known parameters"),
        ("SHOW COLUMNS FROM frontiers", "42P01", '"reclock.frontiers"'),
        ("SHOW COLUMNS FROM i", "42809", "it is an index"),
        ("SHOW INDEXES ON tt", "42P01", '"t"'),
        ("SHOW CREATE VIEW t", "42809", "it is a table"),
        ("SHOW CREATE MATERIALIZED VIEW mm", "42P01", '"m"'),
        ("SHOW CREATE SOURCE t", "42809", "it is a table"),
        ("SHOW CREATE SINK nothing", "42P01", "there are none yet"),
    ],
)
def test_names_that_are_wrong(some, statement, code, hint):
    with pytest.raises(Error) as caught:
        some.execute(statement)
    assert caught.value.code == code
    assert (hint is None) == (caught.value.hint is None)
    assert hint is None or hint in caught.value.hint
