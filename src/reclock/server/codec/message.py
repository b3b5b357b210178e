"""Messages: a letter, and parts that have a layout.

A message is a frozen value; its class says which letter and which fields it has, in the order
of its attributes, and so how it is written and read.

Tests: tests/server/codec/test_messages.py.
"""

from __future__ import annotations

from dataclasses import fields as attributes
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from reclock.server.codec.field import INT32, Fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.server.codec.field import Field


class Message:
    """The base of all messages; ``layout`` has a field for each attribute."""

    __slots__ = ()

    letter: ClassVar[str] = ""
    layout: ClassVar[tuple[Field[Any], ...]] = ()

    def __init_subclass__(cls, *, letter: str = "", layout: tuple[Field[Any], ...] = ()) -> None:
        cls.letter = letter or cls.letter
        cls.layout = layout or cls.layout


M = TypeVar("M", bound=Message)


def write(message: Message) -> bytes:
    """Return what follows a message's letter and length."""
    names = (attribute.name for attribute in attributes(message))  # type: ignore[arg-type]
    pairs = zip(message.layout, names, strict=True)
    return b"".join(field.write(getattr(message, name)) for field, name in pairs)


def frame(message: Message) -> bytes:
    """Return a message as bytes, with its letter and length."""
    body = write(message)
    return message.letter.encode("latin-1") + INT32.write(len(body) + 4) + body


@lru_cache(maxsize=1_024)
def framed(message: Message) -> bytes:
    """Return ``frame`` of a message that is sent often: made once."""
    return frame(message)


def read(kind: type[M], body: bytes) -> M:
    """Return the message of a kind whose parts are ``body``."""
    fields = Fields(body)
    parts = [field.read(fields) for field in kind.layout]
    fields.end()
    return kind(*parts)


def letters(*kinds: type[Message]) -> Mapping[str, type[Message]]:
    """Return messages by their letters."""
    return {kind.letter: kind for kind in kinds}
