"""The sessions, what each is doing, and how to stop it: ``pg_stat_activity``.

Each session has a number, which ``pg_backend_pid()`` and the protocol's cancel key contain; it is
not a process id. ``cancel`` stops the running statement, if there is one; ``terminate`` also ends
the session of a client, with its connection.

A superuser may stop any session, another role only its own; it sees that other sessions exist, but
not what they do. The owner of the database, who has no role, may do everything.

Cost: a statement sets two attributes.

Tests: tests/server/test_backends.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Final
from weakref import ref

from reclock.errors import Forbidden, Interrupted, NotSupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reclock.clock import Clock
    from reclock.session.speaker import Speaker

HIDDEN: Final = "<insufficient privilege>"
_DEFINES: Final = re.compile(r"\b(create|alter)\b", re.IGNORECASE)
_SECRETS: Final = re.compile(
    r"\b(user|role|source|sink|connection|secret)\b|password", re.IGNORECASE
)


def shown(query: str) -> str:
    """Return a text as others may see it: of one that may have secrets, one word.

    >>> shown("SELECT 1"), shown("CREATE USER joe PASSWORD 'x'")
    ('SELECT 1', 'CREATE …')
    """
    if _DEFINES.search(query) and _SECRETS.search(query):
        return f"{_DEFINES.findall(query)[0].upper()} …"
    return query


class Backend:
    """One session, for others; ``pid`` is its number."""

    def __init__(self, pid: int, session: Speaker, clock: Clock) -> None:
        self.pid = pid
        self.started = clock.now_ms()
        self.address: str | None = None
        self.query = ""
        self.asked: int | None = None
        self.is_busy = False
        self._session = ref(session)
        self._clock = clock
        self._cancel: Callable[[], None] | None = None
        self._stop: Callable[[], None] | None = None

    def serve(
        self, address: str | None, cancel: Callable[[], None], stop: Callable[[], None]
    ) -> None:
        """Be that of a client: how its statement is cancelled, and its connection ended."""
        self.address, self._cancel, self._stop = address, cancel, stop

    def begin(self, query: str) -> None:
        """Note that a statement begins."""
        self.query, self.asked, self.is_busy = shown(query), self._clock.now_ms(), True

    def end(self) -> None:
        """Note that it is over."""
        self.is_busy = False

    @property
    def session(self) -> Speaker | None:
        """The session, if it is still there."""
        return self._session()

    @property
    def state(self) -> str:
        """What it does, in PostgreSQL's words."""
        if self.is_busy:
            return "active"
        session = self.session
        transaction = None if session is None else session.transaction
        if transaction is None:
            return "idle"
        return "idle in transaction" + (" (aborted)" if transaction.aborted else "")

    def cancel(self) -> None:
        """Stop the statement under way."""
        if self._cancel is not None:
            self._cancel()
        elif (session := self.session) is not None and self.is_busy:
            reason = Interrupted("canceling statement due to user request")
            session.interrupt.set(reason, session.interrupt.number)

    def terminate(self) -> None:
        """End the session of a client."""
        if self._stop is None:
            message = "a session of the program that has the database cannot be terminated"
            raise NotSupported(message, hint="use pg_cancel_backend: it stops its statement")
        self._stop()


@dataclass(frozen=True, slots=True)
class Seen:
    """A session as a row; what the viewer may not see is None, its text ``HIDDEN``."""

    pid: int
    role: str | None
    application: str
    address: str | None
    started: int | None
    asked: int | None
    state: str | None
    query: str


class Backends:
    """All sessions of a database."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._numbers = count(1)
        self._known: dict[int, Backend] = {}

    def number(self) -> int:
        """Return a number that no session has or had."""
        return next(self._numbers)

    def add(self, session: Speaker, pid: int | None) -> Backend:
        """Note a session that begins."""
        made = Backend(self.number() if pid is None else pid, session, self._clock)
        with self._lock:
            self._known[made.pid] = made
        return made

    def remove(self, backend: Backend) -> None:
        """Forget a session that has ended."""
        with self._lock:
            self._known.pop(backend.pid, None)

    def find(self, pid: int) -> Backend | None:
        """Return a session that is there."""
        found = self._known.get(pid)
        return None if found is None or found.session is None else found

    def seen(self, viewer: Speaker) -> Iterator[Seen]:
        """Yield the sessions as one of them may see them."""
        with self._lock:
            known = sorted(self._known.values(), key=lambda backend: backend.pid)
        for backend in known:
            session = backend.session
            if session is None:
                self.remove(backend)
                continue
            role, name = session.role, session.settings.get("application_name")
            if may(viewer, session):
                yield Seen(
                    backend.pid, role, name, backend.address, backend.started, backend.asked,
                    backend.state, backend.query,
                )  # fmt: skip
            else:
                yield Seen(backend.pid, role, name, None, None, None, None, HIDDEN)


def may(viewer: Speaker, other: Speaker) -> bool:
    """Return whether a session may see what another does, and stop it."""
    return viewer.is_superuser or viewer.role == other.role


@dataclass(frozen=True, eq=False, slots=True)
class Reach:
    """What a statement of one session can see and do of others."""

    backends: Backends
    viewer: Speaker

    def rows(self) -> Iterator[Seen]:
        """Yield the sessions."""
        return self.backends.seen(self.viewer)

    def cancel(self, pid: int) -> bool:
        """Cancel the statement of a session; return whether there is one of that number."""
        found = self._allowed(pid, "cancel a query of")
        if found is not None:
            found.cancel()
        return found is not None

    def terminate(self, pid: int) -> bool:
        """End a session; return whether there is one of that number."""
        found = self._allowed(pid, "terminate")
        if found is not None:
            found.terminate()
        return found is not None

    def _allowed(self, pid: int, what: str) -> Backend | None:
        found = self.backends.find(pid)
        session = None if found is None else found.session
        if session is not None and not may(self.viewer, session):
            message = f"permission denied to {what} another role's session"
            hint = "a superuser, or the role that the session has, may"
            raise Forbidden(message, hint=hint)
        return found
