"""Older formats become the newest in one transaction; the newest is what ``schema`` says."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Engine, create_engine, inspect, make_url, text

from conformance.store.kit import append, at, up
from reclock.durable import schema
from reclock.durable.migrate import MIGRATIONS, Migration, migrate
from reclock.durable.sqlite import DATABASE_FILE, open_sqlite
from reclock.errors import Corrupt, NewerFormat
from reclock.ids import CollectionId

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURES = Path(__file__).parent / "fixtures"

NOTE = "ALTER TABLE reclock_collection ADD COLUMN note TEXT NOT NULL DEFAULT 'none'"
WITH_NOTE = (*MIGRATIONS, Migration("collections have notes", (NOTE,), (NOTE,)))
BROKEN = Migration("breaks half-way", (NOTE, "no statement"), (NOTE, "no statement"))


@pytest.fixture
def sqlite_engine(tmp_path: Path) -> Iterator[Engine]:
    engine = create_engine(
        f"sqlite:///{tmp_path / 'file.db'}", connect_args={"isolation_level": None}
    )
    yield engine
    engine.dispose()


@pytest.fixture
def postgres_engine(postgres_url: str) -> Iterator[Engine]:
    engine = create_engine(make_url(postgres_url).set(drivername="postgresql+psycopg"))
    yield engine
    engine.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def engine(request: pytest.FixtureRequest) -> Engine:
    made: Engine = request.getfixturevalue(f"{request.param}_engine")
    return made


def run(engine: Engine, migrations: tuple[Migration, ...] = MIGRATIONS) -> int:
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        return migrate(connection, migrations)


def format_of(engine: Engine) -> tuple[int, str]:
    with engine.connect() as connection:
        found = connection.execute(text("SELECT format, written_by FROM reclock_store")).one()
        return found[0], found[1]


def test_the_newest_format_is_what_the_schema_says(engine: Engine) -> None:
    run(engine)
    found = inspect(engine)
    assert set(found.get_table_names()) == set(schema.metadata.tables)
    for name, table in schema.metadata.tables.items():
        described = {
            column["name"]: (column["type"].compile(engine.dialect), column["nullable"])
            for column in found.get_columns(name)
        }
        assert described == {
            column.name: (column.type.compile(engine.dialect), bool(column.nullable))
            for column in table.columns
        }
        key = [column.name for column in table.primary_key]
        assert found.get_pk_constraint(name)["constrained_columns"] == key
        indexes = {index["name"]: index["column_names"] for index in found.get_indexes(name)}
        assert indexes == {index.name: index.columns.keys() for index in table.indexes}


def test_an_empty_database_runs_every_migration_once(engine: Engine) -> None:
    assert run(engine) == 0
    assert format_of(engine)[0] == len(MIGRATIONS)
    assert format_of(engine)[1]
    assert run(engine) == len(MIGRATIONS)


def test_an_older_format_is_migrated_with_its_contents(engine: Engine) -> None:
    run(engine)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO reclock_collection VALUES ('c', 1, 0, 7)"))
    assert run(engine, WITH_NOTE) == len(MIGRATIONS)
    with engine.connect() as connection:
        row = connection.execute(text("SELECT id, upper, note FROM reclock_collection")).one()
    assert tuple(row) == ("c", 7, "none")
    assert format_of(engine)[0] == len(WITH_NOTE)


def test_a_newer_format_is_refused_with_what_to_do(engine: Engine) -> None:
    run(engine, WITH_NOTE)
    with pytest.raises(NewerFormat) as newer:
        run(engine)
    found, written_by = format_of(engine)
    assert found == len(WITH_NOTE)
    assert newer.value.message.endswith(f"format {found}, written by reclock {written_by}")
    assert newer.value.hint == f"use reclock {written_by} or newer"


@pytest.mark.parametrize("number", range(1, len(MIGRATIONS)))
def test_every_older_reclock_refuses_a_state_of_this_one(engine: Engine, number: int) -> None:
    """Among them the one that would take the until of a manifest for a broken record."""
    run(engine)
    with pytest.raises(NewerFormat, match=f"has format {len(MIGRATIONS)}"):
        run(engine, MIGRATIONS[:number])


def test_a_migration_that_fails_leaves_the_old_format(engine: Engine) -> None:
    run(engine)
    with pytest.raises(Exception, match="syntax error"):
        run(engine, (*MIGRATIONS, BROKEN))
    assert format_of(engine)[0] == len(MIGRATIONS)
    columns = {column["name"] for column in inspect(engine).get_columns("reclock_collection")}
    assert "note" not in columns


def test_a_state_without_a_format_is_corrupt(engine: Engine) -> None:
    run(engine)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM reclock_store"))
    with pytest.raises(Corrupt, match="lost its format version"):
        run(engine)


@pytest.mark.parametrize("number", range(1, len(MIGRATIONS) + 1))
def test_a_state_written_by_each_format_can_be_read_and_continued(
    tmp_path: Path, number: int
) -> None:
    database = sqlite3.connect(tmp_path / DATABASE_FILE)
    database.executescript((FIXTURES / f"format-{number}.sql").read_text(encoding="utf-8"))
    database.close()
    kept, closed = CollectionId("remap/u1"), CollectionId("remap/u2")
    with open_sqlite(tmp_path) as store:
        assert [s.collection for s in store.collections()] == [kept, closed]
        snapshot = store.snapshot(kept)
        assert (snapshot.since, snapshot.upper) == (at(3), at(6))
        assert snapshot.updates == (up('{"a":1}', 3, 2), up('{"b":"é"}', 3), up('{"a":1}', 5, -1))
        assert store.open(closed, 2).upper.is_closed
        assert append(store, kept, [up('{"a":1}', 6, -1)], at(6), at(7)) is None
        store.compact(kept, at(6))
        assert store.snapshot(kept).updates == (up('{"b":"é"}', 6),)
