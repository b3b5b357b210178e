"""A database that one process owns: transactions, fencing, and errors that explain.

One writer. Every write is one transaction of ``writing``: it excludes all other writers
(SQLite: BEGIN IMMEDIATE; PostgreSQL: the row of ``reclock_store`` is locked), then checks
that this process still is the owner, so nothing it reads afterwards can be out of date.
Every read is one statement, which both databases answer from one moment.

Ownership. Opening adds one to ``epoch``; a process whose epoch is not the stored one was
taken over, and its writes raise ``Fenced`` before they write. Taking over waits for a
transaction in progress, which therefore is whole. A process that is forked from the owner
has the owner's connections but is not the owner: it may use nothing of them.

Invariant: an error from inside a transaction rolls it back; an error that leaves open
whether a commit happened is ``OutcomeUnknown`` and nothing else is.

Checked by tests/durable/test_postgres.py (fencing) and test_sqlite.py (failing disks).
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select, update
from sqlalchemy.exc import SQLAlchemyError

from reclock.durable import schema
from reclock.durable.migrate import migrate
from reclock.durable.prepared import Prepared
from reclock.errors import Fenced, StateInUse, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection, Engine


@dataclass(frozen=True, slots=True)
class Backend:
    """What differs between the databases."""

    begin_write: str | None
    """How a transaction excludes other writers, if the lock on the owner's row does not."""

    begin_open: str | None
    """How it excludes them before there is a row to lock."""

    explain: Callable[[SQLAlchemyError, bool], StorageError]
    """What an error of the driver means; the flag says whether a commit was under way."""

    release: Callable[[], None]
    """What to give back when the database is closed."""

    is_held: Callable[[], bool] = lambda: True
    """Whether what the owner took is still the state's; the epoch decides besides."""


class Database:
    """The tables of ``schema``, in the newest format, owned by this process from now on."""

    def __init__(self, engine: Engine, backend: Backend, owner: str) -> None:
        self._engine = engine
        self._backend = backend
        self._pid = os.getpid()
        self._owner = Prepared(
            select(schema.store.c.epoch, schema.store.c.owner).with_for_update(), engine.dialect
        )
        self._writer: Connection | None = None
        self.lock = threading.RLock()
        """Held by the thread that writes; hold it to write twice with no other between."""
        try:
            with self._explained():
                self._writer = engine.connect()
            self._epoch = self._take_over(owner)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a transaction of the owner; it commits if the block ends without error."""
        with self._transaction() as writer:
            epoch, owner = next(iter(self._owner.all(writer, {})), (0, "nobody"))
            if epoch != self._epoch:
                message = "another process took over this state"
                detail = f"{owner} is owner number {epoch}; this process was {self._epoch}"
                hint = "stop this process: only the newest owner may write"
                raise Fenced(message, detail=detail, hint=hint)
            yield writer

    def check_owner(self) -> None:
        """Raise ``Fenced`` unless this process still is the owner."""
        with self.writing():
            pass
        if not self._backend.is_held():
            message = "the durable state is gone from where it was"
            detail = "its directory was removed, or another one is in its place"
            hint = "stop this process: what it writes is lost"
            raise Fenced(message, detail=detail, hint=hint)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection to read with; one statement sees one moment."""
        self._opened()
        with self._explained(), self._engine.connect() as reader:
            yield reader

    def close(self) -> None:
        """Close all connections, and give back what was taken; both are the owner's to do."""
        if os.getpid() != self._pid:
            return
        with self.lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            self._engine.dispose()
            self._backend.release()

    def _take_over(self, owner: str) -> int:
        """Migrate to the newest format and become the owner; return the epoch."""
        with self._transaction(self._backend.begin_open) as writer:
            migrate(writer)
            next_epoch = schema.store.c.epoch + 1
            writer.execute(update(schema.store).values(epoch=next_epoch, owner=owner))
            return int(writer.execute(select(schema.store.c.epoch)).scalar_one())

    @contextmanager
    def _transaction(self, first: str | None = None) -> Iterator[Connection]:
        committing = False
        with self.lock:
            writer = self._opened()
            try:
                with writer.begin():
                    for statement in (self._backend.begin_write, first):
                        if statement is not None:
                            writer.exec_driver_sql(statement)
                    yield writer
                    committing = True
            except SQLAlchemyError as error:
                raise self._backend.explain(error, committing) from error

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise self._backend.explain(error, False) from error

    def _opened(self) -> Connection:
        if os.getpid() != self._pid:
            message = f"the durable state is in use by process {self._pid}"
            hint = "a forked process must open a state of its own"
            raise StateInUse(message, detail="this process was forked from it", hint=hint)
        if self._writer is None:
            message = "the durable store is closed"
            raise StorageError(message)
        return self._writer
