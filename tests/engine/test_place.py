"""Records and files in other places than the state directory."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from pyarrow import fs

from engines.local_engine import LocalEngine
from reclock import ManualClock
from reclock.arrangement.remote import RemoteStore
from reclock.arrangement.store import LocalStore
from reclock.dataflow import merge
from reclock.durable.identity import identity_of
from reclock.engine import arrangements
from reclock.engine.merging import FEW_RUNS
from reclock.engine.place import CACHE, open_place
from reclock.errors import Fenced, InvalidValue, StorageError
from reclock.session.database import Database
from reclock.testing.postgres import running_postgres
from reclock.time.timeline import EPOCH_MS

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [(n, "x" * 50) for n in range(2_000)]  # so many that they go into a file


def opened(path: Path, **elsewhere: str | None) -> Database:
    place = open_place(path, **elsewhere)
    return Database(place, LocalEngine(), clock=ManualClock(1_000), background=False)


def filled(path: Path, **elsewhere: str | None) -> None:
    with opened(path, **elsewhere) as db:
        db.execute("CREATE TABLE t (a INT, b TEXT)")
        db.insert("t", ROWS)
        db.tick()


def rows(db: Database) -> list[tuple[object, ...]]:
    return sorted(db.execute("SELECT * FROM t").rows)


def test_all_of_it_is_in_the_state_directory_by_default(tmp_path):
    filled(tmp_path / "state")
    assert list((tmp_path / "state" / "segments").iterdir())


@pytest.mark.parametrize("address", ["{}", "file://{}"])
def test_files_in_another_directory_which_databases_share(tmp_path, address):
    store = address.format(tmp_path / "files")
    for name in ("one", "two"):
        filled(tmp_path / name, store=store)
        assert not (tmp_path / name / "segments").exists()
    assert len(list((tmp_path / "files").iterdir())) == 2
    for name in ("one", "two"):
        with opened(tmp_path / name, store=store) as db:
            assert rows(db) == ROWS
            assert db.check() == []


def test_files_on_another_file_system_are_cached(tmp_path, monkeypatch):
    remote = fs.SubTreeFileSystem(str(tmp_path / "remote"), fs.LocalFileSystem())
    (tmp_path / "remote").mkdir()
    far = (remote, "bucket/prefix")
    monkeypatch.setattr("reclock.engine.place.filesystem_of", lambda _: far)
    filled(tmp_path / "one", store="s3://bucket/prefix")
    with opened(tmp_path / "one", store="s3://bucket/prefix") as db:
        assert rows(db) == ROWS
        place = db._core.segments
        assert isinstance(place, RemoteStore)
        assert place.prefix == f"bucket/prefix/{identity_of(db._store)}"
        assert place.nearby.directory == tmp_path / "one" / CACHE
    assert list((tmp_path / "remote" / place.prefix).iterdir())


@pytest.mark.parametrize("address", ["nothing://x", "s4://bucket"])
def test_an_address_that_is_none(tmp_path, address):
    with pytest.raises(InvalidValue, match="there is no store at"):
        open_place(tmp_path / "state", store=address)
    open_place(tmp_path / "state").records.close()  # nobody holds it


def test_a_database_that_is_none(tmp_path):
    with pytest.raises(InvalidValue, match="invalid database address"):
        open_place(tmp_path / "state", meta="mysql://host/x")


@pytest.mark.postgres
def test_a_machine_takes_over_from_another(tmp_path):
    with running_postgres() as meta:
        elsewhere = {"store": str(tmp_path / "files"), "meta": meta}
        with opened(tmp_path / "one", **elsewhere) as ours:
            ours.execute("CREATE TABLE t (a INT, b TEXT)")
            ours.insert("t", ROWS)
            ours.tick()
            with opened(tmp_path / "two", **elsewhere) as theirs:
                assert rows(theirs) == ROWS
                theirs.execute("DELETE FROM t WHERE a > 0")
                with pytest.raises(Fenced):
                    ours.execute("DELETE FROM t")
                assert rows(theirs) == ROWS[:1]
        filled(tmp_path / "three", store=None, meta=None)
        with opened(tmp_path / "four", meta=meta, store=str(tmp_path / "files")) as db:
            assert rows(db) == ROWS[:1]
            assert db.check() == []
            assert isinstance(db._core.segments, LocalStore)


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("merging", [False, True])
def test_a_directory_that_is_moved_away_and_back_loses_nothing(
    tmp_path, monkeypatch, replaced, merging
):
    """Whatever its owner does meanwhile, nothing is published whose file is not there."""
    monkeypatch.setattr(arrangements, "INLINE_BYTES", 0)
    monkeypatch.setattr(merge, "INLINE_BYTES", 0)
    state, away = tmp_path / "state", tmp_path / "away"
    clock = ManualClock(1_000)
    place = open_place(state)
    written = 0
    with Database(place, LocalEngine(), clock=clock, background=False) as db:
        db.execute("CREATE TABLE t (a INT, b TEXT)")
        for _ in range(FEW_RUNS + 2 if merging else 3):
            written += _written(db, clock, written)
        assert not merging or db._core.merger._running
        db._core.merger.wait()
        db._core.merger._running.clear()  # as if it had not begun
        state.rename(away)
        if replaced:
            (state / "segments").mkdir(parents=True)
        with suppress(StorageError):
            db._core.merger.consider(db._core.world[EPOCH_MS])
            db._core.merger.wait()
        with pytest.raises(StorageError, match="gone from where it was"):
            written += _written(db, clock, written)
        shutil.rmtree(state, ignore_errors=True)
        away.rename(state)
        written += _written(db, clock, written + 1)  # which takes in what waited
        db._core.merger.wait()
        db.tick()
    with opened(state) as db:
        assert len(rows(db)) == written + 1
        assert db.check() == []


def _written(db: Database, clock: ManualClock, number: int) -> int:
    clock.advance(1_000)
    db.execute("INSERT INTO t VALUES ($1, 'x')", (number,))
    db.tick()
    return 1
