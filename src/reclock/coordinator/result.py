"""What a statement gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reclock.sql.schema import Schema
    from reclock.time.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Result:
    """Columns and rows of a query, or what a statement did.

    ``tag`` is PostgreSQL's command tag. ``timestamp`` is the time a read was answered at,
    or a write committed at; None for statements that do neither.
    """

    tag: str
    columns: tuple[str, ...] = ()
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    timestamp: Timestamp | None = None
    schema: Schema | None = field(default=None, repr=False)
    """The names and SQL types of the columns, of a query."""
