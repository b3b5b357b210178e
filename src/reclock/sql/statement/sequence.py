"""CREATE and ALTER SEQUENCE, and what is said of the sequence of an identity column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Name
    from reclock.sql.types import Type


@dataclass(frozen=True, slots=True)
class SequenceOptions:
    """What is said of a sequence; None is nothing.

    ``defaults`` names bounds that were said to be those of the type: NO MINVALUE, NO MAXVALUE.
    ``restarts`` is RESTART, to the start if ``restart`` is None. ``owned_by`` of () is NONE.
    """

    type: Type | None = None
    increment: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    start: int | None = None
    cache: int | None = None
    cycle: bool | None = None
    defaults: frozenset[str] = frozenset()
    restarts: bool = False
    restart: int | None = None
    owned_by: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CreateSequence:
    """``CREATE SEQUENCE [IF NOT EXISTS] name …``."""

    name: Name
    options: SequenceOptions
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSequence:
    """``ALTER SEQUENCE [IF EXISTS] name …``."""

    name: Name
    options: SequenceOptions
    if_exists: bool = False
