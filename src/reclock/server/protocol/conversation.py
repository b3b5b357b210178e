"""The conversation between the log-in and the end of the connection.

One message is answered at a time, in the order in which they came. Answers are collected and
sent when the client waits, or when they are many. An error is told; of the extended protocol,
what follows it is skipped until Sync. Nothing but the loss of the connection, or bytes that cannot
be trusted any more, ends the conversation before the client does.

Tests: tests/server/protocol/test_conversation.py, tests/server/protocol/test_fuzz.py.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from reclock.dataflow.point import COLD
from reclock.errors import Error, Interrupted, InvalidValue, NotSupported, ProtocolViolation
from reclock.server.codec import backend as b
from reclock.server.codec import frontend as f
from reclock.server.codec.message import frame, framed
from reclock.server.protocol.extended import Extended, oids_of
from reclock.server.protocol.portal import Portal, State, described, row_description
from reclock.server.protocol.report import error_response
from reclock.server.protocol.startup import reported
from reclock.server.protocol.together import BEGIN, COMMIT, ROLLBACK, stretches
from reclock.server.protocol.wire import Alarm, Disconnected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.server.codec.message import Message
    from reclock.server.protocol.wire import Wire
    from reclock.session.session import Session
    from reclock.sql.statement import Parsed


_AT_ONCE: Final = frozenset({f.Query.letter, f.FunctionCall.letter})
"""Messages after which the client is told that it can go on, without a Sync."""

COPIED_AT_ONCE: Final = 1 << 20
"""So many bytes of a copy are taken together: clients send a few rows in a message."""

_GRACE: Final = 0.25
"""So many seconds after its timeout a statement is stopped that did not say what it waits for."""


class _Over(Exception):
    """The conversation cannot go on; ``error`` is what the client is told."""

    def __init__(self, error: Error) -> None:
        super().__init__(error)
        self.error = error


class Conversation:
    """Answers one client; ``fault`` is told of errors that are bugs.

    It ends with what ``Wire.receive`` raises: ``Interrupted`` is a server that stops.
    """

    def __init__(
        self, wire: Wire, session: Session, fault: Callable[[BaseException], None]
    ) -> None:
        self._wire = wire
        self._session = session
        self._fault = fault
        self._extended = Extended(session)
        self._reported = reported(session)
        self._reported_of: tuple[object, ...] = ()
        """What it was read from."""
        self._out = bytearray()
        self._skipping = False
        self._timeout: float | None = None
        """So long the client may say nothing, since it was last asked."""

    async def run(self) -> None:
        """Answer until the client leaves, or must."""
        try:
            await self._ready()
            while True:
                message = await self._next()
                if isinstance(message, f.Terminate):
                    return
                await self._answer(message)
        except _Over as over:
            self._put(error_response(over.error, fatal=True))
            await self._flush()
        finally:
            self._extended.close_portals()

    async def _next(self) -> Message:
        await self._flush()
        try:
            return await self._wire.receive(self._timeout)
        except TimeoutError:
            raise _Over(self._idle()) from None
        except (ProtocolViolation, Interrupted) as error:
            raise _Over(error) from error

    async def _next_copied(self) -> Message:
        """Return the next message of a COPY, for which the client may take as long as it likes."""
        await self._flush()
        try:
            return await self._wire.receive(within=True)
        except ProtocolViolation as error:
            raise _Over(error) from error

    @property
    def _idle_timeout(self) -> float | None:
        settings = self._session.settings
        outside, inside = settings.idle_session_timeout, settings.idle_in_transaction_timeout
        if self._session.transaction is None:
            return outside
        return min((t for t in (outside, inside) if t is not None), default=None)

    def _idle(self) -> Interrupted:
        if self._session.transaction is not None:
            message = "terminating connection due to idle-in-transaction timeout"
            return Interrupted(message, code="25P03", hint="end transactions soon")
        message = "terminating connection due to idle-session timeout"
        return Interrupted(message, code="57P05", hint="raise idle_session_timeout")

    # One message.

    async def _answer(self, message: Message) -> None:
        if isinstance(message, f.Sync):
            self._skipping = False
            await self._ready()
            return
        if self._skipping:
            return
        letter = message.of if isinstance(message, f.Malformed) else message.letter
        is_query = letter in _AT_ONCE
        try:
            match message:
                case f.Query(sql):
                    await self._query(sql)
                case f.CopyData() | f.CopyDone() | f.CopyFail():
                    pass  # of a COPY that has failed: the client did not know yet
                case f.Malformed(_, error):
                    raise error
                case _:
                    await self._extended_message(message)
        except (Disconnected, _Over):
            raise
        except Exception as error:
            await self._failed(error)
            self._skipping = not is_query
        if is_query:
            await self._ready()

    async def _extended_message(self, message: Message) -> None:
        extended = self._extended
        match message:
            case f.Parse():
                if not extended.prepare_known(message):
                    await self._wire.work(partial(extended.prepare, message))
                self._out += framed(b.ParseComplete())
            case f.Bind():
                extended.bind(message)
                self._out += framed(b.BindComplete())
            case f.Describe(kind, name):
                self._describe(kind, name)
            case f.Execute(name, limit):
                await self._execute(name, limit)
            case f.Close("S", name):
                extended.statements.pop(name, None)
                self._put(b.CloseComplete())
            case f.Close("P", name):
                extended.close_portal(name)
                self._put(b.CloseComplete())
            case f.Flush():
                await self._flush()
            case f.FunctionCall():
                text = "function calls by their OID are not supported"
                raise NotSupported(text, hint="use SELECT")
            case f.Close(kind):
                text = f'invalid CLOSE message subtype "{kind}"'
                raise ProtocolViolation(text)
            case _:
                text = f"unexpected message {type(message).__name__}"
                raise _Over(ProtocolViolation(text))

    def _describe(self, kind: str, name: str) -> None:
        if kind not in {"S", "P"}:
            text = f'invalid DESCRIBE message subtype "{kind}"'
            raise ProtocolViolation(text)
        cursor = self._session.cursors.find(name)
        if kind == "P" and name not in self._extended.portals and cursor is not None:
            self._put(row_description(cursor.schema, (0,) * len(cursor.schema)))
            return
        if kind == "S":
            prepared, formats = self._extended.statement(name), None
        else:
            bound = self._extended.portal(name)
            prepared, formats = bound.prepared, bound.formats
        found = prepared.description
        if kind == "S":
            self._put(b.ParameterDescription(oids_of(prepared)))
        if found is None or found.schema is None:
            self._put(b.NoData())
        else:
            self._out += described(found.schema, formats or (0,) * len(found.schema))

    async def _query(self, sql: str) -> None:
        """Run the statements of a text, one after the other, some of them together."""
        self._session.backend.begin(sql)
        self._extended.statements.pop("", None)
        self._extended.close_portal("")
        statements = self._session.known(sql)
        if statements is None:
            statements = await self._wire.work(partial(self._session.parsed, sql))
        if not statements:
            self._put(b.EmptyQueryResponse())
        for stretch in stretches(statements):
            if len(stretch) > 1 and self._session.transaction is None:
                await self._run_together(stretch)
            else:
                for parsed in stretch:
                    self._put(await self._run(parsed))

    async def _run(self, parsed: Parsed) -> Message:
        portal = Portal(self._session, parsed)
        if (done := await self._looked_up(portal)) is not None:
            return done
        try:
            return await self._drain(portal, None, describe=True)
        finally:
            portal.close()

    async def _run_together(self, statements: Sequence[Parsed]) -> None:
        """Run statements as one transaction; the last one is done when that is."""
        session = self._session
        await self._wire.work(partial(session.run, BEGIN))
        try:
            for parsed in statements[:-1]:
                self._put(await self._run(parsed))
            last = await self._run(statements[-1])
            await self._wire.work(partial(session.run, COMMIT), self._alarm)
        except BaseException:
            if session.transaction is not None:
                session.run(ROLLBACK)
            raise
        self._put(last)

    async def _execute(self, name: str, limit: int) -> None:
        bound = self._extended.portal(name)
        if bound.portal is not None:
            self._session.backend.begin(bound.portal.parsed.text)
        if bound.portal is None:
            self._put(b.EmptyQueryResponse())
        elif limit > 0 or (done := await self._looked_up(bound.portal)) is None:
            some = limit if limit > 0 else None
            self._put(await self._drain(bound.portal, some, describe=False))
        else:
            self._out += framed(done)

    async def _looked_up(self, portal: Portal) -> Message | None:
        """Answer a look-up that is known, here if nothing can block; None if it is not one."""
        found = portal.look_up(patient=False)
        if found == COLD:
            self._session.interrupt.clear()
            found = await self._wire.work(partial(portal.look_up, patient=True), self._alarm)
        if found is None or found == COLD:
            return None
        self._out += found
        return b.CommandComplete(portal.tag)

    async def _drain(self, portal: Portal, limit: int | None, *, describe: bool) -> Message:
        """Send what a portal gives, as fast as the client takes it, up to ``limit`` rows.

        Return what says that it is done.
        """
        start, left = portal.sent, limit
        self._session.interrupt.clear()
        alarm = None if portal.is_endless else self._alarm
        while True:
            job = partial(portal.next, left, describe=describe)
            chunk = await self._wire.work(job, alarm)
            if portal.is_endless:
                alarm = None
            self._out += chunk.data
            if chunk.state is State.DONE:
                return b.CommandComplete(chunk.tag)
            if chunk.state is State.COPYING:
                return b.CommandComplete(await self._copy_in(portal))
            if chunk.state is State.SUSPENDED:
                return b.PortalSuspended()
            left = None if limit is None else limit - (portal.sent - start)
            await self._flush(alarm)

    async def _copy_in(self, portal: Portal) -> str:
        """Take what the client copies, many messages at a time; return the tag."""
        gathered, size = [], 0
        while True:
            match await self._next_copied():
                case f.CopyData(data):
                    gathered.append(data)
                    size += len(data)
                    if size >= COPIED_AT_ONCE:
                        await self._wire.work(partial(portal.copying.write, b"".join(gathered)))
                        gathered, size = [], 0
                case f.CopyDone():
                    await self._wire.work(partial(portal.copying.write, b"".join(gathered)))
                    return await self._wire.work(portal.copied)
                case f.CopyFail(reason):
                    text = f"COPY from stdin failed: {reason}"
                    raise InvalidValue(text, code="57014")
                case f.Flush() | f.Sync():
                    pass
                case f.Malformed(_, error):
                    raise error
                case other:
                    text = f"unexpected message {type(other).__name__} during COPY from stdin"
                    raise _Over(ProtocolViolation(text))

    @property
    def _alarm(self) -> Alarm | None:
        allowed = self._session.settings.statement_timeout
        if allowed is None:
            return None
        return Alarm(allowed + _GRACE, partial(self._too_long, self._session.interrupt.number))

    def _too_long(self, number: int) -> None:
        message = "canceling statement due to statement timeout"
        self._session.interrupt.set(Interrupted(message, hint="raise statement_timeout"), number)

    # What is sent.

    def _put(self, message: Message) -> None:
        self._out += frame(message)

    async def _flush(self, alarm: Alarm | None = None) -> None:
        if self._out:
            data = bytes(self._out)
            self._out.clear()
            await self._wire.send(data, alarm)

    async def _failed(self, error: BaseException) -> None:
        if not isinstance(error, Error):
            self._fault(error)
        await self._wire.work(self._session.abort)
        self._put(error_response(error))

    async def _ready(self) -> None:
        self._session.backend.end()
        transaction = self._session.transaction
        if transaction is None:
            self._extended.close_portals()
        self._report()
        self._timeout = self._idle_timeout
        status = "I" if transaction is None else "E" if transaction.aborted else "T"
        self._out += framed(b.ReadyForQuery(status))

    def _report(self) -> None:
        """Tell the client of settings that it cares about and that are not what they were."""
        session = self._session
        settings, world = session.settings, session.core.world
        of = (settings, settings.version, world.roles)
        if of == self._reported_of:
            return
        now = reported(session)
        for name, value in now.items():
            if self._reported[name] != value:
                self._put(b.ParameterStatus(name, value))
        self._reported, self._reported_of = now, of
