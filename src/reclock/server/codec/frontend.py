"""Messages of the client.

The first message of a connection has no letter: it is a ``Startup``, or asks for something
before that (``SslRequest``, ``GssEncRequest``, ``CancelRequest``). What answers a question of
authentication is one message, ``AuthenticationReply``, whose bytes mean what was asked for.

Tests: tests/server/codec/test_messages.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reclock.errors import ProtocolViolation
from reclock.server.codec.field import (
    INT16,
    INT32,
    LETTER,
    REST,
    TEXT,
    UINT16,
    UINT32,
    VALUE,
    Fields,
    Many,
    Together,
    UntilZero,
)
from reclock.server.codec.message import Message, letters, read, write

PROTOCOL_3: Final = 3 << 16
_CANCEL: Final = (1234 << 16) | 5678
_SSL: Final = (1234 << 16) | 5679
_GSS_ENC: Final = (1234 << 16) | 5680


@dataclass(frozen=True, slots=True)
class Startup(Message, layout=(UINT32, UntilZero(Together((TEXT, TEXT))))):
    """The beginning of a session: the version, and parameters such as user and database."""

    version: int
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SslRequest(Message):
    """Ask to go on in TLS."""


@dataclass(frozen=True, slots=True)
class GssEncRequest(Message):
    """Ask to go on encrypted by GSSAPI."""


@dataclass(frozen=True, slots=True)
class CancelRequest(Message, layout=(UINT32, REST)):
    """Cancel what another connection is doing; ``key`` is what that one was told."""

    process: int
    key: bytes


@dataclass(frozen=True, slots=True)
class AuthenticationReply(Message, letter="p", layout=(REST,)):
    """A password, or a step of SASL: see ``SaslInitial``."""

    data: bytes


@dataclass(frozen=True, slots=True)
class SaslInitial(Message, layout=(TEXT, VALUE)):
    """The bytes of the first reply in SASL: the mechanism chosen, and its first step."""

    mechanism: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Query(Message, letter="Q", layout=(TEXT,)):
    """Run these statements."""

    sql: str


@dataclass(frozen=True, slots=True)
class Parse(Message, letter="P", layout=(TEXT, TEXT, Many(UINT32, UINT16))):
    """Prepare a statement; ``types`` are the OIDs of its parameters, 0 for not known."""

    name: str
    sql: str
    types: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Bind(
    Message,
    letter="B",
    layout=(TEXT, TEXT, Many(INT16, UINT16), Many(VALUE, UINT16), Many(INT16, UINT16)),
):
    """Give a prepared statement its parameters; formats are 0 (text) or 1 (binary)."""

    portal: str
    statement: str
    parameter_formats: tuple[int, ...] = ()
    parameters: tuple[bytes | None, ...] = ()
    result_formats: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Describe(Message, letter="D", layout=(LETTER, TEXT)):
    """Ask what a statement (S) takes and gives, or a portal (P) gives."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Execute(Message, letter="E", layout=(TEXT, INT32)):
    """Run a portal, for at most ``limit`` rows; 0 is all."""

    portal: str
    limit: int = 0


@dataclass(frozen=True, slots=True)
class Close(Message, letter="C", layout=(LETTER, TEXT)):
    """Forget a statement (S) or a portal (P)."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Flush(Message, letter="H"):
    """Send what has been answered so far."""


@dataclass(frozen=True, slots=True)
class Sync(Message, letter="S"):
    """The end of a group of messages: after an error, what comes next counts again."""


@dataclass(frozen=True, slots=True)
class FunctionCall(
    Message, letter="F", layout=(UINT32, Many(INT16, UINT16), Many(VALUE, UINT16), INT16)
):
    """Call a function by its OID."""

    function: int
    argument_formats: tuple[int, ...]
    arguments: tuple[bytes | None, ...]
    result_format: int


@dataclass(frozen=True, slots=True)
class CopyData(Message, letter="d", layout=(REST,)):
    """Some bytes of a COPY."""

    data: bytes


@dataclass(frozen=True, slots=True)
class CopyDone(Message, letter="c"):
    """The end of a COPY."""


@dataclass(frozen=True, slots=True)
class CopyFail(Message, letter="f", layout=(TEXT,)):
    """The client cannot go on with a COPY."""

    reason: str


@dataclass(frozen=True, slots=True)
class Terminate(Message, letter="X"):
    """The end of the session."""


@dataclass(frozen=True, slots=True)
class Malformed(Message):
    """A message that was whole but cannot be read: what comes after it can."""

    of: str
    error: ProtocolViolation


FRONTEND: Final = letters(
    AuthenticationReply, Query, Parse, Bind, Describe, Execute, Close, Flush, Sync,
    FunctionCall, CopyData, CopyDone, CopyFail, Terminate,
)  # fmt: skip


def read_first(body: bytes) -> Message:
    """Return the first message of a connection."""
    fields = Fields(body)
    match UINT32.read(fields):
        case code if code == _SSL:
            return read(SslRequest, body[4:])
        case code if code == _GSS_ENC:
            return read(GssEncRequest, body[4:])
        case code if code == _CANCEL:
            return read(CancelRequest, body[4:])
        case version if version >> 16 == 3:
            return read(Startup, body)
        case version:
            message = f"unsupported frontend protocol {version >> 16}.{version & 0xFFFF}"
            raise ProtocolViolation(message, hint="use protocol 3.0", code="0A000")


def write_first(message: Message) -> bytes:
    """Return the first message of a connection as bytes."""
    codes = {SslRequest: _SSL, GssEncRequest: _GSS_ENC, CancelRequest: _CANCEL}
    code = codes.get(type(message))
    body = write(message) if code is None else UINT32.write(code) + write(message)
    return INT32.write(len(body) + 4) + body


def read_frontend(letter: str, body: bytes) -> Message:
    """Return a message that a client sent; ``Malformed`` if its letter is right and no more."""
    kind = FRONTEND.get(letter)
    if kind is None:
        message = f"invalid frontend message type {ord(letter)}"
        raise ProtocolViolation(message)
    try:
        return read(kind, body)
    except ProtocolViolation as error:
        return Malformed(letter, error)
