"""DECLARE, FETCH and CLOSE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.statement.catalog_query import CatalogQuery
    from reclock.sql.statement.select import SelectStatement
    from reclock.sql.statement.subscribe import Subscribe


@dataclass(frozen=True, slots=True)
class Declare:
    """``DECLARE name CURSOR [WITH HOLD] FOR query | SUBSCRIBE …``."""

    name: str
    of: SelectStatement | CatalogQuery | Subscribe
    hold: bool = False


@dataclass(frozen=True, slots=True)
class Fetch:
    """``FETCH [count | ALL] [FROM] name [WITH (timeout = '…')]``; a count of None is all."""

    name: str
    count: int | None = 1
    timeout_ms: int = 0


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """``CLOSE name | ALL``; None is all."""

    name: str | None
