"""Parts of the statements that made objects, as text.

Tests: tests/sql/pg/test_relations.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from reclock.sql.interval import parse_interval
from reclock.sql.parse.dialect import tokenize
from reclock.sql.syntax import expression as e

if TYPE_CHECKING:
    from reclock.sql.types import Written


def query_text(sql: str) -> str:
    """Return the query of a CREATE [MATERIALIZED] VIEW, as it was written.

    >>> query_text("CREATE VIEW v (a) AS SELECT b AS c FROM t")
    'SELECT b AS c FROM t'
    """
    depth = 0
    for token in tokenize(sql):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.token_type == TokenType.ALIAS:
            return sql[token.end + 1 :].strip().rstrip(";")
    return sql


def default_text(default: e.Expression, kind: Written) -> str:  # noqa: PLR0911 - one per kind
    """Return a default, which is a literal, as text.

    >>> from reclock.sql.types import TEXT
    >>> default_text(e.StringText("it's"), TEXT)
    "'it''s'::text"
    """
    match default:
        case e.IntervalText(text, qualifier):
            return f"'{parse_interval(text, qualifier)}'::interval"
        case e.StringText(text):
            quoted = text.replace("'", "''")
            return f"'{quoted}'::{kind}"
        case e.NumberText(text):
            return text
        case e.BooleanText(value):
            return str(value).lower()
        case e.CastText(operand, inner):
            return default_text(operand, inner)
        case e.Operator(_, (operand,)):
            return f"-{default_text(operand, kind)}"
    return f"NULL::{kind}"
