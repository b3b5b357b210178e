"""A database that is only looked at."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from pyarrow import fs

from engines.local_engine import LocalEngine
from engines.model_engine import ModelEngine
from reclock import ManualClock
from reclock.cli.doctor import examine
from reclock.cli.main import cli
from reclock.engine.place import open_place
from reclock.errors import StorageError
from reclock.session.database import Database
from reclock.session.offline import look
from reclock.testing.postgres import running_postgres

ROWS = [(n, "x" * 50) for n in range(2_000)]  # so many that they go into a file


def test_somebody_elses_database_can_be_looked_at(tmp_path):
    clock = ManualClock(1_000)
    with Database(tmp_path / "db", ModelEngine(), clock=clock, background=False) as db:
        db.execute("CREATE SOURCE n FROM LOAD GENERATOR COUNTER (EVENTS PER TICK 5)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT counter FROM n")
        clock.advance(1_000)
        db.tick()
        bound = db.execute("SELECT * FROM reclock.bindings").rows
        upper = db.execute("SELECT upper FROM reclock.frontiers WHERE object = 'v'").rows
        with look(tmp_path / "db") as copy:
            assert copy.execute("SELECT * FROM reclock.bindings").rows == bound
            frontiers = "SELECT upper FROM reclock.frontiers WHERE object = 'v'"
            assert copy.execute(frontiers).rows == upper
            assert copy.check() == []
        clock.advance(1_000)
        db.tick()
        assert len(db.execute("SELECT * FROM reclock.bindings").rows) > len(bound)


def test_there_is_nothing_to_look_at(tmp_path):
    with pytest.raises(StorageError), look(tmp_path):
        pass


def elsewhere(path, **places):
    place = open_place(path, **places)
    return Database(place, LocalEngine(), clock=ManualClock(1_000), background=False)


def agree(db, path, **places):
    """Look at a database that is open, and see what it has, and leave everything there."""
    before = db._core.segments.names()
    assert before
    with look(path, **places) as copy:
        assert copy.check() == []  # every byte is read
        copy.insert("t", ROWS)
        copy.tick()
        assert copy.check() == []
        assert set(copy._core.segments.names()).isdisjoint(before)
    assert db._core.segments.names() == before
    assert db.check() == []
    assert sorted(db.execute("SELECT a, b FROM t").rows) == ROWS


@pytest.mark.parametrize("remote", [False, True], ids=["directory", "remote"])
def test_files_that_are_elsewhere_are_read_and_left_alone(tmp_path, monkeypatch, remote):
    store = str(tmp_path / "files")
    if remote:
        there = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
        far = (there, "bucket")
        monkeypatch.setattr("reclock.engine.place.filesystem_of", lambda _: far)
        store = "s3://bucket"
    with elsewhere(tmp_path / "db", store=store) as db:
        db.execute("CREATE TABLE t (a INT, b TEXT)")
        db.insert("t", ROWS)
        db.tick()
        agree(db, tmp_path / "db", store=store)


@pytest.mark.postgres
def test_records_that_are_elsewhere_are_read_without_becoming_their_owner(tmp_path):
    pipeline = tmp_path / "pipeline.sql"
    pipeline.write_text("CREATE TABLE t (a INT, b TEXT); CREATE TABLE u (a INT);")

    def said(*arguments):
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 0, done.output
        return done.output

    with running_postgres() as meta:
        with (
            pytest.raises(StorageError, match="there is no state in the database"),
            look(tmp_path / "db", meta=meta),
        ):
            pass
        dry = ("run", str(pipeline), "--dry-run", "--meta", meta, "--state", str(tmp_path / "x"))
        assert said(*dry).count("done=create") == 2
        for store in (None, str(tmp_path / "files")):
            with elsewhere(tmp_path / "db", meta=meta, store=store) as db:
                db.execute("CREATE TABLE t (a INT, b TEXT)")
                db.insert("t", ROWS)
                db.tick()
                agree(db, tmp_path / "db", meta=meta, store=store)
                findings = list(examine(tmp_path / "db", None, meta=meta, store=store))
                assert [f.right for f in findings if f.what == "state"] == [True]
                assert said(*dry).count("done=unchanged") == 1
                frontiers = said("inspect", "frontiers", "--meta", meta, "--json")
                assert '"object": "t"' in frontiers
                db.execute("DROP TABLE t")
