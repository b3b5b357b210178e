"""Sessions seen and stopped by others: pg_stat_activity, pg_cancel_backend and the like."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import psycopg
import pytest

from engines.model_engine import ModelEngine
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.database import Database


@pytest.fixture
def connect(tmp_path):
    with (
        Database(tmp_path / "state", ModelEngine()) as db,
        serving(db, Options(port=0, trusts_local=True, grace=1)) as server,
    ):
        db.execute("CREATE ROLE joe LOGIN; CREATE ROLE ann LOGIN; CREATE ROLE boss LOGIN SUPERUSER")
        db.execute("CREATE TABLE t (a INT); GRANT SELECT ON t TO joe, ann")

        @contextmanager
        def connect(user):
            where = f"host=127.0.0.1 port={server.port} user={user} dbname=reclock"
            with psycopg.connect(where, autocommit=True, application_name=f"of {user}") as made:
                yield made

        yield connect


_SEEN = """SELECT usename, application_name, state, query, query_start IS NULL FROM pg_stat_activity
           WHERE pid = %s"""


def test_what_others_do_is_seen_by_those_who_may(connect):
    with connect("joe") as joe, connect("ann") as ann, connect("boss") as boss:
        pid = joe.info.backend_pid
        assert joe.execute("SELECT pg_backend_pid()").fetchone() == (pid,)
        joe.execute("BEGIN")
        seen = ("joe", "of joe", "idle in transaction", "BEGIN", False)
        assert boss.execute(_SEEN, [pid]).fetchone() == seen
        hidden = ("joe", "of joe", None, "<insufficient privilege>", True)
        assert ann.execute(_SEEN, [pid]).fetchone() == hidden
        own = joe.execute(_SEEN, [pid]).fetchone()
        assert own is not None
        assert own[2] == "active"
        assert "pg_stat_activity" in own[3]
        with pytest.raises(psycopg.errors.SyntaxError):
            joe.execute("BOGUS")
        assert boss.execute(_SEEN, [pid]).fetchone()[2] == "idle in transaction (aborted)"
    with connect("boss") as boss:
        assert boss.execute(_SEEN, [pid]).fetchone() is None


def test_a_statement_is_cancelled_by_its_role_or_a_superuser(connect):
    with connect("joe") as joe, connect("ann") as ann, connect("boss") as boss:
        pid = joe.info.backend_pid
        failures: list[psycopg.Error] = []

        def follow():
            try:
                joe.execute("SUBSCRIBE t")
            except psycopg.Error as error:
                failures.append(error)

        for stopper in ("boss", "joe"):
            failures.clear()
            thread = threading.Thread(target=follow)
            thread.start()
            until = time.monotonic() + 10
            while boss.execute(_SEEN, [pid]).fetchone()[2] != "active":
                assert not failures
                assert time.monotonic() < until
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ann.execute("SELECT pg_cancel_backend(%s)", [pid])
            with connect(stopper) as other:
                found = other.execute("SELECT pg_cancel_backend(%s)", [pid]).fetchone()
                assert found == (True,)
            thread.join(10)
            assert [type(error) for error in failures] == [psycopg.errors.QueryCanceled]
        assert joe.execute("SELECT 1").fetchone() == (1,)


def test_sessions_are_terminated_by_a_query_over_them(connect):
    with connect("joe") as one, connect("joe") as other, connect("boss") as boss:
        ended = boss.execute(
            "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE usename = 'joe' AND pid <> pg_backend_pid() ORDER BY pid"
        ).fetchall()
        pids = sorted([one.info.backend_pid, other.info.backend_pid])
        assert ended == [(pid, True) for pid in pids]
        for connection in (one, other):
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        gone = boss.execute("SELECT pg_terminate_backend(%s)", pids[:1]).fetchone()
        assert gone == (False,)


def test_preparing_does_nothing(connect):
    with connect("joe") as joe, connect("boss") as boss:
        pid = joe.info.backend_pid
        boss.execute(f"PREPARE p AS SELECT pg_terminate_backend({pid})")
        assert joe.execute("SELECT 1").fetchone() == (1,)
        boss.execute("EXECUTE p")
        with pytest.raises(psycopg.OperationalError):
            joe.execute("SELECT 1")
