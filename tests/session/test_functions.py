"""Functions of the session: constants of a statement, and of nothing that is kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engines.model_engine import ModelEngine
from reclock.clock import ManualClock
from reclock.errors import Error
from reclock.session.database import Database
from reclock.sql.parse import parse_statements


def test_who_and_where(db: Database) -> None:
    db.execute("CREATE USER joe")
    sql = "SELECT current_user, session_user, current_database(), current_schema() AS s, version()"
    result = db.session("joe").execute(sql)
    assert result.columns == ("current_user", "session_user", "current_database", "s", "version")
    assert result.rows[0][:4] == ("joe", "joe", "reclock", "public")
    assert result.rows[0][4].startswith("PostgreSQL ")
    assert db.execute("SELECT pg_catalog.current_user()").rows == [("owner",)]


def test_they_are_text_wherever_they_stand(db: Database) -> None:
    db.execute("CREATE TABLE t (who TEXT); INSERT INTO t VALUES (current_user)")
    assert db.execute("SELECT who FROM t WHERE who = current_user").rows == [("owner",)]
    assert db.execute("SELECT upper(current_user) FROM t").rows == [("OWNER",)]
    db.execute("UPDATE t SET who = current_database() WHERE who = (SELECT session_user)")
    assert db.execute("SELECT who FROM t").rows == [("reclock",)]


def test_settings(db: Database) -> None:
    session = db.session()
    session.execute("SET application_name = 'me'")
    assert session.execute("SELECT current_setting('application_name')").rows == [("me",)]
    with pytest.raises(Error) as caught:
        session.execute("SELECT current_setting('nothing')")
    assert caught.value.code == "42704"
    asked = "SELECT current_setting('jit') AS cur, set_config('jit', 'off', false) AS new"
    assert session.execute(asked).rows == [("off", "off")], "what asyncpg asks before types"
    for sql, code in (
        ("SELECT set_config('application_name', 'you', false)", "0A000"),
        ("SELECT set_config('jit', 'on', false)", "22023"),
    ):
        with pytest.raises(Error) as caught:
            session.execute(sql)
        assert caught.value.code == code


def test_they_are_described(db: Database) -> None:
    (parsed,) = parse_statements("SELECT version(), $1::int")
    schema = db.session().describe(parsed).schema
    assert schema is not None
    assert [str(c.type) for c in schema] == ["text", "integer"]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("CREATE VIEW v AS SELECT current_user AS a", "0A000"),
        ("CREATE MATERIALIZED VIEW v AS SELECT version() AS a", "0A000"),
        ("SELECT current_user(1)", "42883"),
        ("SELECT version(1)", "42883"),
    ],
)
def test_what_is_kept_has_none(db: Database, sql: str, code: str) -> None:
    with pytest.raises(Error) as caught:
        db.execute(sql)
    assert caught.value.code == code


def test_now_is_the_time_of_the_statement_or_of_the_transaction(tmp_path):
    clock = ManualClock(1_795_023_922_709)
    at = datetime(2026, 11, 18, 17, 45, 22, 709_000, tzinfo=UTC)
    with Database(tmp_path / "s", ModelEngine(), clock=clock, background=False) as db:
        db.execute("CREATE TABLE t (a TIMESTAMPTZ, b TIMESTAMP, c DATE)")
        put = "INSERT INTO t VALUES (now(), CURRENT_TIMESTAMP, CURRENT_DATE)"
        db.execute(put)
        assert db.execute("TABLE t").rows == [(at, at.replace(tzinfo=None), at.date())]
        asked = "SELECT now(), localtimestamp, current_date, now() = now()"
        clock.advance(86_400_000)
        later = at + timedelta(days=1)
        plain = later.replace(tzinfo=None)
        assert db.execute(asked).rows == [(later, plain, later.date(), True)]
        session = db.session()
        session.execute("BEGIN")
        clock.advance(86_400_000)
        assert session.execute("SELECT now()").rows == [(later,)], "that of the begin"
        assert db.execute("SELECT now()").rows == [(at + timedelta(days=2),)]
        session.execute("PREPARE p AS SELECT now(); COMMIT")
        assert session.execute("EXECUTE p").rows == [(at + timedelta(days=2),)]
