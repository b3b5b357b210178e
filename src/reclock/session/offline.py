"""A read-only database: a copy of its state, in which nothing moves.

No source is read, no sink is written, nothing ticks: what is shown is what was durable when the
copy was made. Files of a state directory are kept by the copy. Those that are elsewhere
(``engine.place``) are read where they are, and never touched: one that its owner merges
meanwhile may be missing in the copy.

Tests: tests/session/test_offline.py.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reclock.durable.identity import identity_of
from reclock.durable.look import copy_postgres, copy_state
from reclock.durable.sqlite import open_sqlite
from reclock.engine.place import Place, files_of, segments_of
from reclock.errors import SourceUnavailable, StorageError
from reclock.session.database import Database
from reclock.spark.engine import SparkEngine

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from reclock.arrangement.file import File
    from reclock.arrangement.store import LocalStore, Store
    from reclock.connectors.kafka.cluster import Span, Topic, Watermarks
    from reclock.connectors.kafka.options import Connection
    from reclock.ingest.connect import Clusters


@contextmanager
def look(
    path: str | os.PathLike[str],
    clusters: Clusters | None = None,
    *,
    store: str | None = None,
    meta: str | None = None,
) -> Iterator[Database]:
    """Return a copy of the database in ``path``, even one in use, for as long as needed.

    ``store`` and ``meta`` are where its files and records are, as for ``open``. Where nothing is
    yet, it is an empty database, if ``clusters`` says whom one may ask.
    """
    with tempfile.TemporaryDirectory(prefix="reclock-look-") as made:
        scratch = Path(made)
        found = _copied(Path(path), scratch, meta, needed=clusters is None)
        records = open_sqlite(scratch)
        ours = segments_of(scratch)
        segments: Store = ours
        if found and (store is not None or meta is not None):
            directory = Path(path).resolve() if store is None else scratch
            segments = Beside(files_of(directory, store, identity_of(records)), ours)
        engine = SparkEngine(segments)
        place = Place(records, segments, is_copy=True)
        with Database(place, engine, background=False, clusters=clusters or Silent) as db:
            db.execute("SET transaction_isolation = 'serializable'")
            yield db


def _copied(path: Path, target: Path, meta: str | None, *, needed: bool) -> bool:
    """Copy what there is, and return whether there is anything."""
    if meta is not None:
        found = copy_postgres(meta, target)
        if needed and not found:
            message = "there is no state in the database of --meta"
            raise StorageError(message, hint="is it the right one? reclock run makes its tables")
        return found
    if needed or path.exists():
        copy_state(path, target)
        return True
    return False


@dataclass(frozen=True)
class Beside:
    """The files of ``theirs``, to read; what is written goes to ``ours``."""

    theirs: Store
    ours: LocalStore

    def scratch(self, stem: str) -> Path:
        """Return a new empty local file."""
        return self.ours.scratch(stem)

    def publish(self, file: Path, name: str, *, durable: bool = True) -> None:
        """Make a file visible to this process."""
        self.ours.publish(file, name, durable=durable)

    @property
    def batch_share(self) -> int:
        """What share of a batch to write as one."""
        return self.ours.batch_share

    @property
    def openers(self) -> int:
        """How many runs to open at a time."""
        return self.theirs.openers

    def file(self, name: str) -> File:
        """Return a file."""
        return (self.ours if name in self.ours.names() else self.theirs).file(name)

    def names(self) -> list[str]:
        """Return the names of own files: no other is this process's to remove."""
        return self.ours.names()

    def remove(self, name: str) -> None:
        """Remove a file of its own."""
        self.ours.remove(name)

    def require(self, names: Iterable[str]) -> None:
        """Raise unless files that tasks of its own published are among its own."""
        self.ours.require(names)


@dataclass(frozen=True)
class Silent:
    """The cluster of a source that is not read: it can be connected to, and answers nothing."""

    connection: Connection

    def describe(self, topic: str) -> Topic | None:
        """Refuse."""
        raise _silence()

    def watermarks(self, topic: str, partitions: Iterable[int]) -> dict[int, Watermarks]:
        """Refuse."""
        raise _silence()

    def offsets_at(self, topic: str, partitions: Iterable[int], ms: int) -> dict[int, int | None]:
        """Refuse."""
        raise _silence()

    def fetch(
        self, topic: str, spans: Sequence[Span], extra: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Refuse."""
        raise _silence()


def _silence() -> SourceUnavailable:
    message = "a copy of a state reads no sources"
    return SourceUnavailable(message)
