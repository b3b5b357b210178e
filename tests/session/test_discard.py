"""What pools say between two users of a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reclock.errors import Error

if TYPE_CHECKING:
    from reclock.session.database import Database
    from reclock.session.session import Session

TAGS = {
    "RESET ALL": "RESET", "RESET statement_timeout": "RESET", "DISCARD ALL": "DISCARD ALL",
    "DISCARD PLANS": "DISCARD PLANS", "DISCARD TEMP": "DISCARD TEMP",
    "DISCARD TEMPORARY": "DISCARD TEMP", "DISCARD SEQUENCES": "DISCARD SEQUENCES",
    "UNLISTEN *": "UNLISTEN", "UNLISTEN channel": "UNLISTEN", "CLOSE ALL": "CLOSE CURSOR ALL",
    "DEALLOCATE ALL": "DEALLOCATE ALL", "DEALLOCATE PREPARE ALL": "DEALLOCATE ALL",
    "SET NAMES 'utf8'": "SET", "SET NAMES DEFAULT": "RESET", "SET TIME ZONE DEFAULT": "RESET",
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED": "SET",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE": "SET",
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE, NOT DEFERRABLE": "SET",
    "SET extra_float_digits = 3": "SET", "SET application_name TO 'x'": "SET",
    "SELECT pg_advisory_unlock_all()": "SELECT 1", "SELECT version()": "SELECT 1",
    "SHOW standard_conforming_strings": "SHOW", "SHOW transaction_isolation": "SHOW",
    "SHOW transaction_read_only": "SHOW", "SHOW default_transaction_read_only": "SHOW",
    "START TRANSACTION": "BEGIN", "ROLLBACK": "ROLLBACK",
    "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE": "BEGIN", "COMMIT": "COMMIT",
    "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE": "BEGIN", "END": "COMMIT",
}  # fmt: skip


@pytest.fixture
def session(db: Database) -> Session:
    db.execute("CREATE TABLE t (a INT); CREATE USER joe")
    return db.session()


def value(session: Session, name: str) -> str:
    return str(session.execute(f"SHOW {name}").rows[0][0])


def code(session: Session, sql: str) -> str | None:
    with pytest.raises(Error) as caught:
        session.execute(sql)
    assert caught.value.hint
    return caught.value.code


@pytest.mark.parametrize("role", [None, "joe"])
def test_everybody_may_say_it(db: Database, session: Session, role: str | None) -> None:
    with db.session(role) as asked:
        assert {sql: asked.execute(sql).tag for sql in TAGS} == TAGS


def test_reset_goes_back_to_where_the_session_began(session: Session) -> None:
    session.set("statement_timeout", "5s", local=False)
    session.settings.start()
    session.execute("SET statement_timeout = '7s'; SET application_name = 'x'")
    session.execute("RESET statement_timeout")
    assert (value(session, "statement_timeout"), value(session, "application_name")) == ("5s", "x")
    session.execute("SET statement_timeout = '7s'; BEGIN; RESET ALL; ROLLBACK")
    assert value(session, "statement_timeout") == "7s"
    session.execute("BEGIN READ ONLY; RESET ALL")
    assert value(session, "transaction_read_only") == "on"
    session.execute("COMMIT")
    assert (value(session, "statement_timeout"), value(session, "application_name")) == ("5s", "")


def test_discard_all_forgets_everything(session: Session) -> None:
    session.execute("SET statement_timeout = '7s'")
    session.execute("DECLARE c CURSOR WITH HOLD FOR SELECT 1")
    session.prepared.update({"": 1, "p": 2})
    session.execute("DISCARD ALL")
    assert value(session, "statement_timeout") == "60s"
    assert code(session, "FETCH c") == "34000"
    assert session.prepared == {"": 1}
    session.execute("BEGIN; DISCARD PLANS")
    assert code(session, "DISCARD ALL") == "25001"
    session.execute("ROLLBACK")
    assert code(session, "DISCARD EVERYTHING") == "42601"


def test_deallocate(session: Session) -> None:
    session.prepared.update({"": 1, "p": 2, "Q": 3, "r": 4})
    session.execute('DEALLOCATE p; DEALLOCATE PREPARE "Q"')
    assert session.prepared == {"": 1, "r": 4}
    assert code(session, "DEALLOCATE p") == "26000"
    session.execute("DEALLOCATE ALL")
    assert session.prepared == {"": 1}


def test_weaker_isolation_is_the_strongest(session: Session) -> None:
    for level in ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "STRICT SERIALIZABLE"):
        session.execute(f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}")
        assert value(session, "transaction_isolation") == "strict serializable"
    session.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
    assert value(session, "transaction_isolation") == "serializable"
    session.execute("COMMIT")
    assert value(session, "transaction_isolation") == "strict serializable"
    assert code(session, "BEGIN ISOLATION LEVEL SNAPSHOT") == "0A000"
    assert code(session, "SET TRANSACTION") == "42601"


def test_set_transaction_is_for_this_one(session: Session) -> None:
    session.execute("BEGIN; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE READ ONLY")
    assert value(session, "transaction_isolation") == "serializable"
    assert code(session, "INSERT INTO t VALUES (1)") == "25006"
    session.execute("ROLLBACK")
    session.execute("BEGIN; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; COMMIT")
    assert value(session, "transaction_isolation") == "strict serializable"


def test_a_session_that_is_read_only(session: Session) -> None:
    session.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    for sql in (
        "INSERT INTO t VALUES (1)", "CREATE TABLE u (a INT)", "DELETE FROM t", "DROP TABLE t",
        "BEGIN; INSERT INTO t VALUES (1)",
    ):  # fmt: skip
        assert code(session, sql) == "25006"
    session.execute("ROLLBACK; SELECT * FROM t; SHOW TABLES; EXPLAIN SELECT * FROM t")
    session.execute("BEGIN READ WRITE; INSERT INTO t VALUES (1); COMMIT")
    session.execute("RESET ALL; INSERT INTO t VALUES (1)")


def test_the_isolation_of_transactions_to_come_has_two_names(session: Session) -> None:
    session.execute("SET default_transaction_isolation = 'serializable'")
    assert value(session, "transaction_isolation") == "serializable"
    session.execute("SET transaction_isolation = 'read committed'")
    assert value(session, "default_transaction_isolation") == "strict serializable"
    session.execute("RESET default_transaction_isolation")
    assert code(session, "SET default_transaction_isolation = 'none'") == "22023"
