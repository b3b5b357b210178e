"""CREATE TABLE, with columns or as a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.statement.column import ColumnList
    from reclock.sql.syntax.expression import Name
    from reclock.sql.syntax.query import Query


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``CREATE TABLE [IF NOT EXISTS] name (…) [WITH (timeline = '…', RETAIN HISTORY FOR '…')]``."""

    name: Name
    columns: ColumnList
    if_not_exists: bool = False
    timeline: str | None = None
    retain_history_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """``CREATE TABLE [IF NOT EXISTS] name [(columns)] AS query [WITH [NO] DATA]``."""

    name: Name
    query: Query
    columns: tuple[str, ...] = ()
    if_not_exists: bool = False
    with_data: bool = True
