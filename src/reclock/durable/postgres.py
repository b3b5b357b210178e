"""The production store: a PostgreSQL database, shared safely by a newest owner and ghosts.

Opening takes over: it adds one to the epoch, which fences the process that held the state before
(``database``). There is no lock to steal: a machine that was thought dead and comes back finds the
newer epoch in its next write transaction and can write nothing more.

Isolation is READ COMMITTED whatever the server's default is: a write transaction first
locks the owner's row, which all writers do, so writers run one after another and each
statement after the lock sees all that was committed before. Commits are synchronous. A
transaction left open by a stalled owner is ended by the server after ten seconds, so
taking over never waits longer.

A connection lost before commit wrote nothing: ``StorageError``, try again, it reconnects.
Lost during commit: ``OutcomeUnknown``; repeat the append to know (see ``store``): it waits
for the owner's row, which the server frees only when the lost transaction has ended.

Checked by tests/durable/test_postgres.py and, as a store, by test_conformance.py, on a
real server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from reclock.durable.database import Backend, Database
from reclock.durable.ownership import owner_name
from reclock.durable.sql_store import SqlStore
from reclock.errors import Corrupt, InvalidValue, OutcomeUnknown, StorageError, StorageFull

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.exc import SQLAlchemyError

_SETTINGS: Final = (
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET synchronous_commit = on",
    "SET idle_in_transaction_session_timeout = '10s'",
    "SET lock_timeout = '30s'",
)

_OPENING: Final = "SELECT pg_advisory_xact_lock(8098984873110135147)"
"""Excludes others while there may be no tables yet; the number is only a name."""


def open_postgres(url: str) -> SqlStore:
    """Own the state in the database at ``url``; who owned it before is fenced."""
    engine = postgres_engine(url)
    backend = Backend(None, _OPENING, explain, lambda: None)
    return SqlStore(Database(engine, backend, owner_name()), engine)


def postgres_engine(url: str) -> Engine:
    """Return how to connect to the database at ``url``."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.drivername.partition("+")[0] not in {"postgres", "postgresql"}:
        message = "invalid database address"
        raise InvalidValue(message, hint="write it as postgresql://user@host/database")
    try:
        engine = create_engine(parsed.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    except ModuleNotFoundError as error:
        message = "state in PostgreSQL needs the psycopg driver"
        raise StorageError(message, hint="pip install 'reclock[postgres]'") from error
    event.listen(engine, "connect", _configure)
    return engine


def _configure(connection: Any, record: Any) -> None:
    for setting in _SETTINGS:
        connection.execute(setting)
    connection.commit()


def explain(error: SQLAlchemyError, committing: bool) -> StorageError:
    """Return what an error of the driver means."""
    cause = getattr(error, "orig", None) or error
    detail = str(cause).strip()
    state = getattr(cause, "sqlstate", None) or ""
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    if state == "53100":
        message = "no space left for the durable state"
        hint = "free some space on the database server and try again; nothing was lost"
        return StorageFull(message, detail=detail, hint=hint)
    if state in {"XX001", "XX002"}:
        message = "the durable state is damaged"
        return Corrupt(message, detail=detail, hint="restore the database from a backup")
    if lost and committing:
        message = "the connection to the durable state was lost while committing"
        hint = "repeat the append: a mismatch at its new upper means that it was written"
        return OutcomeUnknown(message, detail=detail, hint=hint)
    if lost or state[:2] in {"", "08", "40", "53", "55", "57"}:
        message = "the durable state cannot be reached now"
        hint = "check the database server and try again; nothing was written"
        return StorageError(message, detail=detail, hint=hint)
    message = "the database refused to serve the durable state"
    return StorageError(message, detail=detail, hint="check the database and its permissions")
