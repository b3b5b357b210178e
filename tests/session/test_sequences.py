"""Sequences: PostgreSQL's answers, durable numbers, crashes, transactions, rights."""

from __future__ import annotations

from contextlib import suppress

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.errors import Error, NotSupported, StatementError
from reclock.failpoints import FailpointRaised, armed
from reclock.testing.postgres import running_postgres


def one(db, sql, *parameters):
    return db.execute(sql, parameters).rows[0][0]


def test_numbers_go_on_after_a_stop_and_leave_a_gap_after_a_crash(opener):
    db = opener()
    db.execute("CREATE SEQUENCE s")
    assert [one(db, "SELECT nextval('s')") for _ in range(3)] == [1, 2, 3]
    db.close()
    opener._opened.remove(db)
    db = opener()
    assert one(db, "SELECT nextval('s')") == 4
    db = opener.reopened(db)
    assert one(db, "SELECT nextval('s')") == 4 + 33


@given(steps=st.lists(st.sampled_from(["one", "many", "crash", "set", "fail"]), max_size=14))
@settings(max_examples=20, deadline=None)
def test_no_number_is_given_twice(make_opener, steps):
    opener = make_opener()
    db = opener()
    db.execute("CREATE SEQUENCE s; CREATE TABLE t (a INT, b BIGINT DEFAULT nextval('s'))")
    seen: list[int] = []
    for step in steps:
        if step == "one":
            seen.append(one(db, "SELECT nextval('s')"))
        elif step == "many":
            rows = db.execute("INSERT INTO t SELECT g FROM generate_series(1, 40) AS g RETURNING b")
            seen += [row[0] for row in rows.rows]
        elif step == "set":
            assert one(db, "SELECT setval('s', $1)", 1000 + max(seen, default=0))
        elif step == "fail":
            for point in ("sequence.reserve.before", "sequence.reserve.after"):
                with suppress(FailpointRaised), armed({point: "raise"}):
                    seen.append(one(db, "SELECT nextval('s')"))
        else:
            db = opener.reopened(db)
    assert len(set(seen)) == len(seen)
    assert sorted(seen) == seen


@pytest.mark.parametrize(
    "point",
    ["sequence.reserve.before", "sequence.reserve.after", "write.append.before",
     "durable.commit.before", "durable.commit.after", "write.append.after"],
)  # fmt: skip
def test_a_crash_in_an_insert_gives_its_number_to_no_other(opener, point):
    db = opener()
    db.execute("CREATE TABLE t (id SERIAL PRIMARY KEY, a INT)")
    first = one(db, "INSERT INTO t (a) VALUES (1) RETURNING id")
    for _ in range(40):  # more than are reserved at once
        with suppress(FailpointRaised), armed({point: "raise"}):
            db.execute("INSERT INTO t (a) VALUES (2)")
        db = opener.reopened(db)
    assert one(db, "INSERT INTO t (a) VALUES (3) RETURNING id") > first
    ids = [row[0] for row in db.execute("SELECT id FROM t").rows]
    assert len(set(ids)) == len(ids)


def test_a_table_made_in_a_transaction_has_its_numbers(opener):
    db = opener()
    session = db.session()
    session.execute("BEGIN; CREATE TABLE t (id BIGSERIAL PRIMARY KEY, a TEXT)")
    assert session.execute("INSERT INTO t (a) VALUES ('x') RETURNING id").rows == [(1,)]
    db.execute("CREATE TABLE other (a INT)")  # ids of objects move on
    assert session.execute("INSERT INTO t (a) VALUES ('y') RETURNING id").rows == [(2,)]
    assert session.execute("SELECT currval('t_id_seq')").rows == [(2,)]
    session.execute("COMMIT")
    db = opener.reopened(db)
    assert one(db, "INSERT INTO t (a) VALUES ('z') RETURNING id") == 3
    assert db.execute("SELECT id, a FROM t ORDER BY id").rows == [(1, "x"), (2, "y"), (3, "z")]


def test_a_rollback_gives_no_number_back(db):
    db.execute("CREATE TABLE t (id SERIAL, a INT)")
    with db.session() as session:
        session.execute("BEGIN; INSERT INTO t (a) VALUES (1); ROLLBACK")
    assert one(db, "INSERT INTO t (a) VALUES (1) RETURNING id") == 2


def test_a_transaction_that_runs_again_tells_the_same_numbers(db):
    db.execute(
        "CREATE TABLE t (id SERIAL, a INT); CREATE TABLE u (a INT); INSERT INTO u VALUES (1)"
    )
    with db.session() as session:
        session.execute("BEGIN; SELECT count(*) FROM t")
        told = session.execute("INSERT INTO t (a) SELECT a FROM u RETURNING id").rows
        db.execute("INSERT INTO t (a) VALUES (5)")
        with suppress(Error):
            session.execute("COMMIT")
    ids = [row[0] for row in db.execute("SELECT id FROM t").rows]
    assert len(ids) == len(set(ids))
    assert told == [(1,)]


def test_a_sequence_goes_with_its_table(db):
    db.execute("CREATE TABLE t (id SERIAL); DROP TABLE t")
    with pytest.raises(StatementError, match="does not exist"):
        db.execute("SELECT nextval('t_id_seq')")


def test_numbers_of_a_query_are_returned_but_not_computed_with(db):
    db.execute("CREATE TABLE t (id SERIAL, a INT)")
    made = db.execute("INSERT INTO t (a) SELECT g FROM generate_series(1, 3) AS g RETURNING id, a")
    assert sorted(row[0] for row in made.rows) == [1, 2, 3]
    with pytest.raises(NotSupported, match="not known yet"):
        db.execute("INSERT INTO t (a) SELECT a FROM t RETURNING id + 1")


def test_copy_leaves_columns_out(db):
    db.execute("CREATE TABLE t (id SERIAL PRIMARY KEY, a INT CHECK (a > 0), b TEXT DEFAULT 'd')")
    with db.session() as session:
        (parsed,) = session.parsed("COPY t (a) FROM STDIN")
        copied = session.run(parsed)
        copied.write(b"5\n6\n")
        assert copied.finish().tag == "COPY 2"
        (parsed,) = session.parsed("COPY t (a) FROM STDIN")
        copied = session.run(parsed)
        copied.write(b"7\n-8\n")
        with pytest.raises(Error) as refused:
            copied.finish()
    assert refused.value.code == "23514"
    assert db.execute("SELECT id, a, b FROM t ORDER BY id").rows == [(1, 5, "d"), (2, 6, "d")]


STATEMENTS = (
    "CREATE SEQUENCE a",
    "CREATE SEQUENCE a",
    "CREATE SEQUENCE b INCREMENT -1",
    "CREATE SEQUENCE c AS smallint MAXVALUE 4 START 2 CYCLE",
    "CREATE SEQUENCE d INCREMENT 0",
    "CREATE SEQUENCE d MAXVALUE 1 MINVALUE 5",
    "CREATE SEQUENCE d START 0",
    "CREATE SEQUENCE d AS text",
    "CREATE SEQUENCE d MAXVALUE 2",
    "SELECT currval('a')",
    "SELECT nextval('a'), nextval('a')",
    "SELECT nextval('b'), nextval('b')",
    "SELECT nextval('c') FROM generate_series(1, 7)",
    "SELECT nextval('d') FROM generate_series(1, 2)",
    "SELECT nextval('d')",
    "SELECT nextval('nope')",
    "SELECT lastval(), currval('a')",
    "SELECT setval('a', 10), nextval('a')",
    "SELECT setval('a', 10, false)",
    "SELECT nextval('a')",
    "SELECT setval('a', 0)",
    "ALTER SEQUENCE a INCREMENT 5 RESTART",
    "SELECT nextval('a'), nextval('a')",
    "ALTER SEQUENCE a MAXVALUE 7",
    "SELECT nextval('a')",
    "ALTER SEQUENCE IF EXISTS nope RESTART",
    "CREATE TABLE t (id serial PRIMARY KEY, x int CHECK (x > 0), "
    "y int GENERATED ALWAYS AS IDENTITY)",
    "INSERT INTO t (x) VALUES (1), (2) RETURNING *",
    "INSERT INTO t (x) VALUES (-1)",
    "INSERT INTO t VALUES (7, 1, 1)",
    "INSERT INTO t OVERRIDING SYSTEM VALUE VALUES (7, 1, 1)",
    "INSERT INTO t OVERRIDING USER VALUE VALUES (8, 1, 1)",
    "INSERT INTO t VALUES (DEFAULT, DEFAULT, DEFAULT)",
    "UPDATE t SET y = 3",
    "UPDATE t SET y = DEFAULT WHERE id = 7 RETURNING y",
    "UPDATE t SET x = x - 1 WHERE id = 7",
    "SELECT * FROM t ORDER BY id",
    "SELECT pg_get_serial_sequence('t', 'id')",
    "SELECT setval(pg_get_serial_sequence('t', 'id'), coalesce(max(id), 1), "
    "max(id) IS NOT NULL) FROM t",
    "INSERT INTO t (x) VALUES (4) RETURNING id",
    "TRUNCATE t RESTART IDENTITY",
    "INSERT INTO t (x) VALUES (4) RETURNING id, y",
    "DROP SEQUENCE t_id_seq",
    "DROP SEQUENCE t_y_seq",
    "CREATE TABLE u (n int DEFAULT nextval('a'), c int CHECK (c + n < 10), CHECK (c > n), "
    "d text DEFAULT lower('X'))",
    "INSERT INTO u (n, c) VALUES (1, 9)",
    "INSERT INTO u (n, c) VALUES (2, 1)",
    "INSERT INTO u (n) VALUES (2) RETURNING d",
    "SELECT conname, conkey FROM pg_constraint WHERE contype = 'c' "
    "AND connamespace = 'public'::regnamespace ORDER BY 1",
    "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 't_x_check'",
    "SELECT column_name, column_default, is_identity, identity_generation "
    "FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position",
    "SELECT relname, relkind, relchecks FROM pg_class WHERE relnamespace = 'public'::regnamespace "
    "AND relkind IN ('r', 'S') ORDER BY 1",
    "SELECT sequencename,  start_value, min_value, max_value, increment_by, cycle "
    "FROM pg_sequences ORDER BY 1",
    "DROP SEQUENCE a",
    "DROP TABLE t",
    "SELECT nextval('t_id_seq')",
)  # fmt: skip
"""Run one after the other, each with the same effect in both."""


@pytest.mark.postgres
def test_everything_is_as_in_postgresql(db):
    with running_postgres() as address, psycopg.connect(address, autocommit=True) as other:
        for sql in STATEMENTS:
            theirs: object
            try:
                cursor = other.execute(sql)
                theirs = cursor.statusmessage, cursor.fetchall() if cursor.description else []
            except psycopg.Error as error:
                theirs = (error.sqlstate, error.diag.message_primary)
                if error.sqlstate in {"23514", "428C9"}:
                    theirs += (error.diag.message_detail,)
            try:
                result = db.execute(sql)
                ours: object = result.tag, result.rows
            except Error as error:
                ours = (error.code, error.message)
                if error.code in {"23514", "428C9"}:
                    ours += (error.detail,)
            assert ours == theirs, sql


def test_who_may_not_write_a_sequence_is_refused(db):
    db.execute("CREATE ROLE joe LOGIN; CREATE SEQUENCE s")
    db.execute("CREATE TABLE t (id SERIAL, a INT); GRANT INSERT ON t TO joe")
    with db.session("joe") as session:
        with pytest.raises(Error) as refused:
            session.execute("SELECT nextval('s')")
        assert refused.value.code == "42501"
        session.execute("INSERT INTO t (a) VALUES (1)")  # the column's own sequence goes with it
        db.execute("GRANT UPDATE ON s TO joe")
        assert session.execute("SELECT nextval('s')").rows == [(1,)]
