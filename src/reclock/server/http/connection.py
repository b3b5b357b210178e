"""A connection that must get somewhere: uvicorn's, with an end to waiting for the client.

A request must be there ``HEAD_SECONDS`` after its first byte, or after the connection was made: who
sends a header byte by byte is cut off. What is sent must be taken: a client whose buffer does not
drain for ``STUCK_SECONDS`` is cut off, and so is one that does not take the end of an answer. There
may be ``most()`` connections; one more is closed at once. (Bodies have an end in ``limits``.)

Tests: tests/server/http/test_hostile.py.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

HEAD_SECONDS: Final = 10.0
STUCK_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 10.0
MOST: Final = 2_000


def most() -> int:
    """Return how many connections there may be; the process needs other files, too."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(16, min(MOST, soft // 2))


class Connection(H11Protocol):
    """One client, from when it comes to when it goes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let a client in, if there is room."""
        super().connection_made(transport)
        if len(self.connections) > most():
            transport.abort()
        else:
            self._head = self._later(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a client."""
        super().connection_lost(exc)
        self._stop_head()
        self._stop_stuck()

    def data_received(self, data: bytes) -> None:
        """Take some bytes; those that begin a request begin its time, too."""
        super().data_received(data)
        if not self._is_idle():
            self._stop_head()
        elif self._head is None:
            self._head = self._later(HEAD_SECONDS)

    def pause_writing(self) -> None:
        """Wait until the client takes something, but not for ever."""
        super().pause_writing()
        if self._stuck is None:
            self._stuck = self._later(STUCK_SECONDS)

    def resume_writing(self) -> None:
        """Go on: it has taken what there was."""
        super().resume_writing()
        self._stop_stuck()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that asks for nothing more, if need be without its farewell."""
        super().timeout_keep_alive_handler()
        if self._stuck is None:
            self._stuck = self._later(CLOSE_SECONDS)

    def _is_idle(self) -> bool:
        """Return whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _later(self, seconds: float) -> asyncio.TimerHandle:
        abort: Callable[[], None] = self.transport.abort
        return self.loop.call_later(seconds, abort)

    def _stop_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _stop_stuck(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
