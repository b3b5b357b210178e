"""The default store: a SQLite database in a state directory that one process owns.

WAL with ``synchronous=FULL``: a commit is one fsync of the log and survives power loss; readers do
not wait for the writer. The directory is locked first (``ownership``), so there is no other writer;
the busy timeout is for a person's ``sqlite3`` shell.

Size. Records are small and a tick touches a few of them, so pages are small, and the log is
copied back into the database every 64 KiB and written over from its beginning: it stays at
that size, but for a transaction that is larger, instead of SQLite's 4 MiB. A tick costs the
same (``python -m benchmarks long_life``); an older database keeps the page size it has.

What goes wrong is told apart by SQLite's own result code: no space is ``StorageFull``, a
malformed file is ``Corrupt``, a failed write or fsync *while committing* is
``OutcomeUnknown`` (the log may or may not have reached the disk), the rest is
``StorageError``. In every case the transaction is rolled back and the store can be used on.

Checked by tests/durable/test_sqlite.py and, as a store, by test_conformance.py.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import URL, create_engine, event

from reclock.durable.database import Backend, Database
from reclock.durable.ownership import DirectoryLock, owner_name
from reclock.durable.sql_store import SqlStore
from reclock.errors import Corrupt, OutcomeUnknown, StorageError, StorageFull

if TYPE_CHECKING:
    import os

    from sqlalchemy.exc import SQLAlchemyError

DATABASE_FILE: Final = "reclock.db"

_SETTINGS: Final = (
    "PRAGMA busy_timeout = 5000",
    "PRAGMA page_size = 1024",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA wal_autocheckpoint = 64",
    "PRAGMA journal_size_limit = 65536",
)


def open_sqlite(directory: str | os.PathLike[str]) -> SqlStore:
    """Own the state in ``directory``, creating it if there is none.

    Raises ``StateInUse`` if another process does.
    """
    path = Path(directory)
    lock = DirectoryLock(path)
    url = URL.create("sqlite", database=str(path / DATABASE_FILE))
    # No implicit transactions: reads are single statements, writes say BEGIN themselves.
    engine = create_engine(url, connect_args={"isolation_level": None})
    event.listen(engine, "connect", _configure)
    backend = Backend("BEGIN IMMEDIATE", None, _explain, lock.release, lock.is_held)
    return SqlStore(Database(engine, backend, owner_name()), engine)


def _configure(connection: sqlite3.Connection, record: Any) -> None:
    for setting in _SETTINGS:
        connection.execute(setting)


def _explain(error: SQLAlchemyError, committing: bool) -> StorageError:
    cause = getattr(error, "orig", None) or error
    detail = str(cause)
    primary = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if primary == sqlite3.SQLITE_FULL:
        message = "no space left for the durable state"
        hint = "free some space on its disk and try again; nothing was lost"
        return StorageFull(message, detail=detail, hint=hint)
    if primary in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        message = "the durable state is damaged"
        return Corrupt(message, detail=detail, hint="restore the state directory from a backup")
    if primary == sqlite3.SQLITE_IOERR and committing:
        message = "the disk failed while committing to the durable state"
        hint = "check the disk; repeat the append: a mismatch at its new upper means it was written"
        return OutcomeUnknown(message, detail=detail, hint=hint)
    if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        message = "the durable state is locked by another program"
        hint = f"close whatever has {DATABASE_FILE} open, such as a sqlite3 shell, and try again"
        return StorageError(message, detail=detail, hint=hint)
    message = "the durable state cannot be used"
    hint = "check that its directory and disk can be read and written"
    return StorageError(message, detail=detail, hint=hint)
