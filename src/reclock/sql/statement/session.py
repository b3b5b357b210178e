"""Prepared statements, and the statements with which pools reset a connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.statement.parsed import Parsed
    from reclock.sql.syntax.expression import Expression
    from reclock.sql.types import Type


@dataclass(frozen=True, slots=True)
class Prepare:
    """``PREPARE name [(types)] AS statement``."""

    name: str
    types: tuple[Type, ...]
    of: Parsed


@dataclass(frozen=True, slots=True)
class Execute:
    """``EXECUTE name [(arguments)]``."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Deallocate:
    """``DEALLOCATE [PREPARE] name | ALL``; None is all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    """``DISCARD ALL | PLANS | SEQUENCES | TEMP``: one of these words, in lower case."""

    what: str


@dataclass(frozen=True, slots=True)
class Unlisten:
    """``UNLISTEN channel | *``: nothing listens, so there is nothing to do."""
