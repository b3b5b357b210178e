"""``/api/subscribe``: a SUBSCRIBE as events, each with all changes of whole times.

An event has the id T once everything at T and before was sent: a client that comes back with
``Last-Event-ID: T`` gets what came after T, all of it, once. A time of very many changes comes in
several events, of which only the last has an id: a client that was cut off between them drops what
has no id yet, as it will get it again.

When a client goes, its subscription is kept for ``RESUME_SECONDS`` with the last events; who
comes back in time goes on from there, whatever history the objects keep. Later, the subscription
begins again as of T, if that is still kept, and is refused (22023) if it is not.

A stream has no thread: the subscription tells the event loop when there is something, and a pool
reads it. Rows are read when the client has taken those before: a slow client delays no other, and
one that takes nothing for ``STUCK_SECONDS`` is left.

Tests: tests/server/http/test_streams.py.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from reclock.errors import Error, InvalidSyntax, InvalidValue, Rejected
from reclock.server.http.limits import STREAMS
from reclock.server.http.sql import past, values_for
from reclock.server.http.values import columns_of, dumps, error_of, rows_of
from reclock.server.protocol.feed import batch_of
from reclock.sql.parse import parse_statement
from reclock.sql.schema import Column, Schema
from reclock.sql.statement import Subscribe
from reclock.subscribe.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from concurrent.futures import Executor

    from reclock.engine.update import Update
    from reclock.server.http.door import Caller
    from reclock.server.http.sql import Ask
    from reclock.session.session import Session

AT_ONCE: Final = 2_000
"""So many changes are read, and sent, at once."""
RESUME_SECONDS: Final = 30.0
STUCK_SECONDS: Final = 60.0
QUIET_SECONDS: Final = 5.0
"""So often a client is told how far it is when nothing changes."""
KEPT_BYTES: Final = 1 << 20
"""So much of what was sent last is kept for clients that come back."""

Key = tuple[object, ...]
"""Whose stream it is, and of what."""


@dataclass(frozen=True, slots=True)
class Event:
    """What is sent: ``id`` is the time up to which all was sent; None: not yet."""

    name: str
    data: bytes
    id: str | None = None

    def sse(self) -> bytes:
        """Return it as a server-sent event."""
        head = f"event: {self.name}\n" + ("" if self.id is None else f"id: {self.id}\n")
        return head.encode() + b"data: " + self.data + b"\n\n"

    def line(self) -> bytes:
        """Return it as a line of JSON."""
        return b'{"event":"' + self.name.encode() + b'",' + self.data[1:] + b"\n"


@dataclass(eq=False)
class Stream:
    """A subscription, what was sent of it last, and the session that it is of."""

    session: Session
    subscription: Subscription
    key: Key
    tells: bool
    """Whether the client asked for PROGRESS."""
    sent: deque[Event] = field(default_factory=deque)
    size: int = 0
    begun: str | None = None
    """The id that everything in ``sent`` comes after; None: the beginning."""
    complete: bool = True
    """Whether nothing of what came after ``begun`` was dropped."""
    ended: bool = False
    more: bool = False
    """Whether there may be more to read at once."""
    until: float = 0.0
    _pending: list[Update] = field(default_factory=list)

    @property
    def schema(self) -> Schema:
        """The columns of its changes."""
        found = self.subscription.schema
        return Schema(tuple(Column(c.name, c.type) for c in found))

    def header(self) -> Event:
        """Return what says which columns changes have."""
        shown = [c for c in columns_of(self.schema) if c["name"] != "mz_progressed"]
        data = {"columns": shown, "as_of": str(int(self.subscription.as_of))}
        return Event("columns", dumps(data))

    def read(self) -> list[Event]:
        """Return what is there now; in a thread."""
        updates = self.subscription.fetch(0.0, AT_ONCE)
        events: list[Event] = []
        for update in updates:
            if not update.progressed:
                self._pending.append(update)
                continue
            if self._pending or self.tells or self._is_due():
                events.append(self._made(str(int(update.timestamp))))
        if len(self._pending) >= AT_ONCE:
            events.append(self._made(None))
        for event in events:
            self._keep(event)
        self.more = bool(updates)
        self.ended = self.subscription.closed and not updates
        return events

    def _is_due(self) -> bool:
        return monotonic() - self.until >= QUIET_SECONDS

    def _made(self, at: str | None) -> Event:
        pending, self._pending = self._pending, []
        self.until = monotonic()
        schema = self.schema
        kinds = [c.type for c in schema]
        rows = [self.subscription.values(update) for update in pending]
        changes = [
            [row[0], *row[2:]] for row in (rows_of(batch_of(rows, schema), kinds) if rows else [])
        ]  # without mz_progressed
        data: dict[str, Any] = {"timestamp": at, "changes": changes}
        return Event("changes" if changes else "progress", dumps(data), at)

    def _keep(self, event: Event) -> None:
        self.sent.append(event)
        self.size += len(event.data)
        while self.size > KEPT_BYTES:
            gone = self.sent.popleft()
            self.size -= len(gone.data)
            if gone.id is None:
                self.complete = False
            else:
                self.begun, self.complete = gone.id, True

    def after(self, at: str) -> list[Event] | None:
        """Return what was sent after an id; None if that is not known any more."""
        sent = list(self.sent)
        for place in range(len(sent) - 1, -1, -1):
            if sent[place].id == at:
                return sent[place + 1 :]
        return sent if self.begun == at and self.complete else None

    def check(self) -> None:
        """Refuse to go on if the role may not read it any more; in a thread."""
        try:
            self.subscription.check_rights()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of everything; in a thread."""
        self.subscription.close()
        self.session.close()


class _Woken:
    """An event of a loop that other threads set."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.event = asyncio.Event()

    def set(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self.event.set)
        except RuntimeError:
            return  # the loop is closed


class Streams:
    """All streams of a server."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._open: set[Stream] = set()
        self._parked: list[Stream] = []

    def __len__(self) -> int:
        return len(self._open)

    async def open(
        self, session_of: Callable[[], Session], caller: Caller, ask: Ask, last: str | None
    ) -> tuple[Stream, list[Event]]:
        """Return a stream, and what it sends again first."""
        self.sweep()
        if len(self._open) >= STREAMS:
            message = "too many streams"
            raise Rejected(message, code="53300", hint=f"there may be {STREAMS}: close some")
        key = caller.role, caller.verifier, ask.query, repr(ask.params)
        again: list[Event] = []
        stream: Stream | None = None
        if last is not None:
            if not last.isascii() or not last.isdigit() or len(last) > 20:
                message = "Last-Event-ID is not a timestamp"
                raise InvalidValue(message, hint="send the id of the last event that came")
            for parked in reversed(self._parked):
                found = parked.after(last) if parked.key == key else None
                if found is not None:
                    stream, again = parked, found
                    self._parked.remove(parked)
                    break
        if stream is not None:
            await self._run(stream.check)
        if stream is None:
            stream = await self._run(lambda: _opened(session_of(), key, ask, last))
        self._open.add(stream)
        return stream, again

    async def events(
        self, stream: Stream, again: list[Event], check: Callable[[], None]
    ) -> AsyncGenerator[Event]:
        """Yield what comes, until it ends, or ``check`` says that the client may not have it."""
        yield stream.header()
        for event in again:
            yield event
        woken = _Woken()
        stream.until = monotonic()
        try:
            with stream.subscription.waking(woken, progress=stream.tells):
                while True:
                    woken.event.clear()
                    check()
                    for event in await self._run(stream.read):
                        yield event
                    if stream.more:
                        continue
                    if stream.ended:
                        yield Event("end", b'{"end":true}')
                        return
                    try:
                        await asyncio.wait_for(woken.event.wait(), QUIET_SECONDS)
                    except TimeoutError:
                        continue
        except Exception as error:
            stream.ended = True
            yield Event("failure", dumps({"error": error_of(error)}))
            if not isinstance(error, Error):
                raise

    async def leave(self, stream: Stream) -> None:
        """See a client out; its stream stays for a while."""
        self._open.discard(stream)
        if stream.ended or stream.subscription.closed:
            await self._run(stream.close)
        else:
            stream.until = monotonic() + RESUME_SECONDS
            self._parked.append(stream)

    def sweep(self) -> None:
        """Let go of streams whose client did not come back."""
        now = monotonic()
        gone = [s for s in self._parked if s.until <= now or s.subscription.closed]
        self._parked = [s for s in self._parked if s not in gone]
        self._parked, extra = self._parked[-STREAMS:], self._parked[:-STREAMS]
        for stream in (*gone, *extra):
            self._pool.submit(stream.close)

    async def close(self) -> None:
        """End all streams."""
        streams = [*self._open, *self._parked]
        self._parked = []
        for stream in streams:
            await self._run(stream.subscription.close)
        for stream in streams:
            if stream not in self._open:
                await self._run(stream.close)

    def _run(self, job: Callable[[], Any]) -> Awaitable[Any]:
        return asyncio.get_running_loop().run_in_executor(self._pool, job)


def _opened(session: Session, key: Key, ask: Ask, last: str | None) -> Stream:
    try:
        found = session.parsed(ask.query)
        statement = found[0].statement if len(found) == 1 else None
        if not isinstance(statement, Subscribe):
            message = "not a SUBSCRIBE"
            raise InvalidSyntax(message, code="42809", hint="ask /api/sql for it")
        if last is None:  # which is later
            statement = past(found[0], ask.as_of).statement
            assert isinstance(statement, Subscribe)
        tells = statement.progress
        values = values_for(session, found[0], ask.params)
        statement = replace(statement, progress=True)
        if last is not None:
            moment = parse_statement(f"SUBSCRIBE t AS OF {last}")
            assert isinstance(moment, Subscribe)
            statement = replace(statement, as_of=moment.as_of, snapshot=False)
        opened = session.run(replace(found[0], statement=statement), values)
        assert isinstance(opened, Subscription)
    except BaseException:
        session.close()
        raise
    return Stream(session, opened, key, tells, begun=last)
