"""First copies by tasks, over ranges of pages: the same rows as by the driver, at one time."""

from __future__ import annotations

import threading
import time
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.model_engine import ModelEngine
from engines.task_engine import TaskEngine, TaskModel
from reclock.cli.doctor import slots
from reclock.connectors.postgres.slot import drop
from reclock.connectors.postgres.snapshot import END, Copy
from reclock.errors import SourceUnavailable
from reclock.ids import ObjectId
from reclock.ingest.postgres import copying
from reclock.ingest.postgres.copying import Size, shares
from reclock.ingest.postgres.slots import Noted, connection_of
from reclock.session.offline import look

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
def test_pages_are_copied_once_each(upstream, opener, monkeypatch, engine):
    monkeypatch.setattr(copying, "STEP_ROWS", 300)
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


@given(
    st.lists(st.builds(Size, st.integers(0, 2_000_000), st.integers(0, 5_000)), min_size=1),
    st.integers(1, 16),
    st.booleans(),
)
def test_tables_are_dealt_out_once_each_and_fairly(sizes, tasks, cut):
    about = {ObjectId(f"u{n}"): size for n, size in enumerate(sizes)}
    dealt = shares(about, tasks, cut=cut)
    assert all(dealt)
    assert len(dealt) <= tasks
    spans = [span for share in dealt for span in share]
    for item in about:
        own = [span for span in spans if span.part == str(item)]
        assert own[0].start == 0
        assert own[-1].stop == END
        assert all(one.stop == other.start for one, other in pairwise(own))
        assert cut or len(own) == 1
    for share in dealt:  # a session reads all that a task has of a table
        assert len({span.part for span in share}) == len(share)
    if cut:
        total = sum(max(1, size.rows) for size in sizes)
        page = max(max(1, size.rows) / max(1, size.pages) for size in sizes)
        for share in dealt:
            assert sum(map(partial(rows_of, about), share)) <= total / tasks + 2 * page + 1


def rows_of(about, span):
    size = about[ObjectId(span.part)]
    pages = max(1, size.pages)
    return max(1, size.rows) * (min(span.stop, pages) - span.start) / pages


def two_tables(upstream):
    upstream("CREATE TABLE a (id INT PRIMARY KEY, t TEXT)")
    upstream("CREATE TABLE b (n INT); ALTER TABLE b REPLICA IDENTITY FULL")
    upstream("INSERT INTO a SELECT i, repeat('x', 100) FROM generate_series(1, 3000) i")
    upstream("INSERT INTO b SELECT i % 10 FROM generate_series(1, 1000) i")
    upstream("ANALYZE a; ANALYZE b")
    upstream("CREATE PUBLICATION p FOR ALL TABLES")


def test_all_tables_are_copied_in_one_job(upstream, opener, monkeypatch):
    jobs = []

    class Counting(TaskModel):
        def stage(self, stager, shares, title, *, stop=None):
            jobs.append(shares)
            return super().stage(stager, shares, title, stop=stop)

    opener.engine = Counting
    two_tables(upstream)
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    assert db.execute("SELECT count(*), sum(id) FROM a").rows == [(3000, 4501500)]
    assert db.execute("SELECT count(*), sum(n) FROM b").rows == [(1000, 4500)]
    (shares,) = jobs
    assert len(shares) == 2
    assert {span.part for share in shares for span in share} == {"u2", "u3"}
    assert db.check() == []


def test_what_tasks_have_copied_is_shown_meanwhile(upstream, opener, monkeypatch):
    monkeypatch.setattr(copying, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(copying, "STEP_ROWS", 500)
    opener.engine = TaskModel
    two_tables(upstream)
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    pages, seen = Copy._pages, []

    def slowly(self, cursor, span):
        """Read no further before it is shown what was read."""
        deadline = time.monotonic() + 30
        while span.start and not (seen and "copying 2 tables: 0 of" not in seen[-1]):
            seen.append(db.execute("SELECT detail FROM reclock.source_status").rows[0][0])
            assert time.monotonic() < deadline
        yield from pages(self, cursor, span)

    monkeypatch.setattr(Copy, "_pages", slowly)
    opener.clock.advance(1_000)
    db.tick()
    assert seen[0].startswith("copying 2 tables: ")
    done = int(seen[-1].split()[3])
    assert 0 < done <= 4000
    assert seen[-1] == f"copying 2 tables: {done} of about 4000 rows"
    assert db.execute("SELECT detail FROM reclock.source_status").rows == [(None,)]
    assert db.execute("SELECT count(*) FROM a").rows == [(3000,)]
    assert not [t for t in threading.enumerate() if t.name == "reclock-copying"]


def test_a_copy_that_fails_leaves_no_files(upstream, opener, monkeypatch):
    opener.engine = TaskModel
    two_tables(upstream)
    db = opener()
    db.execute(f"CREATE SOURCE s {upstream.source()}")
    pages = Copy._pages

    def broken(self, cursor, span):
        if self.table.name == "b":
            message = "the server went away"
            raise SourceUnavailable(message)
        yield from pages(self, cursor, span)

    monkeypatch.setattr(Copy, "_pages", broken)
    opener.clock.advance(1_000)
    db.tick()
    assert db.execute("SELECT state FROM reclock.source_status").rows == [("stalled",)]
    assert [n for n in db._core.segments.names() if n.startswith("staged-")] == []
    monkeypatch.setattr(Copy, "_pages", pages)
    assert db.execute("SELECT count(*) FROM b").rows == [(1000,)]
