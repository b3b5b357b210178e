"""A stream of bytes, cut into messages.

``Frames`` is fed what has come and gives the messages that are whole. A length that no message
can have, or that is longer than a connection may send before it is known who it is, ends the
connection at once: ``ProtocolViolation``, before anything of that length is kept. Memory: the
bytes of one message, at most ``limit`` of them, and what was fed beyond it.

Tests: tests/server/codec/test_frames.py.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from reclock.errors import ProtocolViolation

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.server.codec.message import Message

FIRST_LIMIT: Final = 10_000
"""The longest first message, and the longest one before it is known who sends it."""

_LENGTH: Final = struct.Struct("!i")

LIMIT: Final = 1 << 28
"""The longest message afterwards: longer than any value, shorter than memory."""


class Frames:
    """Cuts bytes into messages; ``limit`` may be changed on the way."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.limit = FIRST_LIMIT

    @property
    def waiting(self) -> int:
        """How many bytes were fed and not given."""
        return len(self._bytes)

    def feed(self, data: bytes) -> None:
        """Add what has come."""
        self._bytes += data

    def first(self, read: Callable[[bytes], Message]) -> Message | None:
        """Return a message without a letter; None if it is not whole."""
        body = self._body(0)
        return None if body is None else read(body)

    def next(self, read: Callable[[str, bytes], Message]) -> Message | None:
        """Return a message with a letter; None if it is not whole."""
        if not self._bytes:
            return None
        letter = chr(self._bytes[0])
        body = self._body(1)
        return None if body is None else read(letter, body)

    def _body(self, head: int) -> bytes | None:
        if len(self._bytes) < head + 4:
            return None
        (length,) = _LENGTH.unpack_from(self._bytes, head)
        if not 4 <= length <= self.limit:
            message = "invalid length of message"
            detail = f"{length} bytes, where 4 to {self.limit} can be"
            raise ProtocolViolation(message, detail=detail)
        end = head + length
        if len(self._bytes) < end:
            return None
        body = bytes(self._bytes[head + 4 : end])
        del self._bytes[:end]
        return body
