"""Sessions, side by side and from several threads; settings, lists, plans, what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from reclock.errors import Error, InvalidSyntax, NotSupported, StorageError, UndefinedName


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("SUBSCRIBE TO t", "SUBSCRIBE"),
        ("COPY (SELECT 1) TO STDOUT", "COPY"),
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
    db.execute("RESET transaction_isolation")
    ((level,),) = db.execute("SHOW TRANSACTION ISOLATION LEVEL").rows
    assert level == "repeatable read", "a name that drivers know"
    db.execute(f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}")
    assert db.execute("SHOW transaction_isolation").rows == [("strict serializable",)]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("SET nothing = 1", "42704"),
        ("SHOW nothing", "42704"),
        ("SET statement_timeout = 'soon'", "22023"),
        ("SET transaction_isolation = 'read everything'", "22023"),
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


def test_sessions_have_settings_of_their_own_and_share_the_rest(db):
    with db.session() as one, db.session() as other:
        one.execute("SET statement_timeout = '5s'; CREATE TABLE t (a INT)")
        one.insert("t", [(1,)])
        assert other.execute("SELECT a FROM t").rows == [(1,)]
        assert other.execute("SHOW statement_timeout").rows == [("60s",)]
        assert one.execute("SHOW statement_timeout").rows == [("5s",)]
        assert db.execute("SHOW statement_timeout").rows == [("60s",)]
        one.execute("BEGIN; INSERT INTO t VALUES (2)")
        other.execute("INSERT INTO t VALUES (3)")
        assert db.execute("SELECT a FROM t ORDER BY a").rows == [(1,), (3,)]


def test_a_closed_session_says_so_and_rolls_back(db):
    db.execute("CREATE TABLE t (a INT)")
    session = db.session()
    session.execute("BEGIN; SELECT * FROM t")
    assert db._core.holds.rows()
    session.close()
    session.close()
    assert db._core.holds.rows() == ()
    for use in (lambda: session.execute("SELECT 1"), lambda: session.insert("t", [(1,)])):
        with pytest.raises(StorageError, match="the session is closed") as caught:
            use()
        assert caught.value.code == "08003"
    open_one = db.session()
    db.close()
    with pytest.raises(StorageError, match="closed"):
        open_one.execute("SELECT 1")
    with pytest.raises(StorageError, match="closed"):
        db.session()


def test_threads_of_one_session_take_turns(db):
    """A text is a turn: no statement of another comes between BEGIN and COMMIT."""
    db.execute("CREATE TABLE t (who INT, n INT)")
    with db.session() as session, ThreadPoolExecutor(4) as pool:

        def work(who):
            inserts = "; ".join(f"INSERT INTO t VALUES ({who}, {n})" for n in range(5))
            return session.execute(f"BEGIN; {inserts}; COMMIT").timestamp

        times = list(pool.map(work, range(8)))
    assert len(set(times)) == 8
    for time in sorted(times):
        db.tick()
        seen = db.execute(f"SELECT who, count(*) AS n FROM t GROUP BY who AS OF {time}").rows
        assert {n for _, n in seen} == {5}


def test_a_session_that_waits_does_not_stop_another(opener):
    db = opener(background=True)
    db.execute("CREATE TABLE t (a INT)")
    with db.session() as slow, db.session() as quick, ThreadPoolExecutor(1) as pool:
        slow.execute("SET statement_timeout = '2s'")
        waiting = pool.submit(slow.execute, "SELECT * FROM t AS OF 99000")
        for n in range(3):
            quick.execute(f"INSERT INTO t VALUES ({n})")
            assert len(quick.execute("SELECT * FROM t").rows) == n + 1
        assert not waiting.done()
        opener.clock.set(99_000)
        assert len(waiting.result().rows) == 3
