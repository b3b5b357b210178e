"""The HTTP server: a thread with an event loop, next to whatever else the process does.

``start`` returns when it listens, or says why it cannot; ``close`` lets no one in, ends streams and
gives statements under way ``GRACE`` seconds.

Tests: tests/server/http/test_server.py.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

import uvicorn

from reclock.errors import InvalidValue
from reclock.server.http.app import App
from reclock.server.http.connection import Connection
from reclock.server.http.door import Door
from reclock.server.http.gauges import Gauges
from reclock.server.http.history import EVERY_SECONDS, History
from reclock.server.http.limits import STATEMENTS
from reclock.server.http.looks import in_turn
from reclock.server.http.metrics import Metrics
from reclock.server.http.parts import Parts
from reclock.server.http.remaps import Remaps
from reclock.server.http.streams import Streams
from reclock.server.switching import SWITCHING
from reclock.session.file_roots import FileRoots

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from types import TracebackType

    from reclock.session.database import Database

PORT: Final = 6876
GRACE: Final = 3
_READERS: Final = 8
"""So many threads read what streams follow."""


def _none() -> int:
    return 0


def _silent(event: str, words: str, *, level: str = "info", **facts: object) -> None:
    del event, words, level, facts


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How to listen, and to whom."""

    host: str = "127.0.0.1"
    port: int = PORT
    tls: ssl.SSLContext | None = None
    trusts_local: bool = False
    files: FileRoots = field(default_factory=FileRoots)
    connections: Callable[[], int] = _none
    """How many clients the PostgreSQL port has."""


class HttpServer:
    """Serves a database over HTTP, as a context manager, or from ``start`` to ``close``."""

    def __init__(
        self, db: Database, options: HttpOptions, say: Callable[..., None] = _silent
    ) -> None:
        self._options = options
        self._socket: socket.socket | None = None
        self._pool = ThreadPoolExecutor(STATEMENTS, "reclock-http")
        self._readers = ThreadPoolExecutor(_READERS, "reclock-stream")
        gauges = Gauges(options.connections)
        door = Door(db, trusts_local=options.trusts_local, encrypts=options.tls is not None)
        self.parts = Parts(
            db, door, gauges, Metrics(db, gauges), History(db), Remaps(db),
            Streams(self._readers), self._pool, options.files, say,
        )  # fmt: skip
        self._server: uvicorn.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="reclock-http-loop", daemon=True)
        self._ready = threading.Event()
        self._closed = False

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._socket is not None
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        host = self._options.host
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)
        return f"{'http' if self._options.tls is None else 'https'}://{shown}:{self.port}/"

    def start(self) -> None:
        """Begin to listen."""
        options = self._options
        family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        # asyncio sets TCP_NODELAY where it sees that a socket is one of TCP. Without, each answer
        # on a connection that stays open waits 40 ms for an acknowledgement.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((options.host, options.port))
            made.listen(512)
        except OSError as cause:
            made.close()
            message = f"cannot listen for HTTP at {options.host}:{options.port}"
            hint = "choose another --http, or stop what listens there"
            raise InvalidValue(message, detail=str(cause), hint=hint) from cause
        self._socket = made
        SWITCHING.begin()
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        """Let no one in, and see everybody out."""
        if self._socket is None or self._closed:
            return
        self._closed = True
        SWITCHING.end()
        loop = self._loop
        if loop is not None and self._thread.is_alive():
            with suppress(RuntimeError):
                asyncio.run_coroutine_threadsafe(self._stop(), loop)
        self._thread.join()
        self._pool.shutdown()
        self._readers.shutdown()
        self._socket.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def _stop(self) -> None:
        await self.parts.streams.close()
        if self._server is not None:
            self._server.should_exit = True

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        tls = self._options.tls
        config = uvicorn.Config(
            App(self.parts).asgi,
            loop="asyncio", http=Connection, ws="none", lifespan="off", interface="asgi3",
            log_config=None, log_level="error", access_log=False,
            proxy_headers=False, server_header=False,
            timeout_graceful_shutdown=GRACE, timeout_keep_alive=30,
            ssl_context_factory=None if tls is None else lambda *_: tls,
        )  # fmt: skip
        server = self._server = uvicorn.Server(config)
        sampling = asyncio.ensure_future(self._sample())
        assert self._socket is not None
        self._ready.set()
        try:
            await server.serve(sockets=[self._socket])
        finally:
            sampling.cancel()
            await self.parts.streams.close()

    async def _sample(self) -> None:
        """Take samples for the graphs, and let go of abandoned streams."""
        while True:
            try:
                await asyncio.to_thread(in_turn, self.parts.history.sample)
            except Exception as error:
                self.parts.fault(error)
            self.parts.streams.sweep()
            await asyncio.sleep(EVERY_SECONDS)
