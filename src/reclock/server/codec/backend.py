"""Messages of the server.

Rows are made many at a time (``rows``); ``DataRow`` is one of them, as clients read it.

Tests: tests/server/codec/test_messages.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.errors import ProtocolViolation
from reclock.server.codec.field import (
    BYTE,
    INT16,
    INT32,
    LETTER,
    REST,
    TEXT,
    UINT16,
    UINT32,
    VALUE,
    Many,
    Together,
    UntilZero,
)
from reclock.server.codec.message import Message, letters, read

if TYPE_CHECKING:
    from reclock.server.codec.field import Fields

AUTHENTICATED: Final = 0
SASL: Final = 10
SASL_CONTINUE: Final = 11
SASL_FINAL: Final = 12


@dataclass(frozen=True, slots=True)
class Authentication(Message, letter="R", layout=(INT32, REST)):
    """It is settled who you are (``AUTHENTICATED``), or what is asked of you."""

    kind: int
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class BackendKeyData(Message, letter="K", layout=(UINT32, REST)):
    """What a cancel request must name."""

    process: int
    key: bytes


@dataclass(frozen=True, slots=True)
class NegotiateProtocolVersion(Message, letter="v", layout=(INT32, Many(TEXT, INT32))):
    """The newest version that is spoken here, major and minor, and options that are not known."""

    version: int
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParameterStatus(Message, letter="S", layout=(TEXT, TEXT)):
    """The value of a setting that clients care about."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ReadyForQuery(Message, letter="Z", layout=(LETTER,)):
    """Ask: outside of a transaction (I), inside one (T), or inside one that has failed (E)."""

    status: str


@dataclass(frozen=True, slots=True)
class ParseComplete(Message, letter="1"):
    """A statement is prepared."""


@dataclass(frozen=True, slots=True)
class BindComplete(Message, letter="2"):
    """A portal is made."""


@dataclass(frozen=True, slots=True)
class CloseComplete(Message, letter="3"):
    """A statement or portal is forgotten."""


@dataclass(frozen=True, slots=True)
class NoData(Message, letter="n"):
    """A statement that gives no rows."""


@dataclass(frozen=True, slots=True)
class ParameterDescription(Message, letter="t", layout=(Many(UINT32, UINT16),)):
    """The types of a statement's parameters."""

    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """A column of a row: ``table`` and ``number`` are 0 if it is computed."""

    name: str
    table: int
    number: int
    type: int
    size: int
    modifier: int
    format: int


class _Columns:
    """A list of column descriptions."""

    _many = Many(Together((TEXT, UINT32, INT16, UINT32, INT16, INT32, INT16)), INT16)

    def read(self, fields: Fields) -> tuple[ColumnDescription, ...]:
        """Read a list."""
        return tuple(ColumnDescription(*parts) for parts in self._many.read(fields))

    def write(self, value: tuple[ColumnDescription, ...]) -> bytes:
        """Return a list as bytes."""
        plain = tuple(
            (c.name, c.table, c.number, c.type, c.size, c.modifier, c.format) for c in value
        )
        return self._many.write(plain)


@dataclass(frozen=True, slots=True)
class RowDescription(Message, letter="T", layout=(_Columns(),)):
    """The columns of the rows that follow."""

    columns: tuple[ColumnDescription, ...]


@dataclass(frozen=True, slots=True)
class DataRow(Message, letter="D", layout=(Many(VALUE, INT16),)):
    """A row."""

    values: tuple[bytes | None, ...]


@dataclass(frozen=True, slots=True)
class CommandComplete(Message, letter="C", layout=(TEXT,)):
    """A statement is done; the tag says what it did."""

    tag: str


@dataclass(frozen=True, slots=True)
class EmptyQueryResponse(Message, letter="I"):
    """There was no statement in the text."""


@dataclass(frozen=True, slots=True)
class PortalSuspended(Message, letter="s"):
    """As many rows as were asked for: there may be more."""


@dataclass(frozen=True, slots=True)
class CopyInResponse(Message, letter="G", layout=(BYTE, Many(INT16, INT16))):
    """Send what is to be copied, in these formats."""

    format: int
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CopyOutResponse(Message, letter="H", layout=(BYTE, Many(INT16, INT16))):
    """Here comes what is copied, in these formats."""

    format: int
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CopyBothResponse(Message, letter="W", layout=(BYTE, Many(INT16, INT16))):
    """Copying in both directions, as replication does."""

    format: int
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CopyOutData(Message, letter="d", layout=(REST,)):
    """Some bytes of what is copied."""

    data: bytes


@dataclass(frozen=True, slots=True)
class CopyOutDone(Message, letter="c"):
    """The end of what is copied."""


@dataclass(frozen=True, slots=True)
class ErrorResponse(Message, letter="E", layout=(UntilZero(Together((LETTER, TEXT))),)):
    """An error: parts of it by letter, such as C for its SQLSTATE and M for its message."""

    parts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NoticeResponse(Message, letter="N", layout=(UntilZero(Together((LETTER, TEXT))),)):
    """Something to know; its parts are those of an error."""

    parts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NotificationResponse(Message, letter="A", layout=(INT32, TEXT, TEXT)):
    """A notification of a channel."""

    process: int
    channel: str
    payload: str


@dataclass(frozen=True, slots=True)
class FunctionCallResponse(Message, letter="V", layout=(VALUE,)):
    """What a function gave."""

    value: bytes | None


BACKEND: Final = letters(
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, ReadyForQuery,
    ParseComplete, BindComplete, CloseComplete, NoData, ParameterDescription, RowDescription,
    DataRow, CommandComplete, EmptyQueryResponse, PortalSuspended, CopyInResponse,
    CopyOutResponse, CopyBothResponse, CopyOutData, CopyOutDone, ErrorResponse, NoticeResponse,
    NotificationResponse, FunctionCallResponse,
)  # fmt: skip


def read_backend(letter: str, body: bytes) -> Message:
    """Return a message that a server sent, as tests of a server need it."""
    kind = BACKEND.get(letter)
    if kind is None:
        message = f"invalid backend message type {ord(letter)}"
        raise ProtocolViolation(message)
    return read(kind, body)
