"""Numbered migrations: every older format becomes the newest in one transaction.

The format version is the ``format`` of the one row of ``reclock_store``; that table and
its columns ``format`` and ``written_by`` never change their meaning, so that any version
of reclock can tell a newer one from a broken state. A database without the table is
version 0. ``migrate`` runs inside the caller's transaction: a crash leaves the old format
whole.

A migration is history and never edited: it is written as text, not through ``schema``,
which always describes the newest format. To change the format, add the next migration
and the fixture of the version it ends.

Checked by tests/durable/test_migrate.py, with a fixture of each version.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version as installed_version
from typing import TYPE_CHECKING, Final

from sqlalchemy import inspect, select, update

from reclock.durable import schema
from reclock.errors import Corrupt, NewerFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Migration:
    """The statements that make the format before into the next one, per dialect."""

    about: str
    sqlite: tuple[str, ...]
    postgresql: tuple[str, ...]


_STORE_1 = """CREATE TABLE reclock_store (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    format INTEGER NOT NULL,
    written_by TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    owner TEXT NOT NULL)"""
_STORE_ROW_1 = "INSERT INTO reclock_store VALUES (1, 0, '', 0, '')"
_COLLECTION_1 = """CREATE TABLE reclock_collection (
    id TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    since BIGINT,
    upper BIGINT)"""
_UPDATE_1 = """CREATE TABLE reclock_update (
    collection TEXT NOT NULL,
    digest {binary} NOT NULL,
    time BIGINT NOT NULL,
    data TEXT NOT NULL,
    diff BIGINT NOT NULL,
    PRIMARY KEY (collection, digest, time))"""
_UPDATE_TIME_1 = "CREATE INDEX reclock_update_time ON reclock_update (collection, time)"

MIGRATIONS: Final = (
    Migration(
        "collections with frontiers and updates",
        sqlite=(
            _STORE_1,
            _STORE_ROW_1,
            _COLLECTION_1 + " WITHOUT ROWID",
            _UPDATE_1.format(binary="BLOB") + " WITHOUT ROWID",
            _UPDATE_TIME_1,
        ),
        postgresql=(
            _STORE_1,
            _STORE_ROW_1,
            _COLLECTION_1,
            _UPDATE_1.format(binary="BYTEA"),
            _UPDATE_TIME_1,
        ),
    ),
    Migration(
        "manifests say until when pending updates are kept, views when they are refreshed",
        sqlite=(),  # records of a new kind: who reads format 1 would take them for broken ones
        postgresql=(),
    ),
    Migration(
        "sources name the files in which transactions wait",
        sqlite=(),  # a new collection: who reads format 2 would not see it, and lose what waits
        postgresql=(),
    ),
    Migration(
        "the upper of a timeline may be a record of its manifest",
        sqlite=(),  # who reads format 3 would take the record for a broken one
        postgresql=(),
    ),
)
"""Migration n (counted from 1) makes format n − 1 into format n."""


def migrate(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Bring the database to the newest format and return the format it had."""
    found = format_version(connection, newest=len(migrations))
    for migration in migrations[found:]:
        statements: tuple[str, ...] = getattr(migration, connection.dialect.name)
        for statement in statements:
            connection.exec_driver_sql(statement)
    if found < len(migrations):
        stamp = update(schema.store).values(
            format=len(migrations), written_by=installed_version("reclock")
        )
        connection.execute(stamp)
    return found


def format_version(connection: Connection, newest: int) -> int:
    """Return the format of the database; refuse one that is newer than ``newest``."""
    if not inspect(connection).has_table(schema.store.name):
        return 0
    row = connection.execute(select(schema.store.c.format, schema.store.c.written_by)).first()
    if row is None:
        message = "the durable state has lost its format version"
        raise Corrupt(message, detail="table reclock_store is empty", hint="restore a backup")
    found, written_by = row
    if not isinstance(found, int) or found < 1:
        message = "the durable state has no valid format version"
        raise Corrupt(message, detail=f"format {found!r}", hint="restore a backup")
    if found > newest:
        message = f"the durable state has format {found}, written by reclock {written_by}"
        detail = f"this is reclock {installed_version('reclock')}, which reads up to {newest}"
        raise NewerFormat(message, detail=detail, hint=f"use reclock {written_by} or newer")
    return found
