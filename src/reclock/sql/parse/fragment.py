"""Queries and expressions that stand inside our own statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import InvalidSyntax
from reclock.sql.parse.dialect import parse_tokens, tokenize
from reclock.sql.parse.query import convert_expression, convert_query

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

    from reclock.sql.syntax.expression import Expression, SortItem
    from reclock.sql.syntax.query import Query

QUERY_WORDS = ("SELECT", "WITH", "VALUES", "TABLE", "(")


def query_of(tokens: list[Token], text: str) -> Query:
    """Parse ``tokens`` as a query."""
    if not tokens or str(tokens[0].text).upper() not in QUERY_WORDS:
        near = f'or near "{tokens[0].text}"' if tokens else "end of input"
        position = int(tokens[0].start) + 1 if tokens else len(text) + 1
        message = f"syntax error at {near}"
        hint = "write a query: SELECT …, VALUES … or WITH …"
        raise InvalidSyntax(message, detail="expected a query", hint=hint, position=position)
    return convert_query(parse_tokens(tokens, text))


def expression_of(tokens: list[Token], text: str) -> Expression:
    """Parse ``tokens`` as one scalar expression."""
    return convert_expression(parse_tokens(tokens, text))


def sort_items_of(tokens: list[Token], text: str) -> tuple[SortItem, ...]:
    """Parse ``tokens`` as the entries of an ORDER BY."""
    first, last = int(tokens[0].start), int(tokens[-1].end)
    probe = f"SELECT * ORDER BY {text[first : last + 1]}"
    return convert_query(parse_tokens(tokenize(probe), probe)).order_by
