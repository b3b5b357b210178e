"""A client of our own server, for the shell: what a session gives in this process, from another.

``RemoteDatabase`` and ``RemoteSession`` have of ``Database`` and ``Session`` what the shell uses.
Texts go as simple queries, one connection for each session; errors come back as ``StatementError``
with code, detail, hint and position. Ctrl-C cancels the statement under way; the session goes on.

The server must prove that it knows the signpost's key, as the client must: ``StorageError`` (08001)
if it is not there, or is another.

Tests: tests/server/test_client.py.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

from scramp import ScramClient, ScramException

from reclock.errors import NotSupported, ProtocolViolation, StatementError, StorageError
from reclock.rows.result import Result
from reclock.server.codec import backend as b
from reclock.server.codec import frontend as f
from reclock.server.codec import text as text_format
from reclock.server.codec.frames import LIMIT, Frames
from reclock.server.codec.message import frame, write
from reclock.server.codec.oid import type_of
from reclock.server.signpost import USER
from reclock.sql.schema import Column, Schema
from reclock.sql.types import TEXT, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from reclock.server.codec.message import Message
    from reclock.server.signpost import Signpost
    from reclock.sql.types import Type

_MECHANISM: Final = "SCRAM-SHA-256"
_SECONDS: Final = 5.0
"""How long a server may take to accept a log-in."""


class RemoteDatabase:
    """A database that another process has."""

    def __init__(self, where: Signpost) -> None:
        self._where = where
        self._session = self.session()

    def session(self) -> RemoteSession:
        """Connect once more."""
        return RemoteSession(self._where)

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Result:
        """Run statements; return the result of the last one."""
        return self._session.execute(sql, parameters)

    def close(self) -> None:
        """Disconnect."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class RemoteSession:
    """One connection."""

    def __init__(self, where: Signpost) -> None:
        self._where = where
        self._frames = Frames()
        self._frames.limit = LIMIT
        self._key: b.BackendKeyData | None = None
        try:
            self._socket = where.connect(_SECONDS)
        except OSError as cause:
            raise _away(where, str(cause)) from cause
        try:
            self._log_in()
        except (OSError, ScramException, StatementError, ProtocolViolation) as cause:
            self._socket.close()
            raise _away(where, str(cause)) from cause
        self._socket.settimeout(None)

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Result:
        """Run statements; return the result of the last one."""
        result, schema = Result(""), None
        rows: list[tuple[Any, ...]] = []
        for message in self._asked(_with(sql, parameters)):
            match message:
                case b.RowDescription(columns):
                    schema, rows = _schema(columns), []
                case b.DataRow(values) if schema is not None:
                    rows.append(_row(values, schema))
                case b.CommandComplete(tag):
                    names = () if schema is None else schema.names
                    result, schema = Result(tag, names, rows, schema=schema), None
                    rows = []
        return result

    def copy(self, sql: str) -> Iterator[str]:
        """Run COPY … TO STDOUT; yield the lines."""
        for message in self._asked(sql):
            if isinstance(message, b.CopyOutData):
                yield from message.data.decode().splitlines(keepends=True)

    def subscribe(self, sql: str) -> RemoteSubscription:
        """Follow what SUBSCRIBE gives."""
        return RemoteSubscription(self._asked(sql))

    def close(self) -> None:
        """Disconnect."""
        with suppress(OSError):
            self._socket.sendall(frame(f.Terminate()))
        self._socket.close()

    # The protocol.

    def _log_in(self) -> None:
        parameters = (("user", USER), ("database", "reclock"), ("application_name", "reclock sql"))
        self._socket.sendall(f.write_first(f.Startup(f.PROTOCOL_3, parameters)))
        scram = ScramClient([_MECHANISM], USER, self._where.key.reveal())
        proven = False
        while True:
            match self._next():
                case b.Authentication(b.SASL):
                    first = f.SaslInitial(_MECHANISM, scram.get_client_first().encode())
                    self._reply(write(first))
                case b.Authentication(b.SASL_CONTINUE, data):
                    scram.set_server_first(data.decode())
                    self._reply(scram.get_client_final().encode())
                case b.Authentication(b.SASL_FINAL, data):
                    scram.set_server_final(data.decode())
                    proven = True
                case b.BackendKeyData() as key:
                    self._key = key
                case b.ErrorResponse(parts):
                    raise _error(dict(parts))
                case b.ReadyForQuery():
                    break
        if not proven:
            message = "the server has not proven that it has the state"
            raise ProtocolViolation(message)

    def _reply(self, data: bytes) -> None:
        self._socket.sendall(frame(f.AuthenticationReply(data)))

    def _asked(self, sql: str) -> Iterator[Message]:
        """Send a query; yield what comes, and raise an error when all of it has come."""
        self._socket.sendall(frame(f.Query(sql)))
        failure: StatementError | None = None
        is_done = False
        try:
            while not is_done:
                match self._next():
                    case b.ErrorResponse(parts):
                        failure = _error(dict(parts))
                    case b.ReadyForQuery():
                        is_done = True
                    case message:
                        yield message
        except (KeyboardInterrupt, GeneratorExit):
            self._cancel()
            while not isinstance(self._next(), b.ReadyForQuery):
                pass
            raise
        if failure is not None:
            raise failure

    def _next(self) -> Message:
        while (message := self._frames.next(b.read_backend)) is None:
            data = self._socket.recv(1 << 16)
            if not data:
                message_ = "the server has closed the connection"
                raise StorageError(message_, code="08006", hint="look whether it still runs")
            self._frames.feed(data)
        return message

    def _cancel(self) -> None:
        if self._key is None:
            return
        request = f.write_first(f.CancelRequest(self._key.process, self._key.key))
        with suppress(OSError), self._where.connect(_SECONDS) as other:
            other.sendall(request)
            other.recv(1)


class RemoteSubscription:
    """Rows of a SUBSCRIBE, as they come."""

    def __init__(self, messages: Iterator[Message]) -> None:
        self._messages = messages
        self.closed = False
        self.schema = Schema(())
        for message in messages:
            if isinstance(message, b.RowDescription):
                self.schema = _schema(message.columns)
                break

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.schema.names

    def fetch(self, timeout: float, limit: int) -> Iterator[Any]:
        """Yield rows until there are no more."""
        del timeout, limit
        for message in self._messages:
            if isinstance(message, b.DataRow):
                yield _row(message.values, self.schema)
        self.closed = True

    def values(self, update: Any) -> tuple[Any, ...]:
        """Return the values of a row."""
        return tuple(update)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._messages.close()  # type: ignore[attr-defined] # a generator


def _with(sql: str, parameters: Sequence[object]) -> str:
    """Return a text with its values, which are texts, in their places."""
    for at, value in reversed(list(enumerate(parameters, 1))):
        quoted = str(value).replace("'", "''")
        sql = sql.replace(f"${at}", f"'{quoted}'")
    return sql


def _schema(columns: Sequence[b.ColumnDescription]) -> Schema:
    return Schema(tuple(Column(column.name, _type(column.type)) for column in columns))


def _type(oid: int) -> Type:
    """Return the type of a column; what has none here is shown as it came."""
    try:
        found = type_of(oid)
    except NotSupported:
        return TEXT
    return TEXT if found == UNKNOWN else found


def _row(values: Sequence[bytes | None], schema: Schema) -> tuple[Any, ...]:
    return tuple(
        None if value is None else text_format.read(value.decode(), column.type)
        for value, column in zip(values, schema, strict=True)
    )


def _error(parts: dict[str, str]) -> StatementError:
    place = parts.get("P")
    return StatementError(
        parts.get("M", "error"),
        code=parts.get("C", "XX000"),
        detail=parts.get("D"),
        hint=parts.get("H"),
        position=None if place is None else int(place),
    )


def _away(where: Signpost, reason: str) -> StorageError:
    message = f"no server of this state at {where}"
    return StorageError(message, code="08001", detail=reason, hint="is it still running?")
