"""COMMENT ON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Name


@dataclass(frozen=True, slots=True)
class Comment:
    """``COMMENT ON kind name IS 'text' | NULL``, ``COMMENT ON COLUMN relation.column IS …``.

    ``column`` None is the object itself; ``text`` None takes the comment away.
    """

    kind: str
    name: Name
    column: str | None = None
    text: str | None = None
