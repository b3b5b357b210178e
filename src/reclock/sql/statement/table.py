"""CREATE TABLE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.statement.column import ColumnList
    from reclock.sql.syntax.expression import Name


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``CREATE TABLE [IF NOT EXISTS] name (…) [WITH (timeline = '…', RETAIN HISTORY FOR '…')]``."""

    name: Name
    columns: ColumnList
    if_not_exists: bool = False
    timeline: str | None = None
    retain_history_ms: int | None = None
