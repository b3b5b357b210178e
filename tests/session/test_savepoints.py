from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engines.model_engine import ModelEngine
from reclock.errors import Error, InvalidTransactionState
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reclock.session.session import Session


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "state", ModelEngine(), background=False)
    made.execute("CREATE TABLE t (a INT)")
    with made:
        yield made


def fails(session: Session, sql: str) -> str:
    with pytest.raises(Error) as caught:
        session.execute(sql)
    return caught.value.code


def test_what_came_after_a_savepoint_is_undone(db: Database) -> None:
    with db.session() as session:
        session.execute("BEGIN; INSERT INTO t VALUES (1); SAVEPOINT one; INSERT INTO t VALUES (2)")
        session.execute("SAVEPOINT two; INSERT INTO t VALUES (3); ROLLBACK TO two")
        session.execute("INSERT INTO t VALUES (4); ROLLBACK WORK TO SAVEPOINT one")
        session.execute("INSERT INTO t VALUES (5); COMMIT")
    assert sorted(db.execute("SELECT a FROM t").rows) == [(1,), (5,)]


def test_an_error_after_a_savepoint_can_be_undone(db: Database) -> None:
    with db.session() as session:
        session.execute("BEGIN; INSERT INTO t VALUES (1); SAVEPOINT s")
        assert fails(session, "INSERT INTO nowhere VALUES (1)") == "42P01"
        assert fails(session, "INSERT INTO t VALUES (2)") == "25P02"
        assert fails(session, "SAVEPOINT other") == "25P02"
        session.execute("ROLLBACK TO s; INSERT INTO t VALUES (3); RELEASE SAVEPOINT s; COMMIT")
        assert db.execute("SELECT a FROM t ORDER BY a").rows == [(1,), (3,)]
        session.execute("BEGIN; SAVEPOINT s; INSERT INTO t VALUES (9)")
        assert fails(session, "SELECT * FROM nowhere") == "42P01"
        assert session.execute("COMMIT").tag == "ROLLBACK"
    assert db.execute("SELECT count(*) FROM t").rows == [(2,)]


def test_reads_stay_at_their_time_and_hold_it_no_longer_than_the_transaction(db: Database) -> None:
    with db.session() as session:
        session.execute("BEGIN; SELECT * FROM t; SAVEPOINT s")
        db.execute("INSERT INTO t VALUES (1)")
        assert fails(session, "SELECT * FROM nowhere") == "42P01"
        session.execute("ROLLBACK TO s")
        assert session.execute("SELECT * FROM t").rows == []
        session.execute("ROLLBACK")
        assert db.execute("SELECT count(*) FROM reclock.holds").rows == [(0,)]
        assert session.execute("SELECT * FROM t").rows == [(1,)]


def test_settings_and_cursors_go_back_too(db: Database) -> None:
    with db.session() as session:
        session.execute("BEGIN; DECLARE first CURSOR FOR SELECT 1 AS x; SET application_name = 'a'")
        session.execute(
            "SAVEPOINT s; SET application_name = 'b'; DECLARE second CURSOR FOR SELECT 2"
        )
        session.execute("ROLLBACK TO s")
        assert session.execute("SHOW application_name").rows == [("a",)]
        assert session.execute("FETCH ALL first").rows == [(1,)]
        session.execute("SAVEPOINT t")
        assert fails(session, "FETCH ALL second") == "34000"
        session.execute("ROLLBACK TO t; COMMIT")
        assert session.execute("SHOW application_name").rows == [("a",)]


def test_names(db: Database) -> None:
    with db.session() as session:
        for sql in ("SAVEPOINT s", "RELEASE s", "ROLLBACK TO s"):
            assert fails(session, sql) == "25P01"
        session.execute("BEGIN; SAVEPOINT s; SAVEPOINT s; SAVEPOINT later")
        session.execute("RELEASE s; ROLLBACK TO s")  # the one before is there still
        assert fails(session, "ROLLBACK TO later") == "3B001"
        session.execute("ROLLBACK TRANSACTION TO SAVEPOINT s; RELEASE s")
        with pytest.raises(InvalidTransactionState, match="does not exist"):
            session.execute("RELEASE s")
        session.execute("ROLLBACK")
