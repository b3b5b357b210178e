"""Statements of a session: settings, lists, plans, and what is refused by name."""

from __future__ import annotations

import pytest

from reclock.errors import Error, InvalidSyntax, NotSupported, UndefinedName


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("BEGIN", "BEGIN"),
        ("COMMIT", "COMMIT"),
        ("ROLLBACK", "ROLLBACK"),
        ("CREATE SOURCE s FROM LOAD GENERATOR COUNTER", "CREATE SOURCE"),
        ("CREATE SINK s FROM t INTO KAFKA BROKER 'b' TOPIC 't' FORMAT JSON ENVELOPE DEBEZIUM",
         "CREATE SINK"),
        ("SUBSCRIBE TO t", "SUBSCRIBE"),
        ("COPY (SELECT 1) TO STDOUT", "COPY"),
        ("EXPLAIN TIMESTAMP FOR SELECT 1", "EXPLAIN TIMESTAMP"),
        ("ALTER TABLE t SET (RETAIN HISTORY FOR '1s')", "RETAIN HISTORY"),
        ("SET LOCAL statement_timeout = '1s'", "SET LOCAL"),
    ],
)  # fmt: skip
def test_later_statements_are_refused_by_name(db, statement, name):
    with pytest.raises(NotSupported) as caught:
        db.execute(statement)
    assert caught.value.code == "0A000"
    assert name in caught.value.message


def test_settings_are_set_shown_and_reset(db):
    assert db.execute("SHOW statement_timeout").rows == [("60s",)]
    assert db.execute("SET statement_timeout = '1500 ms'").tag == "SET"
    assert db.execute("SHOW statement_timeout").rows == [("1500ms",)]
    db.execute("RESET statement_timeout; SET transaction_isolation TO 'Serializable'")
    assert ("statement_timeout", "60s") in [row[:2] for row in db.execute("SHOW ALL").rows]
    assert db.execute("SHOW TRANSACTION ISOLATION LEVEL").rows == [("serializable",)]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("SET nothing = 1", "42704"),
        ("SHOW nothing", "42704"),
        ("SET statement_timeout = 'soon'", "22023"),
        ("SET transaction_isolation = 'read committed'", "22023"),
        ("SET timestamp_interval = '1s'", "0A000"),
    ],
)
def test_settings_that_do_not_exist_or_fit_are_refused(db, statement, code):
    with pytest.raises(Error) as caught:
        db.execute(statement)
    assert caught.value.code == code


def test_lists(db):
    db.execute("CREATE TABLE t (a INT NOT NULL, b TEXT); CREATE TABLE s (a INT)")
    db.execute("CREATE VIEW v AS SELECT a FROM t; CREATE MATERIALIZED VIEW m AS SELECT b FROM t")
    assert db.execute("SHOW TABLES").rows == [("s",), ("t",)]
    assert db.execute("SHOW VIEWS").rows == [("v",)]
    assert db.execute("SHOW MATERIALIZED VIEWS").rows == [("m",)]
    assert db.execute("SHOW SOURCES").rows == []
    assert db.execute("SHOW COLUMNS FROM t").rows == [("a", False, "integer"), ("b", True, "text")]
    created = db.execute("SHOW CREATE VIEW v").rows
    assert created == [("v", "CREATE VIEW v AS SELECT a FROM t")]
    with pytest.raises(Error, match="is not a view"):
        db.execute("SHOW CREATE VIEW t")


def test_plans_are_explained(db):
    db.execute("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a + 1 AS b FROM t WHERE a > 0")
    for statement in (
        "EXPLAIN SELECT a + 1 AS b FROM t WHERE a > 0",
        "EXPLAIN VIEW v",
        "EXPLAIN PLAN FOR CREATE MATERIALIZED VIEW m AS SELECT * FROM v",
    ):
        (text,) = db.execute(statement).rows[0]
        assert "Get t" in text
        assert "cost: " in text or text.startswith("Answered by: ")


def test_the_result_is_that_of_the_last_statement_and_an_error_ends_the_text(db):
    assert db.execute("").tag == ""
    assert db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1); SELECT a FROM t").rows
    with pytest.raises(UndefinedName):
        db.execute("INSERT INTO t VALUES (2); SELECT b FROM t; INSERT INTO t VALUES (3)")
    assert db.execute("SELECT count(*) FROM t").rows == [(2,)]
    with pytest.raises(InvalidSyntax):
        db.execute("INSERT INTO t VALUES (4); SELEKT")
    assert db.execute("SELECT count(*) FROM t").rows == [(2,)], "a text is parsed whole first"


def test_errors_say_where(db):
    db.execute("CREATE TABLE t (a INT)")
    with pytest.raises(UndefinedName) as caught:
        db.execute("SELECT a FROM t; SELECT aa FROM t")
    assert caught.value.position == 25
    assert caught.value.hint == 'perhaps you meant the column "a"'
