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

from collections import deque
from select import select
from struct import Struct
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from reclock.clock import SystemClock
from reclock.connectors.postgres.connection import client, identifier, text
from reclock.connectors.postgres.pgoutput import (
    Begin,
    Change,
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

_AT_ONCE: Final = 1_000
"""How many messages are received at most before they are looked at."""

_DATA, _KEEPALIVE, _STOP = b"wkE"
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
        self._open = self._in_block = self._has_ended = False
        self._durable = Lsn(0)
        self._told = monotonic()
        self._received: deque[bytes | Lsn] = deque()
        """Messages, and positions of keepalives, that are still to be yielded."""
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
        received = self._received
        while self._open or self.reached < end:
            if not received and not self._receive():
                left = deadline - monotonic()
                if left <= 0:
                    return
                select([self._pg.socket], [], [], min(left, _STATUS_SECONDS))
                continue
            deadline = monotonic() + seconds
            while received and (self._open or self.reached < end):
                one = received.popleft()
                if isinstance(one, Lsn):
                    if not self._open:
                        self.reached = max(self.reached, one)
                    continue
                message = self._decoded(one)
                if message is not None:
                    yield message

    def _decoded(self, payload: bytes) -> Message | None:
        """Return what a message says; None: nothing of rows."""
        self.payload = payload
        if self._in_block and payload[0] != _STOP:
            return streamed(payload)
        message = decode(payload)
        kind = type(message)
        if kind is Change:
            return message
        if isinstance(message, StreamStart | StreamStop):
            self._in_block = kind is StreamStart
        elif kind is Begin:
            self._open = True
        elif isinstance(message, Commit | StreamCommit):
            self._open = False
            self.reached = max(self.reached, Lsn(message.end))
        return message

    def _receive(self) -> bool:
        """Take in what the server has sent, and how far it says that it is; return if it has."""
        with self._connection.told():
            if self._has_ended:
                self._ended()
            get, add = self._pg.get_copy_data, self._received.append
            self._pg.consume_input()
            for _ in range(_AT_ONCE):
                size, data = get(1)
                if size <= 0:
                    break
                if data[0] == _DATA:
                    add(bytes(data[_HEAD:]))
                elif data[0] == _KEEPALIVE:
                    add(Lsn(_POSITION.unpack_from(data, 1)[0]))
                    if data[_ASKED]:
                        self._tell()
            if size < 0:
                self._has_ended = True
                return True
            if monotonic() - self._told >= _STATUS_SECONDS:
                self._tell()
            return bool(self._received)

    def _ended(self) -> None:
        """Say why the server sends no more."""
        result = self._pg.get_result()
        if result is not None and result.error_message:
            raise client().errors.error_from_result(result)
        message = "the server has ended the replication"
        raise client().OperationalError(message)

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
