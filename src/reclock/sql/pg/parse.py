"""From the tokens of a query to a statement, if it is over PostgreSQL's catalog.

Tests: tests/sql/pg/test_recognise.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from reclock.errors import InvalidSyntax
from reclock.sql.parse.dialect import parse_tokens
from reclock.sql.pg.recognise import is_over_catalog, mentions_catalog, readable
from reclock.sql.pg.translate import translate

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor
    from reclock.sql.statement.catalog_query import CatalogQuery


def catalog_query(cursor: Cursor) -> CatalogQuery | None:
    """Return the query that follows, if it is over the catalog; else nothing was read."""
    tokens = cursor.ahead()
    if not mentions_catalog(cursor.text, tokens):
        return None
    try:
        query = parse_tokens(readable(tokens), cursor.text)
    except InvalidSyntax:
        return None  # or AS OF follows it: who reads other queries says what is wrong
    for name in query.find_all(exp.Identifier):
        if not name.quoted:
            name.set("this", name.name.lower())
    if not is_over_catalog(query):
        return None
    cursor.rest()
    return translate(query)
