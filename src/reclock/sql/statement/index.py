"""CREATE INDEX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Expression, Name


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """``CREATE [UNIQUE] INDEX [IF NOT EXISTS] [name] ON relation (expressions) [WITH (…)]``.

    A ``unique`` one may have several rows with NULL if ``nulls_distinct``.
    """

    name: Name | None
    relation: Name
    keys: tuple[Expression, ...]
    if_not_exists: bool = False
    retain_history_ms: int | None = None
    unique: bool = False
    nulls_distinct: bool = True
