"""Bad statements: the SQLSTATE, where in the text, what to do, and nothing half-done.

One row per mistake: the statement, its code, and the text that the error's position points
to (None where the fault is in the rows and not in the text).
"""

from __future__ import annotations

import pytest

from reclock.errors import (
    ConstraintViolation,
    Error,
    ExpressionFailed,
    NotSupported,
    StatementError,
)

SCHEMA = """
CREATE TABLE t (k INT PRIMARY KEY, a INT NOT NULL, s TEXT);
CREATE TABLE u (a INT, c INT, j JSON, ts TIMESTAMP);
INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y');
CREATE MATERIALIZED VIEW v AS SELECT a FROM t;
CREATE VIEW w AS SELECT a FROM v;
CREATE INDEX i ON u (a)
"""
NAMES = [
    ("SELECT aa FROM t", "42703", "aa"),
    ("SELECT t.aa FROM t", "42703", "t.aa"),
    ("SELECT zz FROM t", "42703", "zz"),
    ("SELECT x.a FROM t", "42P01", "x.a"),
    ("SELECT x.* FROM t", "42P01", "x.*"),
    ("SELECT * FROM tt", "42P01", "tt"),
    ("SELECT a FROM t, u", "42702", "a FROM"),
    ("SELECT * FROM t JOIN u USING (nothing)", "42703", "t JOIN"),
    ("SELECT * FROM t x, u x", "42712", "t x"),
    ("SELECT nofunction(a) FROM t", "42883", "nofunction"),
    ("SELECT sum(a) OVER nope FROM t", "42704", "sum"),
    ("WITH r AS (SELECT a FROM t), r AS (SELECT 2) SELECT * FROM r", "42712", "a FROM"),
    ("SELECT a + $1 FROM t", "42P02", "1 FROM"),
    ("UPDATE t SET nothing = 1", "42703", "t SET"),
    ("UPDATE t SET a = 1 WHERE nothing = 1", "42703", "nothing"),
    ("DELETE FROM nothing", "42P01", "nothing"),
    ("INSERT INTO t (k, nothing) VALUES (3, 1)", "42703", "t ("),
    ("INSERT INTO t (k, k) VALUES (3, 1)", "42701", "t ("),
    ("CREATE INDEX x ON t (nothing)", "42703", "nothing"),
    ("CREATE TABLE x (a INT, a INT)", "42701", "a INT"),
    ("CREATE TABLE x (a INT, PRIMARY KEY (b))", "42703", "a INT"),
    ("CREATE TABLE t (x INT)", "42P07", "t (x"),
    ("CREATE VIEW t AS SELECT 1", "42P07", "t AS"),
    ("CREATE INDEX i ON t (a)", "42P07", "i ON"),
]
TYPES = [
    ("SELECT a + s FROM t", "42883", "a + s"),
    ("SELECT * FROM t WHERE a", "42804", "a"),
    ("SELECT * FROM t WHERE a = 'x'", "22P02", "a = 'x'"),
    ("SELECT NOT a FROM t", "42804", "a FROM"),
    ("SELECT * FROM t LEFT JOIN u ON t.a", "42804", "t.a"),
    ("SELECT sum(s) FROM t", "42883", "sum"),
    ("SELECT upper(a, a) FROM t", "42883", "upper"),
    ("SELECT a FROM t UNION SELECT s FROM t", "42804", "a FROM"),
    ("SELECT a FROM t UNION SELECT a, s FROM t", "42601", "a FROM"),
    ("SELECT a FROM t WHERE a IN (SELECT a, s FROM t)", "42601", "a FROM"),
    ("SELECT coalesce(a, s) FROM t", "42804", "coalesce"),
    ("SELECT CASE WHEN a THEN 1 END FROM t", "42804", "a THEN"),
    ("SELECT sum(a) FILTER (WHERE s) FROM t", "42804", "s) FROM"),
    ("UPDATE t SET a = s", "42804", "s"),
    ("INSERT INTO t VALUES (3, 1, 'x', 4)", "42601", None),
    ("CREATE TABLE x (a INT DEFAULT 'x')", "22P02", None),
]
CLAUSES = [
    ("SELECT a FROM t GROUP BY s", "42803", "a FROM"),
    ("SELECT a FROM t WHERE count(*) > 1", "42803", "a FROM"),
    ("SELECT sum(sum(a)) FROM t", "42803", "sum(a)"),
    ("SELECT count(DISTINCT *) FROM t", "42601", "count"),
    ("SELECT row_number() FROM t", "42803", "row_number"),
    ("SELECT a FROM t WHERE row_number() OVER () = 1", "42P20", "row_number"),
    ("SELECT a FROM t WINDOW w AS (nope)", "42704", "a FROM"),
    ("SELECT a FROM t WINDOW w AS (PARTITION BY nope)", "42703", "nope"),
    ("SELECT a FROM t WINDOW w AS (ORDER BY a, nope)", "42703", "nope"),
    ("SELECT a FROM t WINDOW w AS (ORDER BY s ROWS s PRECEDING)", "22013", "s ROWS"),
    ("SELECT a FROM t WINDOW w AS (v), v AS (ORDER BY a)", "42704", "a FROM"),
    ("SELECT a FROM t WINDOW w AS (ORDER BY a), w AS (ORDER BY s)", "42P20", "s)"),
    ("SELECT count(*) FROM t WINDOW w AS (ORDER BY s)", "42803", "s)"),
    ("SELECT a FROM t ORDER BY 9", "42P10", "a FROM"),
    ("SELECT a FROM t GROUP BY 5", "42P10", "a FROM"),
    ("SELECT a FROM t LIMIT -1", "2201W", "a FROM"),
    ("SELECT a FROM t WHERE s LIKE 'x!' ESCAPE '!'", "22025", "s LIKE"),
    ("SELECT a FROM t WHERE s ~ '('", "2201B", "s ~"),
    ("SELECT a, FROM t", "42601", "FROM"),
    ("SELECT (a, ) FROM t", "42601", ") FROM"),
    ("SELECT a FROM t WHERE", "42601", None),
    ("SELECT a FROM t GROUP BY a WHERE a > 1", "42601", "WHERE"),
    ("SELECT a FROM t ORDER BY (SELECT a) WHERE a > 1", "42601", "WHERE"),
    ("SELECT a FROM t WHERE a > 1 WHERE a > 2", "42601", "WHERE a > 2"),
    ("SELECT (a + 1 FROM t", "42601", "FROM"),
    ("SELECT a FROM t WHERE a > / 1", "42601", "1"),
    ("SELEKT a FROM t", "42601", "SELEKT"),
    ("hello", "42601", "hello"),
    ("INSERT INTO t", "42601", None),
    ("CREATE MATERIALIZED VIEW x", "42601", None),
    ("CREATE VIEW x AS a", "42601", "a"),
    ("CREATE TABLE x (a)", "42601", ")"),
    ("DROP t", "42601", "t"),
    ("UPDATE t", "42601", None),
]
STATEMENTS = [
    ("CREATE SCHEMA x", "schema"),
    ("CREATE TEMP TABLE x (a INT)", "DROP"),
    ("CREATE TEMPORARY TABLE x (a INT)", "DROP"),
    ("CREATE FUNCTION x() RETURNS INT AS 'x'", "view"),
    ("REFRESH MATERIALIZED VIEW v", "every tick"),
    ("CHECKPOINT", "leave it out"),
]
UNSUPPORTED = [
    ("SELECT s::nope FROM t", "0A000", "nope"),
    ("SELECT * FROM t TABLESAMPLE (1)", "0A000", "t TABLESAMPLE"),
    ("SELECT * FROM t FOR UPDATE", "0A000", "* FROM"),
    ("WITH RECURSIVE r AS (SELECT 1) SELECT * FROM r", "0A000", "r AS"),
    ("SELECT a FROM t WHERE s ~ s", "0A000", "s ~"),
    ("SELECT a FROM t WHERE s SIMILAR TO 'x'", "0A000", "s SIMILAR"),
    ('SELECT s COLLATE "C" FROM t', "0A000", "s COLLATE"),
    ("INSERT INTO t VALUES (3, 1, 'x') ON CONFLICT (k + 1) DO NOTHING", "0A000", "k + 1"),
    ("UPDATE t SET t.a = 1", "0A000", "t.a"),
    (
        "MERGE INTO t USING u ON u.a IN (SELECT 1) WHEN NOT MATCHED THEN DO NOTHING",
        "0A000",
        "u.a",
    ),
    ("WITH x AS (DELETE FROM t RETURNING k) SELECT k FROM x", "0A000", "t RETURNING"),
    ("CREATE INDEX x ON t (a + 1)", "0A000", "a + 1"),
    ("CREATE MATERIALIZED VIEW x AS SELECT t.a FROM t, u", "0A000", "x AS"),
    ("CREATE MATERIALIZED VIEW x AS SELECT random() FROM t", "42P17", "random"),
]
ROWS = [
    ("INSERT INTO t VALUES (1, 1, 'dup')", "23505", "1, 1, 'dup'"),
    ("INSERT INTO t VALUES (7, 1, 'a'), (7, 2, 'b')", "23505", "7, 2"),
    ("INSERT INTO t VALUES (7 - 6, 1, 'dup')", "23505", "7 - 6"),
    ("INSERT INTO t VALUES (8, 1, 'a'), (8 + 0, 2, 'b')", "23505", "t VALUES"),
    ("INSERT INTO t SELECT k, a, s FROM t", "23505", "t SELECT"),
    ("INSERT INTO t VALUES (3, NULL, 'x')", "23502", "NULL"),
    ("INSERT INTO t (s, a, k) VALUES ('x', 1, 3), ('x', NULL, 4)", "23502", "NULL"),
    ("INSERT INTO t (k, s) VALUES (3, 'x')", "23502", "3, 'x'"),
    ("INSERT INTO t VALUES (3000000000, 1, 'x')", "22003", "3000000000"),
    ("INSERT INTO t VALUES (3, 1, 'x'), (4, 2147483647.5, 'x')", "22003", "2147483647.5"),
    ("INSERT INTO t VALUES (3, '3000000000', 'x')", "22003", "'3000000000'"),
    ("INSERT INTO t VALUES (3, 2147483647 + 1, 'x')", "22003", None),
    ("INSERT INTO t VALUES (3, 'x', 'x')", "22P02", "'x', 'x'"),
    ("UPDATE t SET a = 3000000000", "22003", "3000000000"),
    ("UPDATE t SET a = a * 2147483647", "22003", None),
    ("UPDATE t SET k = 5", "23505", "5"),
    ("UPDATE t SET a = NULL WHERE k = 2", "23502", "NULL"),
    ("INSERT INTO v VALUES (1)", "42809", "v VALUES"),
    ("DROP TABLE t", "2BP01", None),
    ("DROP MATERIALIZED VIEW v", "2BP01", None),
    ("DROP VIEW t", "42809", "t"),
    ("DROP TABLE nothing", "42P01", "nothing"),
]


@pytest.fixture
def filled(db):
    db.execute(SCHEMA)
    return db


def everything(db):
    rows = [sorted(db.execute(f"SELECT * FROM {name}").rows) for name in ("t", "u", "v", "w")]
    return rows, db.execute("SHOW OBJECTS").rows


@pytest.mark.parametrize(
    ("statement", "code", "at"), [*NAMES, *TYPES, *CLAUSES, *UNSUPPORTED, *ROWS]
)
def test_a_mistake_is_explained_and_changes_nothing(filled, statement, code, at):
    before = everything(filled)
    with pytest.raises(Error) as raised:
        filled.execute(f"SELECT 1; {statement}")
    error = raised.value
    assert error.code == code
    assert error.hint, error.message
    assert isinstance(error, StatementError | ConstraintViolation | ExpressionFailed)
    if at is not None:
        text = f"SELECT 1; {statement}"
        assert text[error.position - 1 :].startswith(at), text[error.position - 1 :]
    assert everything(filled) == before


@pytest.mark.parametrize(("statement", "instead"), STATEMENTS)
def test_a_statement_that_does_not_exist_says_what_does(filled, statement, instead):
    before = everything(filled)
    with pytest.raises(NotSupported) as raised:
        filled.execute(statement)
    error = raised.value
    assert error.message.removesuffix(" is not supported") in statement
    assert (error.code, error.position) == ("0A000", 1)
    assert instead in error.hint
    assert everything(filled) == before


def test_what_others_need_is_listed_and_goes_with_cascade(filled):
    with pytest.raises(Error) as raised:
        filled.execute("DROP TABLE t RESTRICT")
    assert raised.value.detail == (
        "materialized view v depends on table t; view w depends on materialized view v"
    )
    assert "CASCADE" in raised.value.hint
    filled.execute("DROP TABLE t CASCADE")
    assert [row[0] for row in filled.execute("SHOW OBJECTS").rows] == ["i", "u"]


@pytest.mark.parametrize(
    ("pattern", "escape", "matches"),
    [
        ("x!%", "!", ["x%"]),
        ("x!!", "!", ["x!"]),
        ("x\\%", "", ["x\\y"]),
        ("x\\_", "\\", ["x_"]),
        ("x_", "!", ["x!", "x%", "x_", "xy"]),
    ],
)
def test_like_has_the_escape_it_is_given(filled, pattern, escape, matches):
    for at, text in enumerate(["x%", "x!", "x_", "xy", "x\\y"], 10):
        filled.execute("INSERT INTO t VALUES ($1, 0, $2)", (at, text))
    query = f"SELECT s FROM t WHERE s LIKE '{pattern}' ESCAPE '{escape}'"
    assert sorted(filled.execute(query).rows) == [(m,) for m in sorted(matches)]
