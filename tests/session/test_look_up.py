"""The short way of a read: when it is taken, and when it is not."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from reclock.dataflow.point import COLD
from reclock.errors import Error
from reclock.sql.parse import parse_statements
from reclock.sql.plan.build.parameter import Typed
from reclock.sql.types import BIGINT

TEXT = "SELECT s FROM t WHERE id = $1"
(PARSED,) = parse_statements(TEXT)
ONE = (Typed(1, BIGINT),)


@pytest.fixture
def db(opener):
    db = opener()
    db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, s TEXT); INSERT INTO t VALUES (1, 'x')")
    for _ in range(2):
        db.execute(TEXT, ONE)
    return db


def looked(db, session, values=ONE, *, parsed=PARSED, patient=True):
    found = session.look_up(parsed, values, patient=patient)
    return found if found is None or found == COLD else found.rows


def test_a_known_look_up_asks_no_engine(db, monkeypatch):
    monkeypatch.setattr(db._core.engine, "peek", None)
    with db.session() as session:
        assert looked(db, session) == [("x",)]
        assert looked(db, session, (Typed(2, BIGINT),)) == []


def test_what_is_not_in_memory_takes_patience(db):
    with db.session() as session:
        db.execute("INSERT INTO t VALUES (2, 'y')")
        db.tick()
        assert looked(db, session, patient=False) == COLD
        assert looked(db, session) == [("x",)]
        assert looked(db, session, patient=False) == [("x",)]


def test_a_strict_read_sees_what_was_written_and_needs_patience_for_it(db):
    with db.session() as session:
        db.execute("UPDATE t SET s = 'z' WHERE id = 1")
        session.execute("SET transaction_isolation = 'serializable'")
        assert looked(db, session) == [("x",)]
        session.execute("RESET transaction_isolation")
        assert looked(db, session, patient=False) == COLD  # no tick has it
        assert looked(db, session) == [("z",)]
        assert looked(db, session, patient=False) == [("z",)]


def test_everything_else_goes_the_long_way(db):
    with db.session() as session:
        assert looked(db, session, (Typed(None, BIGINT),)) is None
        (as_of,) = parse_statements(f"{TEXT} AS OF AT LEAST 0")
        for _ in range(2):
            db.execute(as_of.text, ONE)
        assert looked(db, session, parsed=as_of) is None
        (unknown,) = parse_statements("SELECT id FROM t WHERE id = $1")
        assert looked(db, session, parsed=unknown) is None
        db._core._stale = True
        assert looked(db, session, patient=False) is None
        assert looked(db, session) is None  # the catalog was read again
        for _ in range(2):
            db.execute(TEXT, ONE)
        assert looked(db, session) == [("x",)]
    assert looked(db, session, patient=False) is None
    with pytest.raises(Error, match="closed"):
        looked(db, session)


def test_a_transaction_reads_at_its_time(db):
    with db.session() as session:
        session.execute("BEGIN")
        assert looked(db, session, patient=False) == COLD
        assert looked(db, session) == [("x",)]
        db.execute("UPDATE t SET s = 'z' WHERE id = 1; CREATE TABLE another (a INT)")
        db.tick()
        assert looked(db, session) == [("x",)]
        with pytest.raises(Error, match="does not exist"):
            session.execute("SELECT * FROM another")
        assert session.transaction.aborted
        session.execute("ROLLBACK")
        for _ in range(2):
            db.execute(TEXT, ONE)
        assert looked(db, session) == [("z",)]
        session.execute("BEGIN")
        assert looked(db, session) == [("z",)]
        session.abort()
        with pytest.raises(Error, match="aborted"):
            looked(db, session)
        session.execute("ROLLBACK")
    assert db._core.holds.rows() == ()


def test_a_view_that_holds_an_error_raises_it(db):
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT id, 1 / (id - 2) AS n FROM t")
    text = "SELECT * FROM v WHERE id = $1"
    (parsed,) = parse_statements(text)
    with db.session() as session:
        for _ in range(2):
            session.execute(text, ONE)
        assert looked(db, session, parsed=parsed) == [(1, -1)]
        db.execute("INSERT INTO t VALUES (2, 'y')")
        db.tick()
        assert looked(db, session, parsed=parsed, patient=False) == COLD
        with pytest.raises(Error, match="division by zero"):
            looked(db, session, parsed=parsed)
        db.execute("DELETE FROM t WHERE id = 2")
        assert looked(db, session, parsed=parsed) == [(1, -1)]


def test_nothing_stays_pinned(db):
    with db.session() as session:
        for values in (ONE, (Typed(None, BIGINT),), (Typed(7, BIGINT),)):
            looked(db, session, values)
    assert db._core._readers == []


def test_strict_look_ups_never_go_back_and_see_what_was_written(opener):
    """A register that grows: a read sees what was done, or seen by anybody, before it began."""
    db = opener(background=True)
    db.execute("ALTER SYSTEM SET timestamp_interval = '5ms'")
    db.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT); INSERT INTO t VALUES (1, 0)")
    text = "SELECT n FROM t WHERE id = $1"
    (parsed,) = parse_statements(text)
    lock, least, wrong = threading.Lock(), [0], []

    def done(value):
        with lock:
            least[0] = max(least[0], value)

    def write():
        for n in range(1, 26):
            opener.clock.advance(3)
            db.execute(f"UPDATE t SET n = {n} WHERE id = 1")
            done(n)

    def read():
        with db.session() as session:
            while least[0] < 25:
                with lock:
                    before = least[0]
                found = session.look_up(parsed, ONE, patient=True)
                rows = session.execute(text, ONE).rows if found is None else found.rows
                if rows[0][0] < before:
                    wrong.append((rows, before))
                done(rows[0][0])

    with ThreadPoolExecutor(4) as pool:
        working = [pool.submit(write), *(pool.submit(read) for _ in range(3))]
        for work in working:
            work.result(60)
    assert wrong == []
    with db.session() as session:
        assert session.execute(text, ONE).rows == [(25,)]
        assert session.look_up(parsed, ONE, patient=True).rows == [(25,)]
