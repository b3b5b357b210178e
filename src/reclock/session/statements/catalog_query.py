"""Queries over PostgreSQL's catalog, with all their rows.

Tests: tests/server/pg_catalog/test_answer.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.rows.result import Result

if TYPE_CHECKING:
    from reclock.session.statements.context import Context
    from reclock.sql.statement import CatalogQuery


def catalog_select(context: Context, query: CatalogQuery) -> Result:
    """Answer a query over the catalog, with all its rows."""
    answer = context.core.pg.answer(context, query)
    rows = answer.rows()
    names = answer.schema.names
    return Result(f"SELECT {len(rows)}", names, rows, answer.timestamp, answer.schema)
