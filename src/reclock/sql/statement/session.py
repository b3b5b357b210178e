"""What is done with prepared statements, and how pools reset a connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Expression


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
