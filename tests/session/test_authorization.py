"""Who may run what: nothing is allowed by being forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reclock.errors import Error, Forbidden
from reclock.session.statements import HANDLERS
from reclock.sql.parse import parse_statements

if TYPE_CHECKING:
    from reclock.session.database import Database

SETUP = """
CREATE TABLE open (a INT, b TEXT); CREATE TABLE shut (a INT, b TEXT); CREATE TABLE mine (a INT);
INSERT INTO open VALUES (1, 'x'); INSERT INTO shut VALUES (2, 'secret');
CREATE VIEW window AS SELECT a FROM shut; CREATE MATERIALIZED VIEW kept AS SELECT a FROM open;
CREATE USER joe PASSWORD 'x'; CREATE USER boss SUPERUSER;
GRANT SELECT ON open, window, kept TO joe; GRANT INSERT ON mine TO joe
"""
ALLOWED = [
    "SELECT relname FROM pg_class",
    "BEGIN; SAVEPOINT s; ROLLBACK TO s; RELEASE s; ROLLBACK",
    "SELECT * FROM open", "SELECT * FROM window", "SELECT a FROM kept", "SELECT 1",
    "SELECT name FROM reclock.objects", "EXPLAIN SELECT * FROM open",
    "EXPLAIN TIMESTAMP FOR SELECT * FROM open", "SHOW TABLES", "SHOW statement_timeout",
    "SET statement_timeout = '5s'", "BEGIN", "ROLLBACK", "INSERT INTO mine VALUES (1)",
    "INSERT INTO mine SELECT a FROM open",
    "BEGIN; DECLARE c CURSOR FOR SELECT * FROM open; FETCH c",
    "DISCARD ALL", "DEALLOCATE ALL", "UNLISTEN *", "SET TRANSACTION READ WRITE",
    "CLOSE ALL", "ALTER USER joe PASSWORD 'new'", "VACUUM open", "ANALYZE",
]  # fmt: skip
REFUSED = [
    "SELECT * FROM shut", "SELECT (SELECT max(b) FROM shut)",
    "WITH x AS (SELECT * FROM shut) SELECT 1 FROM x", "SELECT 1 WHERE EXISTS (SELECT 1 FROM shut)",
    "SELECT * FROM open UNION ALL SELECT * FROM shut", "EXPLAIN SELECT * FROM shut",
    "EXPLAIN TIMESTAMP FOR SELECT * FROM shut", "EXPLAIN SUBSCRIBE shut",
    "INSERT INTO open VALUES (1, 'y')", "INSERT INTO mine SELECT a FROM shut",
    "INSERT INTO mine VALUES ((SELECT a FROM shut))", "UPDATE open SET a = 2", "DELETE FROM open",
    "TRUNCATE open", "INSERT INTO mine VALUES (1) RETURNING a",
    "WITH q AS (SELECT a FROM shut) INSERT INTO mine SELECT a FROM q",
    "MERGE INTO mine USING open ON true WHEN NOT MATCHED THEN INSERT VALUES (1)",
    "INSERT INTO open VALUES (1, 'y') ON CONFLICT DO NOTHING",
    "UPDATE mine SET a = open.a FROM open", "DELETE FROM mine USING open",
    "UPDATE mine SET a = 2", "DELETE FROM mine", "CREATE TABLE more (a INT)",
    "CREATE TABLE more AS SELECT 1 AS a",
    "CREATE VIEW more AS SELECT 1 AS a", "CREATE OR REPLACE VIEW window AS SELECT b FROM open",
    "CREATE INDEX i ON open (a)", "DROP TABLE open", "DROP TABLE mine", "DROP VIEW window",
    "ALTER SYSTEM SET timestamp_interval = '5s'", "CREATE USER other SUPERUSER",
    "ALTER USER joe SUPERUSER", "ALTER USER boss PASSWORD 'mine'", "ALTER USER joe LOGIN",
    "DROP ROLE boss", "GRANT SELECT ON shut TO joe", "REVOKE SELECT ON open FROM boss",
    "CREATE SOURCE s (line TEXT) FROM FILE '/etc/passwd' FORMAT TEXT",
    "CREATE SOURCE s FROM LOAD GENERATOR AUCTION (SEED 7)",
    "CREATE SINK s FROM open INTO KAFKA BROKER 'b' TOPIC 't' FORMAT JSON ENVELOPE DEBEZIUM",
    "COPY open FROM STDIN", "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM shut",
    "DECLARE c CURSOR WITH HOLD FOR SUBSCRIBE shut",
    "ALTER TABLE open SET (RETAIN HISTORY FOR '1h')", "ALTER SINK s SET FROM open",
    "ALTER SOURCE open REFRESH",
    "ALTER TABLE open OWNER TO joe", "SELECT message FROM reclock.errors",
    "SELECT detail FROM reclock.source_status", "CREATE SEQUENCE s",
    "ALTER TABLE open ADD COLUMN c INT", "ALTER TABLE open RENAME TO opened",
    "COMMENT ON COLUMN open.a IS 'x'", "CREATE SECRET s AS 'x'", "ALTER SECRET open AS 'x'",
    "CREATE CONNECTION c TO KAFKA (BROKER 'b:1')",
]  # fmt: skip


@pytest.fixture
def made(db: Database) -> Database:
    db.execute(SETUP)
    return db


def test_what_a_reader_may(made: Database) -> None:
    for sql in ALLOWED:
        made.session("joe").execute(sql)


def test_what_a_reader_may_not(made: Database) -> None:
    version = made._core.world.catalog.version
    session = made.session("joe")
    for sql in REFUSED:
        with pytest.raises(Forbidden) as caught:
            session.execute(sql)
        assert caught.value.code == "42501", sql
        assert caught.value.hint, sql
        (parsed,) = parse_statements(sql)
        for run in (session.run, session.describe):
            with pytest.raises(Forbidden):
                run(parsed)
    assert made._core.world.catalog.version == version


def test_every_way_to_read_is_checked(made: Database) -> None:
    session = made.session("joe")
    with pytest.raises(Forbidden):
        session.subscribe("SUBSCRIBE shut")
    with pytest.raises(Forbidden):
        session.subscribe("SUBSCRIBE (SELECT b FROM shut)")
    with pytest.raises(Forbidden):
        session.copy("COPY (SELECT * FROM shut) TO STDOUT")
    with pytest.raises(Forbidden):
        session.insert("open", [(1, "x")])
    with pytest.raises(Forbidden), session.reading("SELECT * FROM shut"):
        pass
    assert list(session.copy("COPY (SELECT a FROM open) TO STDOUT")) == ["1\n"]


def test_every_statement_is_in_one_of_the_lists() -> None:
    tried = {type(p.statement) for sql in ALLOWED + REFUSED for p in parse_statements(sql)}
    names = {kind.__name__ for kind in set(HANDLERS) - tried}
    elsewhere = {"AlterSequence", "AlterSource", "Commit", "Copy", "CreateMaterializedView"}
    elsewhere |= {"Prepare", "Subscribe"}
    assert names == elsewhere


def test_a_superuser_may_everything(made: Database) -> None:
    boss = made.session("boss")
    boss.execute("DROP TABLE mine; ALTER SYSTEM SET timestamp_interval = '2s'")
    assert boss.execute("SELECT b FROM shut").rows == [("secret",)]


def test_a_revoke_is_in_force_at_once(made: Database) -> None:
    session = made.session("joe")
    session.execute("SELECT * FROM open")
    made.execute("REVOKE SELECT ON open FROM joe")
    with pytest.raises(Forbidden):
        session.execute("SELECT * FROM open")
    made.execute("GRANT SELECT ON open TO public")
    session.execute("SELECT * FROM open")
    made.execute("DROP ROLE joe")
    with pytest.raises(Forbidden, match="does not exist any more"):
        session.execute("SELECT * FROM open")


@pytest.mark.parametrize("end", ["REVOKE SELECT ON open FROM joe", "DROP ROLE joe"])
@pytest.mark.parametrize("of", ["open", "(SELECT count(*) FROM open)"])
def test_what_is_followed_ends_with_the_right_to_read_it(made: Database, of: str, end: str) -> None:
    session = made.session("joe")
    with session.subscribe(f"SUBSCRIBE {of}") as subscription:
        subscription.fetch()
        made.execute("CREATE USER somebody; INSERT INTO open VALUES (3, 'y')")
        assert subscription.fetch()
        session.execute(f"DECLARE c CURSOR WITH HOLD FOR SUBSCRIBE {of}")
        made.execute(end)
        made.execute("INSERT INTO open VALUES (4, 'z')")
        with pytest.raises(Forbidden):
            subscription.fetch()
    if end.startswith("REVOKE"):
        with pytest.raises(Forbidden):
            session.execute("FETCH ALL c")
    session.close()
    assert made.execute("SELECT * FROM reclock.holds").rows == []


def test_rights_do_not_pass_to_a_new_object_of_the_name(made: Database) -> None:
    made.execute("DROP TABLE mine; CREATE TABLE mine (a INT)")
    with pytest.raises(Forbidden):
        made.session("joe").execute("INSERT INTO mine VALUES (1)")


def test_who_creates_something_may_use_it(made: Database) -> None:
    made.execute("GRANT CREATE ON DATABASE reclock TO joe")
    session = made.session("joe")
    session.execute("CREATE TABLE his (a INT)")
    session.execute("INSERT INTO his VALUES (1)")
    session.execute("CREATE MATERIALIZED VIEW sums AS SELECT sum(a) AS s FROM his")
    assert session.execute("SELECT s FROM sums").rows == [(1,)]
    with pytest.raises(Forbidden):
        session.execute("CREATE VIEW spy AS SELECT * FROM shut")


def test_if_not_exists_gives_no_rights(made: Database) -> None:
    made.execute("GRANT CREATE ON DATABASE reclock TO joe")
    session = made.session("joe")
    session.execute("CREATE TABLE IF NOT EXISTS shut (a INT, b TEXT)")
    with pytest.raises(Forbidden):
        session.execute("SELECT * FROM shut")


def test_functions_of_spark_cannot_be_reached(made: Database) -> None:
    for call in (
        "reflect('java.lang.System', 'getProperty', 'user.home')",
        "java_method('java.lang.Runtime', 'getRuntime')",
        "input_file_name()",
        "spark_catalog()",
        "from_csv('a', 'b STRING')",
        "read_files('/etc/passwd')",
    ):
        for session in (made.session("joe"), made.session()):
            with pytest.raises(Error) as caught:
                session.execute(f"SELECT {call}")
            assert caught.value.code in {"42883", "42P17"}
