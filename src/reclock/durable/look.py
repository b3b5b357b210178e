"""Reads a state that another process may be using, from a copy of its records.

The records are copied by SQLite's own backup, in one transaction, and the immutable files are
linked, so a copy costs the records and no data. Files are linked before and after: those that came
between are there, those that were collected between are kept by their link. Nothing is written into
the directory, and its owner does not notice. Records that are in PostgreSQL are read in one
read-only transaction, without becoming their owner.

Checked by tests/durable/test_look.py.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from sqlalchemy import URL, create_engine, insert, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from reclock.durable import schema
from reclock.durable.postgres import explain, postgres_engine
from reclock.durable.sqlite import DATABASE_FILE
from reclock.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path


def copy_state(state: Path, target: Path) -> None:
    """Copy the state of a directory, at one moment, into another."""
    if not (state / DATABASE_FILE).exists():
        message = f"there is no state in {state}"
        raise StorageError(message, hint="name the directory of a reclock with --state")
    _link(state, target)
    address = f"file:{state.resolve() / DATABASE_FILE}?mode=ro"
    try:
        with (
            closing(sqlite3.connect(address, uri=True)) as source,
            closing(sqlite3.connect(target / DATABASE_FILE)) as copy,
        ):
            source.backup(copy)
    except sqlite3.Error as error:
        message = f"cannot read the state in {state}"
        raise StorageError(message, detail=str(error)) from error
    _link(state, target)


def copy_postgres(url: str, target: Path) -> bool:
    """Copy the records at ``url``, at one moment; return whether there are any."""
    engine = postgres_engine(url).execution_options(
        isolation_level="REPEATABLE READ", postgresql_readonly=True
    )
    try:
        with engine.connect() as source:
            if not inspect(source).has_table(schema.store.name):
                return False
            copied = create_engine(URL.create("sqlite", database=str(target / DATABASE_FILE)))
            with copied.begin() as copy:
                schema.metadata.create_all(copy)
                for table in schema.metadata.sorted_tables:
                    rows = [row._asdict() for row in source.execute(select(table))]
                    if rows:
                        copy.execute(insert(table), rows)
            copied.dispose()
    except SQLAlchemyError as error:
        raise explain(error, committing=False) from error
    finally:
        engine.dispose()
    return True


def _link(state: Path, target: Path) -> None:
    """Have all files of the subdirectories in both places."""
    for directory in (path for path in state.iterdir() if path.is_dir()):
        (target / directory.name).mkdir(exist_ok=True)
        for file in directory.iterdir():
            there = target / directory.name / file.name
            if file.is_file() and not there.exists():
                try:
                    os.link(file, there)
                except FileNotFoundError:
                    continue  # collected meanwhile
                except OSError:
                    shutil.copyfile(file, there)  # another file system
