"""ALTER TABLE and RENAME: PostgreSQL's answers, what depends on a table, crashes, transactions."""

from __future__ import annotations

from contextlib import suppress

import psycopg
import pytest

from reclock.errors import DependentObjects, Error, NotSupported, Unreadable
from reclock.failpoints import FailpointRaised, armed
from reclock.testing.postgres import running_postgres

STATEMENTS = (
    "CREATE TABLE t (a int, b text, c int DEFAULT 7)",
    "INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2)",
    "CREATE VIEW v AS SELECT * FROM t",
    "CREATE VIEW m AS SELECT b, count(*) AS n FROM t GROUP BY b",
    "ALTER TABLE t ADD COLUMN d int DEFAULT 5, ADD e text",
    "ALTER TABLE t ADD COLUMN d int",
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS d int",
    "ALTER TABLE t ADD f int NOT NULL",
    "ALTER TABLE t ADD f int NOT NULL DEFAULT 1 CHECK (f > 1)",
    "ALTER TABLE t ADD f int NOT NULL DEFAULT 1 CONSTRAINT pos CHECK (f > 0)",
    "SELECT * FROM t ORDER BY a",
    "SELECT * FROM v ORDER BY a",
    "INSERT INTO t (a, f) VALUES (3, 0)",
    "ALTER TABLE t RENAME COLUMN f TO g",
    "ALTER TABLE t RENAME f TO g",
    "ALTER TABLE t RENAME a TO b",
    "INSERT INTO t (a, g) VALUES (3, 0)",
    "ALTER TABLE t DROP CONSTRAINT nope",
    "ALTER TABLE t DROP CONSTRAINT IF EXISTS nope",
    "ALTER TABLE t DROP CONSTRAINT pos",
    "INSERT INTO t (a, g) VALUES (3, 0)",
    "ALTER TABLE t ADD CONSTRAINT pos CHECK (g > 0)",
    "ALTER TABLE t ALTER COLUMN b SET NOT NULL",
    "ALTER TABLE t ALTER b SET DEFAULT 'q', ALTER c DROP DEFAULT",
    "INSERT INTO t (a) VALUES (4)",
    "ALTER TABLE t ALTER g DROP NOT NULL",
    "INSERT INTO t (a, g) VALUES (5, NULL)",
    "SELECT * FROM t ORDER BY a",
    "SELECT * FROM v ORDER BY a",
    "ALTER TABLE t DROP COLUMN b",
    "ALTER TABLE t DROP COLUMN nope",
    "ALTER TABLE t DROP IF EXISTS nope",
    "ALTER TABLE t DROP e, DROP COLUMN d RESTRICT",
    "ALTER TABLE t RENAME COLUMN b TO bb",
    "SELECT * FROM v ORDER BY a",
    "SELECT bb FROM t ORDER BY a",
    "ALTER TABLE t ADD PRIMARY KEY (bb)",
    "ALTER TABLE t ADD PRIMARY KEY (nope)",
    "ALTER TABLE t ADD PRIMARY KEY (a)",
    "ALTER TABLE t ADD PRIMARY KEY (a)",
    "ALTER TABLE t ALTER a DROP NOT NULL",
    "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO NOTHING",
    "ALTER TABLE t RENAME TO tt",
    "ALTER TABLE t RENAME TO tt",
    "ALTER TABLE IF EXISTS t RENAME TO tt",
    "CREATE TABLE other (a int)",
    "ALTER TABLE tt RENAME TO other",
    "SELECT * FROM v ORDER BY a",
    "ALTER TABLE tt ADD id serial",
    "INSERT INTO tt (a) VALUES (9) RETURNING id",
    "ALTER TABLE tt DROP CONSTRAINT t_pkey",
    "INSERT INTO tt (a) VALUES (9) RETURNING id",
    "ALTER TABLE tt DROP COLUMN bb CASCADE",
    "SELECT * FROM v",
    "ALTER TABLE tt DROP id",
    "SELECT nextval('tt_id_seq')",
    "SELECT * FROM tt ORDER BY 1",
    "CREATE VIEW w AS SELECT a FROM tt",
    "ALTER VIEW w RENAME TO ww",
    "SELECT count(*) FROM ww",
    "ALTER VIEW nope RENAME TO x",
    "CREATE INDEX i ON tt (a)",
    "ALTER INDEX i RENAME TO j",
    "DROP INDEX j",
    "CREATE SEQUENCE s",
    "ALTER SEQUENCE s RENAME TO s2",
    "SELECT nextval('s2')",
)
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
            try:
                result = db.execute(sql)
                ours: object = result.tag, result.rows
            except Error as error:
                ours = (error.code, error.message)
            assert ours == theirs, sql


def made(db):
    db.execute("CREATE TABLE t (a INT, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, 'y'), (2, 'y')")
    db.execute("CREATE VIEW v AS SELECT * FROM t; CREATE INDEX i ON v (b)")
    db.execute("CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n FROM v GROUP BY b")
    db.execute("CREATE MATERIALIZED VIEW mm AS SELECT sum(n) AS s FROM m; CREATE INDEX j ON t (b)")


QUERIES = ("SELECT * FROM v", "SELECT * FROM m", "SELECT s::bigint FROM mm")


def seen(db):
    return [sorted(db.execute(query).rows) for query in QUERIES]


ALTERATIONS = (
    "ALTER TABLE t ADD COLUMN c INT DEFAULT 3",
    "ALTER TABLE t RENAME COLUMN b TO c",
    "ALTER TABLE t RENAME TO tt",
    "ALTER TABLE t ADD COLUMN id SERIAL, ADD PRIMARY KEY (id)",
    "ALTER TABLE t ADD c INT; ALTER TABLE t DROP c; ALTER TABLE t RENAME b TO z; "
    "ALTER TABLE t RENAME TO u; ALTER TABLE u ADD b TEXT; ALTER TABLE u RENAME TO t",
    "ALTER VIEW v RENAME TO w; CREATE VIEW v AS SELECT * FROM w",
    "ALTER MATERIALIZED VIEW m RENAME TO n; CREATE VIEW m AS SELECT * FROM n",
    "ALTER TABLE t ALTER a SET NOT NULL",
)


@pytest.mark.parametrize("sql", ALTERATIONS)
def test_views_go_on_also_after_a_restart(opener, sql):
    db = opener()
    made(db)
    before = seen(db)
    db.execute(sql)
    assert seen(db) == before
    db = opener.reopened(db)
    assert seen(db) == before
    table = next(row[0] for row in db.execute("SHOW TABLES").rows)
    db.execute(f"INSERT INTO {table} (a) VALUES (7)")
    assert [row[0] for row in db.execute("SELECT a FROM v WHERE a = 7").rows] == [7]
    assert db.execute("SELECT s::bigint FROM mm").rows == [(4,)]
    assert not db.check()


@pytest.mark.parametrize("sql", ALTERATIONS[:4])
def test_at_no_time_is_the_new_table_without_its_rows(opener, sql):
    db = opener()
    db.execute("ALTER SYSTEM SET logical_compaction_window = '1h'")
    made(db)
    before = seen(db)
    opener.clock.advance(100)
    db.execute(sql)
    read = int(db.execute("SELECT * FROM mm").timestamp)
    there = 0
    for time in range(read - 50, read + 1):
        for query, rows in zip(QUERIES, before, strict=True):
            with suppress(Unreadable):
                assert sorted(db.execute(f"{query} AS OF {time}").rows) == rows, (query, time)
                there += 1
    assert there >= len(QUERIES)


@pytest.mark.parametrize("sql", ALTERATIONS[:4])
@pytest.mark.parametrize(
    "point",
    ["ddl.publish.before", "durable.append.before", "durable.commit.before", "durable.commit.after",
     "ddl.publish.after"],
)  # fmt: skip
def test_a_crash_leaves_the_old_or_the_new(opener, point, sql):
    db = opener()
    made(db)
    before = seen(db)
    old = db.execute("SHOW CREATE TABLE t").rows
    with suppress(FailpointRaised), armed({point: "raise"}):
        db.execute(sql)
    db = opener.reopened(db)
    assert seen(db) == before
    (name,) = (row[0] for row in db.execute("SHOW TABLES").rows)
    if point not in {"durable.commit.after", "ddl.publish.after"}:
        assert db.execute("SHOW CREATE TABLE t").rows == old
    db.execute(f"INSERT INTO {name} (a) VALUES (7)")
    assert db.execute("SELECT s::bigint FROM mm").rows == [(4,)]


def test_a_transaction_sees_what_it_altered_and_a_savepoint_undoes_it(db):
    made(db)
    with db.session() as session:
        session.execute("BEGIN; ALTER TABLE t ADD c INT DEFAULT 3; SAVEPOINT s")
        session.execute("ALTER TABLE t DROP COLUMN c; INSERT INTO t VALUES (5, 'z')")
        assert session.execute("SELECT count(*) FROM t").rows == [(4,)]
        session.execute("ROLLBACK TO s; INSERT INTO t VALUES (6, 'w', 9)")
        assert sorted(session.execute("SELECT c FROM t").rows) == [(3,), (3,), (3,), (9,)]
        assert db.execute("SELECT * FROM t WHERE a = 1").rows == [(1, "x")]
        session.execute("COMMIT")
    assert db.execute("SELECT * FROM t WHERE a = 6").rows == [(6, "w", 9)]
    assert sorted(db.execute("SELECT * FROM m").rows) == [("w", 1), ("x", 1), ("y", 2)]


def test_writes_of_others_are_not_lost(db):
    made(db)
    with db.session() as session:
        session.execute("BEGIN; ALTER TABLE t ADD c INT DEFAULT 3")
        db.execute("INSERT INTO t VALUES (8, 'other')")
        with suppress(Error):
            session.execute("COMMIT")
    assert db.execute("SELECT b FROM t WHERE a = 8").rows == [("other",)]
    assert db.execute("SELECT a FROM v WHERE a = 8").rows == [(8,)]


def test_privileges_go_on(db):
    db.execute("CREATE ROLE joe LOGIN; CREATE TABLE t (a INT); GRANT SELECT, INSERT ON t TO joe")
    db.execute("ALTER TABLE t ADD COLUMN b INT")
    with db.session("joe") as session:
        session.execute("INSERT INTO t VALUES (1, 2)")
        assert session.execute("SELECT b FROM t").rows == [(2,)]
        with pytest.raises(Error) as refused:
            session.execute("ALTER TABLE t DROP COLUMN b")
        assert refused.value.code == "42501"


def test_what_depends_on_a_column_is_named(db):
    made(db)
    with pytest.raises(DependentObjects) as refused:
        db.execute("ALTER TABLE t DROP COLUMN b")
    assert "view v depends on column b of table t" in str(refused.value.detail)
    db.execute("ALTER TABLE t DROP COLUMN b CASCADE")
    names = {row[0] for row in db.execute("SHOW OBJECTS").rows}
    assert names == {"t"}


def test_what_is_not_there_yet_is_refused(db):
    db.execute("CREATE TABLE t (a INT)")
    for sql in ("ALTER TABLE t ALTER a TYPE BIGINT", "ALTER TABLE t DROP a",
                "ALTER TABLE IF EXISTS t OWNER TO joe"):  # fmt: skip
        with pytest.raises(NotSupported):
            db.execute(sql)
