"""Listens, lets clients in, and sees them out.

Each connection is a coroutine of one event loop (``protocol``), and its statements run in a pool of
as many threads as there may be connections: no client waits for a thread, and neither the loop nor
ticks wait for a client. Only look-ups that block for nothing are answered in the loop itself. More
clients than ``max_connections`` are turned away (53300) once they have said who they are, so that
cancel requests get through; those that say nothing are cut off, the oldest of them at once if they
are too many: they do not keep others out.

``close`` lets no one in, lets the statements under way finish for ``grace`` seconds, interrupts the
others, and tells everybody why (57P01). Sessions are closed with their connections, whatever
happened: what they held is let go.

Tests: tests/server/test_server.py.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reclock.catalog.verifier import make_verifier
from reclock.clock import SystemClock
from reclock.errors import Error, InvalidValue, Rejected
from reclock.server.codec.message import frame
from reclock.server.connection import Connection
from reclock.server.protocol.conversation import Conversation
from reclock.server.protocol.report import error_response
from reclock.server.protocol.startup import Key, greet
from reclock.server.protocol.throttle import Throttle
from reclock.server.protocol.wire import Disconnected
from reclock.server.switching import SWITCHING
from reclock.session.file_roots import FileRoots

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from reclock.catalog.roles import Roles
    from reclock.clock import Clock
    from reclock.secret import Secret
    from reclock.session.database import Database
    from reclock.session.session import Session

LOGIN_SECONDS: Final = 30
"""So long a client may take to log in."""

_BEYOND: Final = 32
"""So many more connections than sessions there may be, of those who have not logged in."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to listen, and to whom; a host that is a path is a Unix socket, of this user alone."""

    host: str = "127.0.0.1"
    port: int = 6875
    tls: ssl.SSLContext | None = None
    trusts_local: bool = False
    max_connections: int = 100
    grace: float = 5.0
    files: FileRoots = field(default_factory=FileRoots)
    """Where sources and sinks of clients may have files: nowhere, unless it is said."""
    key: Secret | None = None
    """What the owner of the state logs in with: ``signpost`` has it."""


class Server:
    """Serves a database; ``say`` is told what happens: an event, in words, and its facts."""

    def __init__(
        self,
        db: Database,
        options: Options,
        say: Callable[..., None],
        clock: Clock | None = None,
    ) -> None:
        self._db = db
        self._options = options
        self._say = say
        self.trusts_local = options.trusts_local
        self.owner = None if options.key is None else make_verifier(options.key)
        self.pepper = secrets.token_bytes(32)
        self.throttle = Throttle(clock or SystemClock())
        self._pool = ThreadPoolExecutor(options.max_connections, "reclock-session")
        self._keys: dict[int, tuple[Key, Connection]] = {}
        self._sessions = 0
        self._strangers: dict[Connection, None] = {}
        """Those who have not logged in, the oldest first."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server | None = None

    @property
    def sessions(self) -> int:
        """How many clients have logged in."""
        return self._sessions

    @property
    def port(self) -> int:
        """Where it listens; 0 at a Unix socket."""
        assert self._listening is not None
        return 0 if self._is_private else int(self._listening.sockets[0].getsockname()[1])

    @property
    def _is_private(self) -> bool:
        """Whether it listens at a Unix socket."""
        return self._options.host.startswith("/")

    async def start(self) -> None:
        """Begin to listen."""
        loop = asyncio.get_running_loop()
        options = self._options

        def connection() -> Connection:
            return Connection(self._pool, options.tls, self._accepted)

        try:
            if self._is_private:
                listening = _private(options.host)
                self._listening = await loop.create_unix_server(connection, sock=listening)
            else:
                host, port = options.host, options.port
                self._listening = await loop.create_server(connection, host, port)
        except OSError as cause:
            place = options.host if self._is_private else f"{options.host}:{options.port}"
            message = f"cannot listen at {place}"
            hint = "choose another --port, or stop what listens there"
            if self._is_private:
                hint = "make the path of the state directory shorter, or have it on a local disk"
            raise InvalidValue(message, detail=str(cause), hint=hint) from cause
        SWITCHING.begin()

    async def close(self) -> None:
        """Let no one in, and see everybody out."""
        if self._listening is not None:
            self._listening.close()
            if self._is_private:
                Path(self._options.host).unlink(missing_ok=True)
            SWITCHING.end()
            self._listening = None
        for _, connection in self._keys.values():
            connection.stop()
        await self._gone(self._options.grace)
        for _, connection in self._keys.values():
            connection.stop_now()
        await self._gone(self._options.grace)
        for _, connection in tuple(self._keys.values()):
            connection.abort()
        await self._gone(self._options.grace)
        await asyncio.get_running_loop().run_in_executor(None, self._pool.shutdown)

    async def _gone(self, seconds: float) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    # One connection.

    def _accepted(self, connection: Connection) -> None:
        if self._sessions + len(self._strangers) >= self._options.max_connections + _BEYOND:
            oldest = next(iter(self._strangers), connection)
            self._strangers.pop(oldest, None)
            oldest.abort()
            if oldest is connection:
                return
        self._strangers[connection] = None
        task = asyncio.get_running_loop().create_task(self._serve(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: Connection) -> None:
        key = Key(self._db.backends.number(), secrets.token_bytes(4))
        self._keys[key.process] = key, connection
        try:
            await self._talk(connection, key)
        except Disconnected:
            pass
        except Exception as error:
            self._fault(error)
        finally:
            del self._keys[key.process]
            self._strangers.pop(connection, None)
            connection.close()

    async def _talk(self, connection: Connection, key: Key) -> None:
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                session = await greet(connection, self, key)
        except TimeoutError:
            return
        except Error as error:
            await connection.send(frame(error_response(error, fatal=True)))
            return
        if session is None:
            return
        connection.session = session
        session.backend.serve(connection.address or None, *self._stoppers(connection))
        self._strangers.pop(connection, None)
        self._sessions += 1
        try:
            await Conversation(connection, session, self._fault).run()
        finally:
            self._sessions -= 1
            connection.session = None
            loop = asyncio.get_running_loop()
            await asyncio.shield(loop.run_in_executor(None, session.close))

    def _stoppers(self, connection: Connection) -> tuple[Callable[[], None], Callable[[], None]]:
        """Return what cancels a statement and what ends a connection, from any thread."""
        loop = asyncio.get_running_loop()

        def end() -> None:
            connection.stop()
            connection.stop_now()

        return (
            lambda: _soon(loop, connection.cancel),
            lambda: _soon(loop, end),
        )

    # What the protocol asks of it (``protocol.startup.Door``).

    @property
    def roles(self) -> Roles:
        """Who there is."""
        return self._db.roles

    def session(self, role: str | None, pid: int) -> Session:
        """Begin a session, if there is room for one."""
        if self._sessions >= self._options.max_connections:
            message = "sorry, too many clients already"
            hint = "close unused connections, or raise --max-connections"
            raise Rejected(message, code="53300", hint=hint)
        return self._db.session(role, files=self._options.files, pid=pid)

    def cancel(self, process: int, key: bytes) -> None:
        """Cancel what the connection with that key is doing; a wrong key cancels nothing."""
        known, connection = self._keys.get(process, (None, None))
        if known is not None and connection is not None and hmac.compare_digest(known.secret, key):
            connection.cancel()

    def failed(self, user: str, address: str, error: Error) -> None:
        """Log a log-in that failed."""
        words = f"log-in of {user!r:.64} from {address} failed: {error.message}"
        facts = {"user": user[:64], "address": address, "code": error.code}
        self._say("login_failed", words, level="warning", **facts)

    def _fault(self, error: BaseException) -> None:
        with suppress(Exception):
            where = "".join(traceback.format_exception(error))
            words = f"a bug, please report it: {where}"
            self._say("bug", words, level="error", code="XX000", error=where)


def _private(path: str) -> socket.socket:
    """Return a Unix socket that only this user can connect to; one that was left there goes."""
    Path(path).unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX)
    try:
        made.bind(path)
        Path(path).chmod(0o600)  # before it listens: nobody has connected
    except OSError:
        made.close()
        raise
    return made


def _soon(loop: asyncio.AbstractEventLoop, job: Callable[[], None]) -> None:
    """Have something done by the thread that listens; if that has ended, there is nothing to do."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(job)
