"""The place of a database: its records, and its files.

By default both are in the state directory: SQLite, and the directory ``segments``. Records may be
in PostgreSQL instead (``meta``: an address), files in another directory or on any file system that
pyarrow has (``store``: a path or an address such as ``s3://bucket/prefix``), so that a machine that
is lost takes nothing with it. Then files lie under the database's id (``durable.identity``): what
one database does not name is garbage to it, and must not be another's. Of files that are elsewhere,
what is read is copied into ``cache`` of the state directory, or where ``arrangement.nearby`` says.

Tests: tests/engine/test_place.py.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyarrow import fs

from reclock.arrangement.address import filesystem_of
from reclock.arrangement.held import HeldStore
from reclock.arrangement.nearby import Nearby
from reclock.arrangement.remote import RemoteStore
from reclock.arrangement.store import LocalStore
from reclock.durable.identity import identity_of
from reclock.durable.postgres import open_postgres
from reclock.durable.sqlite import open_sqlite

if TYPE_CHECKING:
    import os

    from reclock.arrangement.store import Store
    from reclock.durable.sql_store import SqlStore

SEGMENTS: Final = "segments"
CACHE: Final = "cache"


@dataclass(frozen=True, slots=True)
class Place:
    """The records of a database, which this process owns, and its files."""

    records: SqlStore
    segments: Store
    is_copy: bool = False
    """Whether it is a copy to look at: then nothing outside may be changed in its name."""


def open_place(
    path: str | os.PathLike[str], store: str | None = None, meta: str | None = None
) -> Place:
    """Own the database in ``path``, or with its files and records elsewhere."""
    directory = Path(path).resolve()
    with ExitStack() as undo:
        records = open_sqlite(directory) if meta is None else open_postgres(meta)
        undo.callback(records.close)
        if store is None and meta is None:
            files: Store = segments_of(directory)
        else:
            files = files_of(directory, store, identity_of(records))
        if isinstance(files, LocalStore):
            files = HeldStore.hold(files.root)
        undo.pop_all()
    return Place(records, files)


def segments_of(path: str | os.PathLike[str]) -> LocalStore:
    """Return where the files of a state directory are."""
    return LocalStore(Path(path).resolve() / SEGMENTS)


def files_of(directory: Path, store: str | None, identity: str) -> Store:
    """Return where the files of a database are whose records or files are elsewhere."""
    if store is None or "://" not in store:
        root = directory / SEGMENTS if store is None else Path(store).resolve()
        return LocalStore(root / identity)
    filesystem, prefix = filesystem_of(store)
    if isinstance(filesystem, fs.LocalFileSystem):
        return LocalStore(Path(prefix) / identity)
    nearby = Nearby.own(directory / CACHE, identity)
    made = RemoteStore(filesystem, f"{prefix}/{identity}", nearby)
    made.check()
    return made
