"""One client's socket, as the conversation needs it (``protocol.wire.Wire``).

Bytes come in as fast as they are asked for: while a statement runs, no more than ``_AHEAD`` of
what the client sends next is read. They go out as fast as the client takes them: ``send`` waits
while ``_UNSENT`` bytes are on their way, so a slow client costs that and one batch of rows; an end
that is asked for meanwhile wakes it. What is sent while more messages of the client are there goes
out with what follows, in one piece. Work is done in threads; a client that goes away meanwhile has
its statement interrupted, also if what it sent is not read any more.

Tests: tests/server/test_server.py.
"""

from __future__ import annotations

import asyncio
import ipaddress
import select
import socket
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, cast

from reclock.errors import Interrupted, ProtocolViolation
from reclock.server.codec.frames import LIMIT, Frames
from reclock.server.codec.frontend import read_first, read_frontend
from reclock.server.protocol.wire import Disconnected

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from concurrent.futures import Executor

    from reclock.server.codec.message import Message
    from reclock.server.protocol.wire import Alarm
    from reclock.session.session import Session

T = TypeVar("T")

_AHEAD: Final = 1 << 20
_UNSENT: Final = 1 << 19
_TOGETHER: Final = 1 << 16
"""So many bytes that are sent wait for more of them."""

_AT_ONCE: Final = 64
"""After so many messages that were there already others have their turn."""

_KEEP_ALIVE_SECONDS: Final = 60
_LOOK_SECONDS: Final = 2
"""So often it is looked whether a client is there that is not read from."""

_ENDS: Final = select.POLLERR | select.POLLHUP | getattr(select, "POLLRDHUP", 0)


class Connection(asyncio.Protocol):
    """A socket; ``begin`` is called with it when there is one."""

    def __init__(
        self, pool: Executor, tls: ssl.SSLContext | None, begin: Callable[[Connection], None]
    ) -> None:
        self._pool = pool
        self._tls = tls
        self._begin = begin
        self._frames = Frames()
        self._out = bytearray()
        self._at_once = 0
        self._came = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_full = False
        self._is_lost = False
        self._stopping: Interrupted | None = None
        self._is_busy = False
        self._is_waiting = False
        self._is_paused = False
        self._transport: asyncio.Transport
        self._host = ""
        self.is_encrypted = False
        self.session: Session | None = None
        """Whose statements end with the connection; set when there is one."""

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._host = str((transport.get_extra_info("peername") or ("",))[0])
        self._transport.set_write_buffer_limits(_UNSENT)
        _keep_alive(transport.get_extra_info("socket"))
        self._begin(self)

    def data_received(self, data: bytes) -> None:
        """Take what came; no more than is asked for."""
        self._frames.feed(data)
        if not self._is_waiting and self._frames.waiting > _AHEAD:
            self._transport.pause_reading()
            if not self._is_paused:
                self._is_paused = True
                self._look()
        self._came.set()

    def _look(self) -> None:
        """Notice a client that goes away while nothing is read from it."""
        if not self._is_paused or self._is_lost:
            return
        if _has_gone(self._transport.get_extra_info("socket")):
            self._lose()
            self.abort()
        else:
            asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def eof_received(self) -> bool:
        """Take a client that says nothing more for one that has gone."""
        self._lose()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop what is done for a client that has gone."""
        del exc
        self._lose()

    def pause_writing(self) -> None:
        """Let ``send`` wait: the client reads more slowly than we write."""
        self._is_full = True
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let ``send`` go on."""
        self._is_full = False
        self._writable.set()

    def _lose(self) -> None:
        self._is_lost = True
        self._wake()
        if self.session is not None and self._is_busy:
            message = "the client has gone"
            self._interrupt(Interrupted(message, code="08006"))

    # What the conversation asks for.

    @property
    def address(self) -> str:
        """Where the client is."""
        return self._host

    @property
    def is_local(self) -> bool:
        """Whether the client is on this machine."""
        try:
            return ipaddress.ip_address(self._host.partition("%")[0]).is_loopback
        except ValueError:
            return False

    @property
    def can_encrypt(self) -> bool:
        """Whether there is a certificate."""
        return self._tls is not None

    async def encrypt(self) -> None:
        """Go on in TLS; nothing that came before counts."""
        self._write()
        if self._frames.waiting:
            message = "received unencrypted data after SSL request"
            detail = "an attacker between client and server may have sent it"
            raise ProtocolViolation(message, detail=detail)
        assert self._tls is not None
        loop = asyncio.get_running_loop()
        try:
            made = await loop.start_tls(self._transport, self, self._tls, server_side=True)
        except OSError as cause:  # a handshake that failed is one too
            raise Disconnected from cause
        if made is None:
            raise Disconnected
        self._transport = made
        made.set_write_buffer_limits(_UNSENT)
        self.is_encrypted = True

    async def first(self) -> Message:
        """Return the next message before the session has begun."""
        await self._written()
        return await self._next(partial(self._frames.first, read_first))

    async def receive(self, timeout: float | None = None, *, within: bool = False) -> Message:
        """Return the next message; ``TimeoutError`` if none came in so many seconds."""
        self._at_once += 1
        if self._at_once >= _AT_ONCE:
            self._at_once = 0
            await asyncio.sleep(0)
        if (message := self._frames.next(read_frontend)) is not None:
            self._ended()
            return message
        self._at_once = 0
        await self._written()
        async with asyncio.timeout(timeout):
            return await self._next(partial(self._frames.next, read_frontend), within=within)

    async def _next(self, read: Callable[[], Message | None], *, within: bool = False) -> Message:
        self._is_busy, self._is_waiting, self._is_paused = within, True, False
        self._ended()
        self._transport.resume_reading()
        try:
            while (message := read()) is None:
                if self._stopping is not None:
                    raise self._stopping
                if self._is_lost:
                    raise Disconnected
                if within and self.session is not None:
                    self.session.interrupt.check()
                self._came.clear()
                await self._came.wait()
        finally:
            self._is_waiting = False
        self._is_busy = True
        return message

    def _ended(self) -> None:
        """Let ``send`` wait again: an end that was asked for meanwhile has been."""
        if self._is_full:
            self._writable.clear()

    def admitted(self) -> None:
        """Allow messages of any length: it is known who sends them."""
        self._frames.limit = LIMIT

    async def send(self, data: bytes, alarm: Alarm | None = None) -> None:
        """Send bytes, and wait while too many of them are on their way."""
        if self._is_lost:
            raise Disconnected
        self._out += data
        if len(self._out) >= _TOGETHER:
            await self._written(alarm)

    async def _written(self, alarm: Alarm | None = None) -> None:
        """Let out what was sent, and wait while too much of it is on its way."""
        self._write()
        if not self._writable.is_set():
            timer = None
            if alarm is not None:
                loop = asyncio.get_running_loop()
                timer = loop.call_later(alarm.seconds, self._wake_by, alarm.ring)
            try:
                await self._writable.wait()
            finally:
                if timer is not None:
                    timer.cancel()
        if self._is_lost:
            raise Disconnected

    def _write(self) -> None:
        if self._out and not self._is_lost:
            self._transport.write(bytes(self._out))
        self._out.clear()

    def _wake_by(self, ring: Callable[[], None]) -> None:
        """Have who waits go on after something was done in a thread, which may wait too."""
        done = asyncio.get_running_loop().run_in_executor(None, ring)
        done.add_done_callback(lambda _: self._wake())

    def _wake(self) -> None:
        self._writable.set()
        self._came.set()

    async def work(self, job: Callable[[], T], alarm: Alarm | None = None) -> T:
        """Run in a thread what may take long; ``alarm`` is rung if it does."""
        loop = asyncio.get_running_loop()
        await self._written(alarm)
        timer = None
        if alarm is not None:
            timer = loop.call_later(alarm.seconds, loop.run_in_executor, None, alarm.ring)
        try:
            return await loop.run_in_executor(self._pool, job)
        finally:
            if timer is not None:
                timer.cancel()

    # What the server calls.

    def cancel(self) -> None:
        """Cancel the statement under way, if there is one."""
        if self.session is not None and self._is_busy:
            message = "canceling statement due to user request"
            self._interrupt(Interrupted(message))

    def stop(self) -> None:
        """Ask for an end when the statement under way is done."""
        message = "terminating connection due to administrator command"
        self._stopping = Interrupted(message, code="57P01", hint="connect again later")
        self._came.set()

    def stop_now(self) -> None:
        """Interrupt the statement under way."""
        if self.session is not None and self._stopping is not None:
            self._interrupt(self._stopping)

    def close(self) -> None:
        """Close the socket, after what was sent, if the client takes it."""
        self._write()
        if self._is_full:
            self._transport.abort()
        self._transport.close()

    def abort(self) -> None:
        """Close the socket at once."""
        self._transport.abort()

    def _interrupt(self, reason: Interrupted) -> None:
        """Interrupt the statement, whatever it waits for; never the one after it."""
        assert self.session is not None
        interrupt = self.session.interrupt
        self._wake_by(partial(interrupt.set, reason, interrupt.number))


def _has_gone(found: socket.socket | None) -> bool:
    """Return whether the other end of a socket is closed, whatever there is to be read."""
    if found is None or found.fileno() < 0:
        return True
    ends = select.poll()
    ends.register(found.fileno(), _ENDS)
    return bool(ends.poll(0))


def _keep_alive(found: socket.socket | None) -> None:
    """Have the system notice clients that vanish without a word."""
    if found is None or found.family == socket.AF_UNIX:
        return
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEP_ALIVE_SECONDS)
