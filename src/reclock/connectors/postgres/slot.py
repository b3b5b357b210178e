"""Replication slots: made with a snapshot that others can read at, looked at, and dropped.

A slot is made by ``CREATE_REPLICATION_SLOT … LOGICAL pgoutput (SNAPSHOT 'export')``. From then on
the server keeps the log from the slot's *consistent point* on; the exported snapshot has exactly
the transactions that committed before it. The snapshot lives as long as the session that made the
slot is left alone, so ``exported`` is a context.

``state_of`` says what became of a slot; ``check`` refuses to read on from one that lost what is
not bound yet, or from another server than the one that was bound: lasting errors.

Tests: tests/ingest/postgres/test_postgres.py.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reclock.connectors.postgres.connection import identifier, text
from reclock.connectors.postgres.table import AGAIN
from reclock.errors import PositionsLost, SourceRegressed, SourceUnavailable
from reclock.time.timestamp import Lsn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.connectors.postgres.connection import Connection

PLUGIN = "pgoutput"
PRIMARY: Final = (
    "see that the host leads to the primary; what exists already is tried again by itself"
)


class System(NamedTuple):
    """Which server it is: its number, its timeline, and how far its log goes."""

    id: str
    timeline: int
    end: Lsn


class Exported(NamedTuple):
    """A new slot: where its log begins, and the snapshot of that point."""

    lsn: Lsn
    snapshot: str


class State(NamedTuple):
    """What the server says of a slot."""

    confirmed: Lsn | None
    status: str | None
    active: bool
    database: str | None


def system_of(session: Any) -> System:
    """Return which server a session of replication is with."""
    with session.cursor() as cursor:
        cursor.execute("IDENTIFY_SYSTEM")
        number, timeline, end, *_ = cursor.fetchone()
    return System(str(number), int(timeline), Lsn.parse(end))


def check_primary(session: Any, connection: Connection) -> None:
    """Refuse for now to ask a standby: it has neither the slot nor the end of the log."""
    with session.cursor() as cursor:
        cursor.execute("SELECT pg_is_in_recovery()")
        ((is_standby,),) = cursor.fetchall()
    if is_standby:
        message = f"the server is a standby, or still starting: {connection.shown}"
        detail = f"host {session.info.host} is in recovery; only a primary has the slot"
        raise SourceUnavailable(message, code="57P03", detail=detail, hint=PRIMARY)


@contextmanager
def exported(connection: Connection, name: str, *, temporary: bool = False) -> Iterator[Exported]:
    """Make a slot; its snapshot can be read at inside the block. One of that name is replaced.

    A ``temporary`` one goes with the block.
    """
    if not temporary:
        drop(connection, name)
    session = connection.replication()
    try:
        with connection.told():
            check_primary(session, connection)
        with connection.told(), session.cursor() as cursor:
            wish = "(SNAPSHOT 'export')"
            if session.info.server_version < 150_000:
                wish = "EXPORT_SNAPSHOT"
            kind = "TEMPORARY LOGICAL" if temporary else "LOGICAL"
            made = f"CREATE_REPLICATION_SLOT {identifier(name)} {kind} {PLUGIN} {wish}"
            cursor.execute(made)
            _, lsn, snapshot, _ = cursor.fetchone()
        yield Exported(Lsn.parse(lsn), snapshot)
    finally:
        session.close()


def drop(connection: Connection, name: str) -> bool:
    """Drop a slot; return whether there was one."""
    session = connection.sql()
    try:
        with connection.told(), session.cursor() as cursor:
            cursor.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                f"WHERE slot_name = {text(name)}"
            )
            return bool(cursor.fetchall())
    finally:
        session.close()


def state_of(session: Any, name: str) -> State | None:
    """Return what a server says of a slot; None: there is no such."""
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT confirmed_flush_lsn::text, to_jsonb(s) ->> 'wal_status', active, database "
            f"FROM pg_replication_slots s WHERE slot_name = {text(name)}"
        )
        found = cursor.fetchone()
    if found is None:
        return None
    confirmed, status, active, database = found
    return State(None if confirmed is None else Lsn.parse(confirmed), status, active, database)


def check(name: str, known: System, found: System, slot: State | None, bound: Lsn) -> None:
    """Refuse to read on from ``bound`` where that is not possible, or not the same log."""
    if found.id != known.id:
        message = "the server is not the one that the source was made with"
        detail = f"its system identifier was {known.id}, and is {found.id}"
        raise SourceRegressed(message, detail=detail, hint=AGAIN)
    if found.timeline != known.timeline:
        message = "the server has switched to another timeline: a standby took over"
        detail = f"its timeline was {known.timeline}, and is {found.timeline}; {bound} is bound"
        raise SourceRegressed(message, detail=detail, hint=AGAIN)
    if found.end < bound:
        message = "the server's log went back: it was restored to an earlier state"
        detail = f"{bound} is bound, but the log ends at {found.end}"
        raise SourceRegressed(message, detail=detail, hint=AGAIN)
    if slot is None:
        message = f'replication slot "{name}" is gone'
        detail = f"changes from {bound} on cannot be read"
        raise PositionsLost(message, detail=detail, hint=AGAIN, code="42704")
    if slot.status == "lost":
        message = f'replication slot "{name}" was invalidated: its log is removed'
        detail = f"changes from {bound} on cannot be read; wal_status is lost"
        hint = f"raise max_slot_wal_keep_size; then {AGAIN}"
        raise PositionsLost(message, detail=detail, hint=hint)
    if slot.confirmed is None:
        message = f'replication slot "{name}" is not ready yet'
        raise SourceUnavailable(message)
    if slot.confirmed > bound:
        message = f'replication slot "{name}" was read by another program'
        detail = f"{bound} is bound, but the slot begins at {slot.confirmed}"
        raise PositionsLost(message, detail=detail, hint=AGAIN)
