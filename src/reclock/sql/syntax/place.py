"""The place of syntax in its text, for errors that are found after parsing."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from reclock.errors import StatementError

if TYPE_CHECKING:
    from collections.abc import Iterator


def place_of(syntax: object) -> int | None:
    """Return where ``syntax`` begins: the least position of anything in it.

    >>> from reclock.sql.syntax.expression import Name, Operator
    >>> place_of(Operator("+", (Name(("a",), 8), Name(("b",), 12))))
    8
    """
    found: list[int] = []
    waiting = [syntax]
    while waiting:
        at = waiting.pop()
        if isinstance(at, tuple):
            waiting += at
        elif is_dataclass(at) and not isinstance(at, type):
            own = getattr(at, "position", None)
            found += [] if own is None else [own]
            waiting += [getattr(at, field.name) for field in fields(at)]
    return min(found, default=None)


@contextmanager
def placed(*syntax: object) -> Iterator[None]:
    """Say where ``syntax`` stands in an error of the block that does not say it itself."""
    try:
        yield
    except StatementError as error:
        if error.position is None:
            error.position = place_of(syntax)
        raise


@contextmanager
def placed_at(position: int) -> Iterator[None]:
    """Say that errors of the block, which reads a text of its own, stand at ``position``."""
    try:
        yield
    except StatementError as error:
        error.position = position
        raise
