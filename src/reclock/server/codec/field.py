"""Parts of messages: how a number, a text or a list is written, and read back.

Invariant: ``read(write(value)) == value`` for every value of a field, and reading bytes that
no writer made either gives a value or raises ``ProtocolViolation``: never anything else, and
never more memory than the bytes there are. Cost: linear in the bytes.

Tests: tests/server/codec/test_messages.py.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from reclock.errors import ProtocolViolation

T = TypeVar("T")


class Fields:
    """Reads the parts of one message, from left to right."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes have not been read."""
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        """Read ``count`` bytes."""
        if not 0 <= count <= self.left:
            message = "insufficient data left in message"
            raise ProtocolViolation(message)
        self._at += count
        return self._data[self._at - count : self._at]

    def cstring(self) -> str:
        """Read a text that ends with a zero byte."""
        end = self._data.find(b"\0", self._at)
        if end < 0:
            message = "invalid string in message"
            raise ProtocolViolation(message)
        text = self.take(end - self._at)
        self._at += 1
        try:
            return text.decode()
        except UnicodeDecodeError as cause:
            message = 'invalid byte sequence for encoding "UTF8"'
            raise ProtocolViolation(message, detail=str(cause), code="22021") from cause

    def ends_list(self) -> bool:
        """Return whether a zero byte comes next, and read it if so."""
        ends = self.take(1) == b"\0"
        self._at -= not ends
        return ends

    def end(self) -> None:
        """Refuse anything that is left."""
        if self.left:
            message = "invalid message format"
            raise ProtocolViolation(message, detail=f"{self.left} bytes too many")


class Field(Protocol[T]):
    """A part of a message."""

    def read(self, fields: Fields) -> T:
        """Read a value."""
        ...

    def write(self, value: T) -> bytes:
        """Return a value as bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Number:
    """A number in network byte order, as ``struct`` describes it."""

    layout: str

    def read(self, fields: Fields) -> int:
        """Read a number."""
        (value,) = struct.unpack(self.layout, fields.take(struct.calcsize(self.layout)))
        return int(value)

    def write(self, value: int) -> bytes:
        """Return a number as bytes."""
        return struct.pack(self.layout, value)


class Letter:
    """One byte that stands for a kind of thing."""

    def read(self, fields: Fields) -> str:
        """Read a letter."""
        return fields.take(1).decode("latin-1")

    def write(self, value: str) -> bytes:
        """Return a letter as a byte."""
        return value.encode("latin-1")


class Text:
    """A text that ends with a zero byte."""

    def read(self, fields: Fields) -> str:
        """Read a text."""
        return fields.cstring()

    def write(self, value: str) -> bytes:
        """Return a text as bytes; it cannot have a zero byte inside."""
        return value.replace("\0", "").encode(errors="replace") + b"\0"


class Rest:
    """All bytes that are left."""

    def read(self, fields: Fields) -> bytes:
        """Read what is left."""
        return fields.take(fields.left)

    def write(self, value: bytes) -> bytes:
        """Return the bytes."""
        return value


class Value:
    """Bytes with their length before them; None, which is NULL, has the length -1."""

    def read(self, fields: Fields) -> bytes | None:
        """Read a value."""
        length = INT32.read(fields)
        return None if length == -1 else fields.take(length)

    def write(self, value: bytes | None) -> bytes:
        """Return a value as bytes."""
        return b"\xff\xff\xff\xff" if value is None else INT32.write(len(value)) + value


@dataclass(frozen=True, slots=True)
class Many(Generic[T]):
    """A list with its length before it."""

    element: Field[T]
    count: Number

    def read(self, fields: Fields) -> tuple[T, ...]:
        """Read a list; every element has bytes, so no length can ask for much memory."""
        count = self.count.read(fields)
        if not 0 <= count <= fields.left:
            message = "insufficient data left in message"
            raise ProtocolViolation(message)
        return tuple(self.element.read(fields) for _ in range(count))

    def write(self, value: tuple[T, ...]) -> bytes:
        """Return a list as bytes."""
        return self.count.write(len(value)) + b"".join(map(self.element.write, value))


@dataclass(frozen=True, slots=True)
class UntilZero(Generic[T]):
    """A list that ends with a zero byte; its elements do not begin with one."""

    element: Field[T]

    def read(self, fields: Fields) -> tuple[T, ...]:
        """Read a list."""
        found = []
        while not fields.ends_list():
            found.append(self.element.read(fields))
        return tuple(found)

    def write(self, value: tuple[T, ...]) -> bytes:
        """Return a list as bytes."""
        return b"".join(map(self.element.write, value)) + b"\0"


@dataclass(frozen=True, slots=True)
class Together:
    """Several parts, as a tuple."""

    parts: tuple[Field[Any], ...]

    def read(self, fields: Fields) -> tuple[Any, ...]:
        """Read each part."""
        return tuple(part.read(fields) for part in self.parts)

    def write(self, value: tuple[Any, ...]) -> bytes:
        """Return all parts as bytes."""
        return b"".join(p.write(v) for p, v in zip(self.parts, value, strict=True))


INT16: Final = Number("!h")
UINT16: Final = Number("!H")
INT32: Final = Number("!i")
UINT32: Final = Number("!I")
BYTE: Final = Number("!B")
LETTER: Final = Letter()
TEXT: Final = Text()
REST: Final = Rest()
VALUE: Final = Value()
