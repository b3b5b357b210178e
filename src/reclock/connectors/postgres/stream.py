"""The log of a database from a position on: pgoutput's messages, through a slot.

``Stream.read`` yields messages up to a position that the caller names, and no further than the
server has sent within some patience. ``reached`` is how far the stream has come between
transactions: after a commit its end, and in between where the server says that it is (keepalives).
All transactions that end at or before it were yielded.

``acknowledge`` tells the server what need not be sent again. Nothing else is ever confirmed: what
was read and is not durable yet is read again after a crash. Therefore libpq is spoken to directly,
by psycopg's binding: psycopg2's replication cursor confirms by itself what keepalives say, also
where transactions before it were read and are not durable.

The replication protocol has three messages inside COPY, big-endian::

    w  data       LSN, LSN, time, a message of pgoutput
    k  keepalive  how far the server is, time, whether it asks for a status
    r  status     written, flushed and applied LSN, time, whether an answer is wished

Transactions that outgrow ``logical_decoding_work_mem`` of the server are sent before they end, in
blocks between those of others (protocol version 2, from PostgreSQL 14 on): their messages are
yielded undecoded (``Streamed``); the caller keeps them until their commit comes.

Why keepalives and not messages of our own (``pg_logical_emit_message``): the server sends one as
soon as it is done with the log that it has, whatever that log was about, so a slot moves on while
other databases write and this one is idle; nothing is written to the user's database, and a role
that may only read suffices.

Tests: tests/connectors/postgres/test_stream.py.
"""

from __future__ import annotations

from select import select
from struct import Struct
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from reclock.clock import SystemClock
from reclock.connectors.postgres.connection import client, identifier, text
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

_STATUS_SECONDS: Final = 10.0
"""How often the server is told, while it is read, that we are there."""

_DATA, _KEEPALIVE = b"wk"
_HEAD: Final = 25
_POSITION: Final = Struct("!Q")
_ASKED: Final = 17
_STATUS: Final = Struct("!cQQQq?")
_EPOCH_MS: Final = 946_684_800_000
"""2000-01-01, where PostgreSQL's times begin, in milliseconds since 1970."""


class Stream:
    """Reads a slot from ``start`` on; close it after an error."""

    def __init__(self, connection: Connection, slot: str, publication: str, start: Lsn) -> None:
        self._connection = connection
        self._session = connection.replication()
        self._pg: Any = self._session.pgconn
        self._open = self._in_block = False
        self._durable = Lsn(0)
        self._told = monotonic()
        self.payload = b""
        """The last message as it came."""
        self.reached = start
        try:
            self._start(slot, publication, start)
        except BaseException:
            self.close()
            raise

    def _start(self, slot: str, publication: str, start: Lsn) -> None:
        options = {"proto_version": "1", "publication_names": identifier(publication)}
        if self._session.info.server_version >= _STREAMS:
            options |= {"proto_version": "2", "streaming": "on"}
        given = ", ".join(f"{name} {text(value)}" for name, value in options.items())
        asked = f"START_REPLICATION SLOT {identifier(slot)} LOGICAL {start} ({given})"
        with self._connection.told():
            result = self._pg.exec_(asked.encode())
            if result.status != client().pq.ExecStatus.COPY_BOTH:
                raise client().errors.error_from_result(result)

    def read(self, end: Lsn, seconds: float) -> Iterator[Message]:
        """Yield messages until the log is read up to ``end`` or nothing came for so long."""
        deadline = monotonic() + seconds
        while self._open or self.reached < end:
            message = self._next()
            if message is None:
                left = deadline - monotonic()
                if left <= 0:
                    return
                select([self._pg.socket], [], [], min(left, _STATUS_SECONDS))
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
        while True:
            payload = self._received()
            if payload is None:
                return None
            self.payload = payload
            if self._in_block and payload[:1] != b"E":
                message: Message | None = streamed(payload)
            else:
                message = decode(payload)
                if isinstance(message, StreamStart | StreamStop):
                    self._in_block = isinstance(message, StreamStart)
            if message is not None:
                return message

    def _received(self) -> bytes | None:
        """Return the next message of pgoutput; None: there is none now."""
        with self._connection.told():
            has_waited = False
            while True:
                size, data = self._pg.get_copy_data(1)
                if size > 0:
                    if data[0] == _DATA:
                        return bytes(data[_HEAD:])
                    if data[0] == _KEEPALIVE:
                        self._kept_alive(data)
                elif size < 0:
                    self._ended()
                elif has_waited:
                    self._tell_now_and_then()
                    return None
                else:
                    self._pg.consume_input()
                    has_waited = True

    def _kept_alive(self, data: Any) -> None:
        if not self._open:
            (at,) = _POSITION.unpack_from(data, 1)
            self.reached = max(self.reached, Lsn(at))
        if data[_ASKED]:
            self._tell()

    def _ended(self) -> None:
        """Say why the server sends no more."""
        result = self._pg.get_result()
        if result is not None and result.error_message:
            raise client().errors.error_from_result(result)
        message = "the server has ended the replication"
        raise client().OperationalError(message)

    def _tell_now_and_then(self) -> None:
        if monotonic() - self._told >= _STATUS_SECONDS:
            self._tell()

    def _tell(self) -> None:
        micros = (SystemClock().now_ms() - _EPOCH_MS) * 1_000
        reached, durable = int(max(self.reached, self._durable)), int(self._durable)
        self._pg.put_copy_data(_STATUS.pack(b"r", reached, durable, durable, micros, False))
        self._pg.flush()
        self._told = monotonic()

    def acknowledge(self, durable: Lsn) -> None:
        """Tell the server that nothing before ``durable`` needs to be sent again."""
        with self._connection.told():
            self._durable = max(self._durable, durable)
            self._tell()

    def stay(self) -> None:
        """Tell the server that we are there, and read nothing."""
        with self._connection.told():
            self._tell()

    def close(self) -> None:
        """End the session; the slot stays."""
        try:
            self._session.close()
        except client().Error:
            return
