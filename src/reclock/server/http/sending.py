"""A stream as an answer: events go out as fast as the client takes them, and no faster.

A client that goes ends it at once; one that takes nothing for ``STUCK_SECONDS`` is left. Either
way the stream is kept for a while, to go on from (``streams``).

Tests: tests/server/http/test_streams.py.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from reclock.server.http import streams

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from reclock.server.http.door import Caller
    from reclock.server.http.parts import Parts
    from reclock.server.http.streams import Event, Stream

_AT_ONCE: Final = {"x-accel-buffering": "no", "content-encoding": "identity"}
"""What keeps proxies and compression from holding an event back."""


class Sending(Response):
    """Sends the events of a stream."""

    def __init__(
        self, parts: Parts, stream: Stream, again: list[Event], caller: Caller, *, lines: bool
    ) -> None:
        kind = "application/x-ndjson" if lines else "text/event-stream"
        super().__init__(media_type=kind, headers=_AT_ONCE)
        del self.headers["content-length"]
        self._p = parts
        self._stream = stream
        self._again = again
        self._caller = caller
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the client, or the stream, ends."""
        del scope
        self._p.gauges.streams += 1
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            with suppress(asyncio.CancelledError, TimeoutError, OSError):
                await sending
            self._p.gauges.streams -= 1
            await asyncio.shield(self._p.streams.leave(self._stream))

    async def _send(self, send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": 200, "headers": list(self.raw_headers)}
        )
        door, caller = self._p.door, self._caller
        events = self._p.streams.events(self._stream, self._again, lambda: door.check_still(caller))
        try:
            async for event in events:
                data = event.line() if self._lines else event.sse()
                message = {"type": "http.response.body", "body": data, "more_body": True}
                async with asyncio.timeout(streams.STUCK_SECONDS):
                    await send(message)
        finally:
            await events.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
