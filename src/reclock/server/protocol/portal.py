"""A statement that runs, and what it gives, bit by bit.

``Portal.next`` blocks, so it is called in a thread. The first call runs the statement; then each
gives some bytes to be sent. Rows that were described must come as they were described: a table
that was changed in between is an error, not garbage.

Tests: tests/server/protocol/test_conversation.py, tests/server/protocol/test_extended.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from reclock.dataflow.point import COLD
from reclock.errors import NotSupported, ProtocolViolation, StatementError
from reclock.rows.result import Result
from reclock.server.codec import binary
from reclock.server.codec.backend import (
    ColumnDescription,
    CopyInResponse,
    CopyOutDone,
    CopyOutResponse,
    RowDescription,
)
from reclock.server.codec.copy import after_rows, before_rows, signed
from reclock.server.codec.message import frame
from reclock.server.codec.oid import modifier_of, oid_of, size_of
from reclock.server.codec.rows import copy_rows, data_rows, few_rows
from reclock.server.protocol.feed import feed_of
from reclock.server.protocol.report import notice
from reclock.session.answer import Answer, CopyOut
from reclock.session.copy_in import CopyIn
from reclock.sql.zone import in_zone
from reclock.subscribe.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from reclock.session.session import Session
    from reclock.sql.schema import Schema
    from reclock.sql.statement import Parsed

_COLUMNS: Final = 32_767
"""So many can be counted in the messages of the protocol."""

Outcome = Result | Answer | Subscription | CopyOut | CopyIn


class State(Enum):
    """Whether there is more."""

    MORE = "more"
    SUSPENDED = "suspended"
    DONE = "done"
    COPYING = "copying"
    """What is copied is to come from the client."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes to send, and whether there is more; ``tag`` is what was done, at the end."""

    data: bytes
    state: State
    tag: str = ""


class Portal:
    """One run of a statement with its parameters.

    ``described`` is what the client was told about the columns, ``formats`` what it asked for.
    """

    def __init__(
        self,
        session: Session,
        parsed: Parsed,
        parameters: Sequence[object] = (),
        formats: Sequence[int] = (),
        described: Schema | None = None,
    ) -> None:
        self.parsed = parsed
        self._session = session
        self._parameters = tuple(parameters)
        self._formats = tuple(formats)
        self._described = described
        self._outcome: Outcome | None = None
        self._feed: Answer | None = None
        self._sent = 0
        self._tag: str | None = None
        self._is_looked_up = False

    def next(self, limit: int | None, *, describe: bool = False) -> Chunk:
        """Return what comes next, at most ``limit`` rows; with ``describe``, columns first."""
        with in_zone(self._session.settings.time_zone):
            return self._next(limit, describe=describe)

    def _next(self, limit: int | None, *, describe: bool) -> Chunk:
        if self._tag is not None:
            return self._again()
        head = b""
        if self._outcome is None:
            head = self._begin(describe=describe)
        if isinstance(self._outcome, CopyIn):
            return Chunk(head, State.COPYING)
        if self._feed is None:
            assert isinstance(self._outcome, Result)
            self._tag = self._outcome.tag
            told = b"".join(frame(notice(text)) for text in self._outcome.notices)
            for code, text in self._outcome.warnings:
                told += frame(notice(text, code=code, severity="WARNING"))
            return Chunk(head + told, State.DONE, self._tag)
        if head and isinstance(self._outcome, Subscription | CopyOut):
            return Chunk(head, State.MORE)  # the client should know at once that it has begun
        self._session.interrupt.check()
        batch = self._feed.take(limit)
        if batch is None:
            return self._end(head)
        self._sent += batch.num_rows
        full = limit is not None and batch.num_rows >= limit
        state = State.SUSPENDED if full else State.MORE
        return Chunk(head + self._rows(batch), state)

    def _again(self) -> Chunk:
        """Return that nothing more comes; what gives no rows is not done twice."""
        if self._feed is None and not self._is_looked_up:
            message = "the portal cannot be run again"
            raise StatementError(message, code="55000", hint="bind the statement again")
        word = "SELECT" if self._feed is None else self._feed.tag
        return Chunk(b"", State.DONE, f"{word} 0")

    def look_up(self, *, patient: bool) -> bytes | Literal["cold"] | None:
        """Answer a look-up that is known at once, with all its rows; then it is over.

        None if it is to be run (``next``), ``COLD`` if it takes patience, and so a thread.
        """
        if self._outcome is not None or self._tag is not None:
            return None
        found = self._session.look_up(self.parsed, self._parameters, patient=patient)
        if found is None or found == COLD:
            return found
        schema = found.schema
        formats = formats_of(self._formats, len(schema))
        if self._described is not None and self._described != schema:
            check_same(self._described, schema)
        head = b"" if self._described is not None else described(schema, formats)
        self._sent, self._tag = len(found.rows), f"SELECT {len(found.rows)}"
        self._is_looked_up = True
        with in_zone(self._session.settings.time_zone):
            return head + few_rows(found.rows, [c.type for c in schema], formats)

    @property
    def tag(self) -> str:
        """What was done, once it is over."""
        assert self._tag is not None
        return self._tag

    @property
    def copying(self) -> CopyIn:
        """What takes the bytes of a COPY … FROM STDIN."""
        assert isinstance(self._outcome, CopyIn)
        return self._outcome

    def copied(self) -> str:
        """Write what was copied; return the tag."""
        self._tag = self.copying.finish().tag
        return self._tag

    @property
    def is_endless(self) -> bool:
        """Whether rows come, or are taken, for as long as the client likes."""
        of = self._outcome.of if isinstance(self._outcome, CopyOut) else self._outcome
        return isinstance(of, Subscription | CopyIn)

    @property
    def sent(self) -> int:
        """How many rows were given so far."""
        return self._sent

    def close(self) -> None:
        """Let go of what it reads or follows."""
        of = self._outcome.of if isinstance(self._outcome, CopyOut) else self._outcome
        if isinstance(of, Subscription | Answer):
            of.close()

    def _begin(self, *, describe: bool) -> bytes:
        outcome = self._outcome = self._session.run(self.parsed, self._parameters)
        if isinstance(outcome, CopyIn):
            outcome.read_binary = binary.read
            form = int(outcome.format.name == "binary")
            return frame(CopyInResponse(form, (form,) * outcome.width))
        if isinstance(outcome, CopyOut):
            self._feed = feed_of(outcome.of, self._session.interrupt)
            schema = self._feed.schema
            form = int(outcome.format.name == "binary")
            head = frame(CopyOutResponse(form, (form,) * len(schema)))
            return head + before_rows(outcome.format, schema)
        if outcome.schema is None:
            return b""
        self._feed = feed_of(outcome, self._session.interrupt)
        self._formats = formats_of(self._formats, len(outcome.schema))
        if describe:
            return frame(row_description(outcome.schema, self._formats))
        if self._described is not None:
            check_same(self._described, outcome.schema)
        return b""

    def _rows(self, batch: pa.RecordBatch) -> bytes:
        assert self._feed is not None
        kinds = [column.type for column in self._feed.schema]
        if isinstance(self._outcome, CopyOut):
            form = self._outcome.format
            found = copy_rows(batch, kinds, form, self._feed.schema.names)
            is_first = form.name == "binary" and self._sent == batch.num_rows > 0
            return signed(found) if is_first else found
        return data_rows(batch, kinds, self._formats)

    def _end(self, head: bytes) -> Chunk:
        match self._outcome:
            case CopyOut():
                head += after_rows(self._outcome.format, self._sent) + frame(CopyOutDone())
                self._tag = f"COPY {self._sent}"
            case Result(tag):
                self._tag = tag
            case _:
                assert self._feed is not None
                self._tag = f"{self._feed.tag} {self._sent}"
        return Chunk(head, State.DONE, self._tag)


def row_description(schema: Schema, formats: Sequence[int]) -> RowDescription:
    """Return the columns of rows as clients are told of them."""
    if len(schema) > _COLUMNS:
        message = f"an answer of {len(schema)} columns is too wide"
        hint = f"there may be {_COLUMNS}: ask for fewer"
        raise StatementError(message, code="54011", hint=hint)
    return RowDescription(
        tuple(
            ColumnDescription(
                c.name, 0, 0, oid_of(c.type), size_of(c.type), modifier_of(c.type), form
            )
            for c, form in zip(schema, formats, strict=True)
        )
    )


@lru_cache(maxsize=1_024)
def described(schema: Schema, formats: tuple[int, ...]) -> bytes:
    """Return ``row_description`` as bytes, made once."""
    return frame(row_description(schema, formats))


def formats_of(given: Sequence[int], columns: int) -> tuple[int, ...]:
    """Return a format for each column: none given is text, one is for all."""
    if any(form not in {0, 1} for form in given):
        message = "a format is 0 (text) or 1 (binary)"
        raise ProtocolViolation(message)
    if len(given) <= 1:
        return (given[0] if given else 0,) * columns
    if len(given) != columns:
        message = f"bind message has {len(given)} result formats but query has {columns} columns"
        raise ProtocolViolation(message)
    return tuple(given)


def check_same(described: Schema, found: Schema) -> None:
    """Refuse to give other columns than were described."""
    before, after = ([(c.name, oid_of(c.type)) for c in s] for s in (described, found))
    if before != after:
        message = "cached plan must not change result type"
        hint = "prepare the statement again: something that it reads was changed"
        raise NotSupported(message, hint=hint)
