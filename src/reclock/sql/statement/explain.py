"""EXPLAIN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reclock.sql.statement.catalog_query import CatalogQuery
    from reclock.sql.statement.index import CreateIndex
    from reclock.sql.statement.select import SelectStatement
    from reclock.sql.statement.subscribe import Subscribe
    from reclock.sql.statement.view import CreateMaterializedView, CreateView
    from reclock.sql.syntax.expression import Name


@dataclass(frozen=True, slots=True)
class ExplainPlan:
    """``EXPLAIN [ANALYZE | PLAN] [FOR] query | SUBSCRIBE … | CREATE … | [MATERIALIZED] VIEW name``.

    What is created is a view, a materialized view or an index. With ``analyze`` a query is run, and
    a materialized view says what its operators took.
    """

    of: (
        SelectStatement
        | CatalogQuery
        | Subscribe
        | CreateView
        | CreateMaterializedView
        | CreateIndex
        | Name
    )
    analyze: bool = False


@dataclass(frozen=True, slots=True)
class ExplainTimestamp:
    """``EXPLAIN TIMESTAMP FOR query``."""

    of: SelectStatement | Subscribe
