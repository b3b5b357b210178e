"""First copies by tasks, over ranges of pages: the same rows as by the driver, at one time."""

from __future__ import annotations

import pytest

from reclock.cli.doctor import slots
from reclock.connectors.postgres.slot import drop
from reclock.ingest.postgres.slots import Noted, connection_of
from reclock.session.offline import look
from reclock.testing.model_engine import ModelEngine
from reclock.testing.task_engine import TaskEngine, TaskModel

pytestmark = pytest.mark.postgres

TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN small AS INT CHECK (VALUE < 100);
CREATE TABLE kinds (
  id INT PRIMARY KEY, i2 SMALLINT, i8 BIGINT, f4 REAL, f8 DOUBLE PRECISION, n NUMERIC,
  n2 NUMERIC(10,2), b BOOLEAN, t TEXT, v VARCHAR(9), c CHAR(5), y BYTEA, d DATE, ti TIME,
  ts TIMESTAMP, tz TIMESTAMPTZ, iv INTERVAL, j JSON, jb JSONB, u UUID, ia INT[], ta TEXT[],
  m mood, dom small, ip INET
);
CREATE TABLE twins (LIKE kinds);
ALTER TABLE twins REPLICA IDENTITY FULL;
"""
ROW = """
({id}, -3, 1234567890123, 1.1, 1e300, 12345.6789, 7.50, true, E'tab\\t"q', 'varch', 'ab',
 '\\x00ff10', '2024-02-29', '12:34:56.7', '2024-02-29 12:34:56.123456',
 '2024-02-29 12:34:56.123456+02', '1 mon -2 days 03:04:05.6', '{{"b": 1.50, "a": [null]}}',
 '{{"b": 1, "a": null}}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{{1,NULL,3}}',
 '{{"a b",NULL,""}}', 'ok', 5, '10.0.0.1')
"""


def rows(db, table):
    return sorted(db.execute(f"SELECT * FROM {table}").rows, key=repr)


@pytest.mark.parametrize("engine", [ModelEngine, TaskModel, TaskEngine])
def test_a_row_is_the_same_copied_and_streamed(upstream, opener, engine):
    opener.engine = engine
    upstream(TYPES)
    for number in range(5):
        upstream(f"INSERT INTO kinds VALUES {ROW.format(id=number)}")
        upstream(f"INSERT INTO twins VALUES {ROW.format(id=1)}")
    upstream("INSERT INTO kinds (id, f4, f8) VALUES (9, 'NaN', '-Infinity')")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    copied = {table: rows(db, table) for table in ("kinds", "twins")}
    assert len(copied["kinds"]) == 6
    assert len(copied["twins"]) == 5
    upstream("DELETE FROM twins")  # by content: what was copied must equal what is streamed
    upstream("UPDATE kinds SET id = id + 100")
    opener.clock.advance(1_000)
    db.tick()
    assert rows(db, "twins") == []
    moved = sorted(((i + 100, *rest) for i, *rest in copied["kinds"]), key=repr)
    assert repr(rows(db, "kinds")) == repr(moved)  # NaN equals itself
    for _ in range(5):
        upstream(f"INSERT INTO twins VALUES {ROW.format(id=1)}")
    opener.clock.advance(1_000)
    db.tick()
    assert rows(db, "twins") == copied["twins"]
    assert db.execute("SELECT * FROM reclock.errors").rows == []
    (n, j, jb, ip) = db.execute("SELECT n, j, jb, ip FROM kinds WHERE id = 100").rows[0]
    assert (str(n), j, jb, ip) == (
        "12345.678900000", {"b": 1.5, "a": [None]}, {"b": 1, "a": None}, "10.0.0.1",
    )  # fmt: skip


@pytest.mark.parametrize("engine", [TaskModel, TaskEngine])
def test_pages_are_copied_once_each(upstream, opener, engine):
    opener.engine = engine
    upstream("CREATE TABLE big (id INT PRIMARY KEY, t TEXT)")
    upstream("CREATE TABLE bare (n INT)")
    upstream("INSERT INTO big SELECT i, repeat('x', 100) FROM generate_series(1, 3000) i")
    upstream("INSERT INTO bare SELECT i % 10 FROM generate_series(1, 3000) i")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    upstream("DELETE FROM big WHERE id % 3 = 0")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    assert db.execute("SELECT count(*), sum(id) FROM big").rows == upstream(
        "SELECT count(*), sum(id) FROM big"
    )
    assert db.execute("SELECT count(*), sum(n) FROM bare").rows == [(3000, 13500)]
    upstream("TRUNCATE bare")
    upstream("UPDATE big SET t = 'y' WHERE id < 100")
    opener.clock.advance(1_000)
    db.tick()
    assert db.execute("SELECT count(*) FROM bare").rows == [(0,)]
    assert db.execute("SELECT count(*) FROM big WHERE t = 'y'").rows == [(66,)]


def test_values_that_cannot_be_held_are_errors_of_their_rows(upstream, opener):
    upstream("CREATE TABLE odd (id INT PRIMARY KEY, n NUMERIC, d DATE)")
    upstream("CREATE TABLE bare (n NUMERIC)")
    upstream("ALTER TABLE bare REPLICA IDENTITY FULL")
    upstream("INSERT INTO odd VALUES (1, 'NaN', NULL), (2, 1, 'infinity'), (3, 1, NULL)")
    upstream("INSERT INTO bare VALUES ('NaN'), (2)")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    opener.clock.advance(1_000)
    db.tick()
    found = db.execute("SELECT object, code, message FROM reclock.errors").rows
    assert sorted(found) == [
        ("bare", "22003", 'table public.bare: column "n" has a value that type '
         "numeric(38,9) cannot hold"),
        ("odd", "22003", 'table public.odd: column "d" has a value that type date cannot hold'),
        ("odd", "22003", 'table public.odd: column "n" has a value that type '
         "numeric(38,9) cannot hold"),
    ]  # fmt: skip
    upstream("UPDATE odd SET n = 5, d = NULL; DELETE FROM bare WHERE n = 'NaN'")
    opener.clock.advance(1_000)
    db.tick()
    assert db.execute("SELECT * FROM reclock.errors").rows == []
    assert db.execute("SELECT count(*), sum(n) FROM odd").rows == [(3, 15)]
    assert db.execute("SELECT count(*) FROM bare").rows == [(1,)]
    upstream("UPDATE odd SET n = 'NaN' WHERE id = 1; INSERT INTO bare VALUES ('Infinity')")
    opener.clock.advance(1_000)
    db.tick()
    assert len(db.execute("SELECT * FROM reclock.errors").rows) == 2
    upstream("TRUNCATE odd, bare")
    opener.clock.advance(1_000)
    db.tick()
    assert db.execute("SELECT * FROM reclock.errors").rows == []
    assert db.execute("SELECT count(*) FROM odd").rows == [(0,)]


def test_a_copy_of_the_state_touches_no_slot(upstream, opener):
    upstream("CREATE TABLE t (id INT PRIMARY KEY)")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    source = db._core.world.catalog.find(("s",))
    opener.crash(db)
    with look(opener.path) as copy:
        copy.tick()
        assert upstream.slots() == []
    db = opener()
    db.execute("SELECT * FROM t")
    assert len(upstream.slots()) == 1
    noted = Noted(source.facts["slot"], connection_of(source), "s")
    db.execute("DROP SOURCE s")
    assert upstream.slots() == []
    assert list(slots(db)) == []
    db._core.intakes.slots.note(noted)
    assert list(slots(db)) == []  # it is noted, and not there
    upstream(f"SELECT pg_create_logical_replication_slot('{noted.name}', 'pgoutput')")
    (found,) = slots(db)
    assert noted.name in found.found
    drop(noted.connection, noted.name)
