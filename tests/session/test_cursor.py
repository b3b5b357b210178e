"""DECLARE, FETCH, CLOSE: rows of a query or of what is followed, a few at a time."""

from __future__ import annotations

from threading import Thread
from time import sleep
from typing import TYPE_CHECKING

import pytest

from reclock.errors import Error, Interrupted
from reclock.sql.parse import parse_statements

if TYPE_CHECKING:
    from reclock.session.database import Database

    from .conftest import Opener


@pytest.fixture
def made(db: Database) -> Database:
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2), (3)")
    return db


def test_rows_of_a_query(made: Database) -> None:
    made.execute("BEGIN; DECLARE c CURSOR FOR SELECT a FROM t ORDER BY a")
    assert made.execute("FETCH c").rows == [(1,)]
    assert made.execute("FETCH FORWARD 1 FROM c").tag == "FETCH 1"
    assert made.execute("FETCH ALL IN c").rows == [(3,)]
    result = made.execute("FETCH 5 FROM c")
    assert (result.rows, result.tag, result.columns) == ([], "FETCH 0", ("a",))
    made.execute("CLOSE c; COMMIT")


def test_changes_as_they_come(opener: Opener) -> None:
    db = opener()
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    reader = db.session()
    reader.execute("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE t")
    assert [row[1:] for row in reader.execute("FETCH ALL c").rows] == [(1, 1)]
    assert reader.execute("FETCH ALL c").rows == []
    opener.clock.advance(5_000)
    db.execute("INSERT INTO t VALUES (2), (3)")
    rows = reader.execute("FETCH 1 c WITH (timeout = '60s')").rows
    rows += reader.execute("FETCH ALL c WITH (timeout = '60s')").rows
    assert sorted(row[1:] for row in rows) == [(1, 2), (1, 3)]
    assert len(db.execute("SELECT * FROM reclock.holds").rows) == 1
    reader.execute("ROLLBACK")
    assert db.execute("SELECT * FROM reclock.holds").rows == []


def test_fetch_waits_for_what_comes_and_can_be_stopped(opener: Opener) -> None:
    db = opener(background=True)
    db.execute("CREATE TABLE t (a INT)")
    session = db.session()
    session.execute("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE t")
    before = session.interrupt.number

    def stop() -> None:
        while session.interrupt.number == before:  # FETCH has not begun
            sleep(0.01)
        session.interrupt.set(Interrupted("enough"))

    stopper = Thread(target=stop)
    stopper.start()
    with pytest.raises(Interrupted):
        session.execute("FETCH 1 c WITH (timeout = '60s')")
    stopper.join()
    session.close()


def test_cursors_end_with_their_transaction(made: Database) -> None:
    made.execute("BEGIN; DECLARE c CURSOR FOR SELECT 1; COMMIT")
    with pytest.raises(Error) as caught:
        made.execute("FETCH c")
    assert caught.value.code == "34000"
    made.execute("DECLARE held CURSOR WITH HOLD FOR SELECT a FROM t ORDER BY a")
    assert made.execute("FETCH 2 held").rows == [(1,), (2,)]
    made.execute("BEGIN; COMMIT")
    assert made.execute("FETCH 2 held").rows == [(3,)]
    made.execute("CLOSE ALL")
    with pytest.raises(Error):
        made.execute("FETCH held")


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("DECLARE c CURSOR FOR SELECT 1", "25P01"),
        ("BEGIN; DECLARE c CURSOR FOR SELECT 1; DECLARE c CURSOR FOR SELECT 2", "42P03"),
        ("CLOSE nothing", "34000"),
        ("DECLARE c CURSOR FOR INSERT INTO t VALUES (1)", "42601"),
        ("FETCH BACKWARD 1 FROM c", "42601"),
    ],
)
def test_what_is_refused(made: Database, sql: str, code: str) -> None:
    with pytest.raises(Error) as caught:
        made.session().execute(sql)
    assert caught.value.code == code


def test_the_columns_are_known_before(made: Database) -> None:
    session = made.session()
    session.execute("BEGIN; DECLARE c CURSOR FOR SELECT a, 'x' AS b FROM t")
    (parsed,) = parse_statements("FETCH 2 FROM c")
    schema = session.describe(parsed).schema
    assert schema is not None
    assert schema.names == ("a", "b")
