"""CREATE VIEW and CREATE MATERIALIZED VIEW."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.syntax.expression import Name
    from reclock.sql.syntax.query import Query


@dataclass(frozen=True, slots=True)
class CreateView:
    """``CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name [(columns)] AS query``."""

    name: Name
    query: Query
    columns: tuple[str, ...] = ()
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class RefreshEvery:
    """``REFRESH EVERY '…' [ALIGNED TO time]``."""

    interval_ms: int
    aligned_to: int | str | None = None


@dataclass(frozen=True, slots=True)
class Refresh:
    """The refresh options of a view that is not refreshed on every commit."""

    every: tuple[RefreshEvery, ...] = ()
    at: tuple[int | str, ...] = ()
    at_creation: bool = False


@dataclass(frozen=True, slots=True)
class CreateMaterializedView:
    """``CREATE [OR REPLACE] MATERIALIZED VIEW [IF NOT EXISTS] name [(…)] [WITH (…)] AS query``."""

    name: Name
    query: Query
    columns: tuple[str, ...] = ()
    if_not_exists: bool = False
    retain_history_ms: int | None = None
    allow_full_recompute: bool = False
    refresh: Refresh | None = None
    or_replace: bool = False
