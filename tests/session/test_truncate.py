"""TRUNCATE, names with a database, and what sessions are asked for."""

from __future__ import annotations

import pytest

from reclock.errors import Error


@pytest.fixture
def db(db):
    db.execute("CREATE TABLE t (a INT); CREATE TABLE u (a INT)")
    db.execute("INSERT INTO t VALUES (1), (2); INSERT INTO u VALUES (3)")
    db.execute(
        "CREATE MATERIALIZED VIEW v AS SELECT (SELECT count(*) FROM t) AS n, count(*) AS m FROM u"
    )
    return db


def test_all_tables_are_emptied_at_one_time(db):
    result = db.execute("TRUNCATE TABLE t, u RESTART IDENTITY CASCADE")
    assert (result.tag, db.execute("SELECT n, m FROM v").rows) == ("TRUNCATE TABLE", [(0, 0)])
    assert db.execute(f"SELECT n, m FROM v AS OF {result.timestamp.back()}").rows == [(2, 1)]
    assert db._session.transaction is None


def test_none_if_one_is_missing(db):
    with pytest.raises(Error) as caught:
        db.execute("TRUNCATE t, nowhere")
    assert caught.value.code == "42P01"
    assert db._session.transaction is None
    assert db.execute("SELECT n FROM v").rows == [(2,)]


def test_in_a_transaction_it_is_undone_with_it(db):
    db.execute("BEGIN; TRUNCATE t")
    assert db.execute("SELECT count(*) FROM t").rows == [(0,)]
    db.execute("ROLLBACK")
    assert db.execute("SELECT count(*) FROM t").rows == [(2,)]


def test_names_may_have_the_database(db):
    assert db.execute("SELECT a FROM reclock.public.u").rows == [(3,)]
    assert db.execute("SELECT count(*) FROM reclock.reclock.objects").rows == [(3,)]
    db.execute("CREATE TABLE reclock.public.w (a INT); INSERT INTO public.w VALUES (1)")
    for name in ("other.public.u", "reclock.nowhere.u", "a.reclock.public.u"):
        with pytest.raises(Error):
            db.execute(f"SELECT a FROM {name}")


def test_what_a_session_is_asked(db):
    assert db.execute("SELECT current_catalog, current_database()").rows == [("reclock", "reclock")]
    assert db.execute("SELECT current_catalog").columns == ("current_catalog",)
    assert db.execute("SHOW TIME ZONE").rows == [("UTC",)]
