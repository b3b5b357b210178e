"""The seam between a conversation and its connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.server.codec.message import Message

T = TypeVar("T")


class Disconnected(Exception):
    """The client has gone; there is no one to answer."""


class Alarm(NamedTuple):
    """What to do, in another thread, about work that is not done after so many seconds."""

    seconds: float
    ring: Callable[[], None]


class Wire(Protocol):
    """The client's end of a conversation, and threads to work in."""

    @property
    def address(self) -> str:
        """Where the client is, for logs."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether the client is on this machine."""
        ...

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection is private."""
        ...

    @property
    def can_encrypt(self) -> bool:
        """Whether ``encrypt`` can be called."""
        ...

    async def encrypt(self) -> None:
        """Go on in TLS."""
        ...

    async def first(self) -> Message:
        """Return the next message before the session has begun."""
        ...

    async def receive(self, timeout: float | None = None, *, within: bool = False) -> Message:
        """Return the next message; ``TimeoutError`` if none came in so many seconds.

        ``within`` a statement that is told to stop, what it is told is raised.
        """
        ...

    def admitted(self) -> None:
        """Allow messages of any length: it is known who sends them."""
        ...

    async def send(self, data: bytes, alarm: Alarm | None = None) -> None:
        """Send bytes, and wait while too many of them are on their way.

        ``alarm`` is rung if that takes long, and then it waits no more.
        """
        ...

    async def work(self, job: Callable[[], T], alarm: Alarm | None = None) -> T:
        """Run in a thread what may take long; ``alarm`` is rung if it does."""
        ...
