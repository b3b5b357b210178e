"""The log of a database from a position on: pgoutput's messages, through a slot.

``Stream.read`` yields messages up to a position that the caller names, and no further than the
server has sent within some patience. ``reached`` is how far the stream has come between
transactions: after a commit its end, and in between where the server says that it is (keepalives).
All transactions that end at or before it were yielded.

``acknowledge`` tells the server what need not be sent again. Nothing else is ever confirmed: what
was read and is not durable yet is read again after a crash.

Transactions that outgrow ``logical_decoding_work_mem`` of the server are sent before they end, in
blocks between those of others (protocol version 2, from PostgreSQL 14 on): their messages are
yielded undecoded (``Streamed``), for whoever keeps them until their commit comes.

Why keepalives and not messages of our own (``pg_logical_emit_message``): the server sends one as
soon as it is done with the log that it has, whatever that log was about, so a slot moves on while
other databases write and this one is idle; nothing is written to the user's database, and a role
that may only read suffices.

Tests: tests/coordinator/source/postgres/test_postgres.py.
"""

from __future__ import annotations

from select import select
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from reclock.connectors.postgres.connection import client
from reclock.connectors.postgres.pgoutput import (
    Begin,
    Commit,
    StreamCommit,
    StreamStart,
    StreamStop,
    decode,
    streamed,
)
from reclock.time.timestamp import Lsn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.connectors.postgres.connection import Connection
    from reclock.connectors.postgres.pgoutput import Message

_STREAMS: Final = 140_000
"""The first version that sends transactions before they end."""

_STATUS_SECONDS: Final = 10
"""How often the server is told, while it is read, that we are there."""


class Stream:
    """Reads a slot from ``start`` on; close it after an error."""

    def __init__(self, connection: Connection, slot: str, publication: str, start: Lsn) -> None:
        self._connection = connection
        self._session = connection.replication()
        self._open = self._in_block = False
        self.payload = b""
        """The last message as it came."""
        self.reached = start
        options = {"proto_version": "1", "publication_names": _listed(publication)}
        if self._session.server_version >= _STREAMS:
            options |= {"proto_version": "2", "streaming": "on"}
        with connection.told():
            self._cursor: Any = self._session.cursor()
            self._cursor.start_replication(
                slot_name=slot,
                decode=False,
                start_lsn=int(start),
                status_interval=_STATUS_SECONDS,
                options=options,
            )

    @property
    def session(self) -> Any:
        """The session of the replication protocol."""
        return self._session

    def read(self, end: Lsn, seconds: float) -> Iterator[Message]:
        """Yield messages until the log is read up to ``end`` or nothing came for so long."""
        deadline = monotonic() + seconds
        while self._open or self.reached < end:
            message = self._next()
            if message is None:
                left = deadline - monotonic()
                if left <= 0:
                    return
                select([self._session], [], [], left)
                continue
            deadline = monotonic() + seconds
            if isinstance(message, Begin):
                self._open = True
            elif isinstance(message, Commit | StreamCommit):
                self._open = False
                self.reached = max(self.reached, Lsn(message.end))
            yield message

    def _next(self) -> Message | None:
        """Return the next message that says something of rows; None: there is none now."""
        with self._connection.told():
            while True:
                raw = self._cursor.read_message()
                if raw is None:
                    if not self._open and self._cursor.wal_end:
                        self.reached = max(self.reached, Lsn(self._cursor.wal_end))
                    return None
                self.payload = raw.payload
                if self._in_block and raw.payload[:1] != b"E":
                    message: Message | None = streamed(raw.payload)
                else:
                    message = decode(raw.payload)
                    if isinstance(message, StreamStart | StreamStop):
                        self._in_block = isinstance(message, StreamStart)
                if message is not None:
                    return message

    def acknowledge(self, durable: Lsn) -> None:
        """Tell the server that nothing before ``durable`` needs to be sent again."""
        with self._connection.told():
            self._cursor.send_feedback(flush_lsn=int(durable), apply_lsn=int(durable), force=True)

    def stay(self) -> None:
        """Tell the server that we are there, and read nothing."""
        with self._connection.told():
            self._cursor.send_feedback(force=True)

    def close(self) -> None:
        """End the session; the slot stays."""
        try:
            self._session.close()
        except client().Error:
            return


def _listed(publication: str) -> str:
    return '"' + publication.replace('"', '""') + '"'
