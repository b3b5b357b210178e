"""Recognises queries over PostgreSQL's catalog.

A query is one if it reads relations of ``pg_catalog`` or ``information_schema``, or reads nothing
and calls what only the catalog has: a function, or a cast to ``regclass`` and its like. One that
reads the catalog and other relations is refused: rows and their descriptions are answered by
different means, without a common time.

Cost: a few comparisons for every query; only a text with a word of the catalog is looked at closer.

Tests: tests/sql/pg/test_recognise.py.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from reclock.errors import NotSupported
from reclock.sql.parse.node import position_of
from reclock.sql.pg.functions import EFFECTS, MACROS, OWN, TABLE_FUNCTIONS
from reclock.sql.pg.relations import INFORMATION_SCHEMA, PG_CATALOG, PG_RELATIONS, find_relation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SCHEMAS: Final = (PG_CATALOG, INFORMATION_SCHEMA)
_FUNCTIONS: Final = (
    (MACROS.keys() - OWN - {"array_length", "array_remove"}) | {"pg_backend_pid"} | EFFECTS
)
"""Functions that make a query without relations one over the catalog."""

_NAMES: Final = frozenset(name for schema, name in PG_RELATIONS if schema == PG_CATALOG)
WORDS: Final = frozenset({*SCHEMAS, *_NAMES, *_FUNCTIONS})
PARTS: Final = (
    "pg_", "information_schema", "reg", "oid", "_privilege", "format_type", "_description",
    "quote_", "parse_ident", "current_schemas", "array_", "getdatabaseencoding", "inet_",
)  # fmt: skip
"""Without one of these in it no text has a word of the catalog: a few comparisons say so."""

_TYPES: Final = TokenType.OBJECT_IDENTIFIER
_STATEMENTS: Final = {
    TokenType.SELECT, TokenType.INSERT, TokenType.UPDATE, TokenType.DELETE, TokenType.TABLE,
}  # fmt: skip
_ENDS: Final = {TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN, None}


def mentions_catalog(text: str, tokens: Sequence[Token]) -> bool:
    """Return whether a query may be over the catalog, by its words."""
    lowered = text.lower()
    return any(part in lowered for part in PARTS) and any(
        token.token_type == _TYPES or token.text.lower() in WORDS
        for token in tokens
        if token.token_type != TokenType.STRING
    )


def readable(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens of a query with what sqlglot does not read as it does read it.

    That is ``oid[]``, an array of an unsigned number, and names that are words of statements.
    """
    found = list(tokens)
    for place, (token, after) in enumerate(pairwise((*tokens, None))):
        assert token is not None
        follows = None if after is None else after.token_type
        if token.token_type == _TYPES and follows == TokenType.L_BRACKET:
            found[place] = _like(token, TokenType.UINT, "uint")
        elif token.token_type in _STATEMENTS and follows in _ENDS and _is_alias(tokens, place):
            found[place] = _like(token, TokenType.IDENTIFIER, token.text.lower())
    return found


def _is_alias(tokens: Sequence[Token], place: int) -> bool:
    return place > 0 and tokens[place - 1].token_type == TokenType.ALIAS


def _like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)


def is_over_catalog(query: exp.Expr) -> bool:
    """Return whether a query is over the catalog; refuse one that is only half so."""
    ours: list[exp.Table] = []
    others: list[exp.Table] = []
    for table in tables(query):
        (ours if is_ours(table) else others).append(table)
    if ours and others:
        message = "a query cannot read the catalog and other relations at once"
        detail = f'it reads "{ours[0].name}" and "{others[0].name}"'
        hint = "ask two queries, or use the relations of the schema reclock"
        raise NotSupported(message, detail=detail, hint=hint, position=position_of(others[0]))
    if others:
        return False
    return bool(ours) or any(_is_of_catalog(node) for node in query.walk())


def tables(query: exp.Expr) -> Iterator[exp.Table]:
    """Yield the relations that a query names, without its own WITH queries and functions."""
    for table in query.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not _is_with(table):
            yield table


def is_ours(table: exp.Table) -> bool:
    """Return whether a name is one of the catalog's."""
    return table.db in SCHEMAS or (not table.db and find_relation(None, table.name) is not None)


def _is_with(table: exp.Table) -> bool:
    """Return whether a name is that of a WITH query that is known where it stands.

    Inside of a WITH query those before it are known, and itself if it is RECURSIVE: DuckDB takes
    what is not known for a relation of its own.
    """
    if table.db:
        return False
    inside: exp.Expr = table
    while (node := inside.parent) is not None:
        if isinstance(node, exp.With):
            place = node.expressions.index(inside) + bool(node.args.get("recursive"))
            known = node.expressions[:place]
        else:
            with_ = node.args.get("with_")
            known = [] if with_ is None or with_ is inside else with_.expressions
        if any(cte.alias == table.name for cte in known):
            return True
        inside = node
    return False


def _is_of_catalog(node: exp.Expr) -> bool:
    if isinstance(node, exp.ObjectIdentifier | exp.Operator):
        return True
    match node:
        case exp.Anonymous():
            return str(node.this).lower() in _FUNCTIONS | TABLE_FUNCTIONS
        case exp.Table(this=exp.Anonymous()):
            return node.db in SCHEMAS
        case exp.DataType(this=exp.DType.USERDEFINED):
            kind = node.args.get("kind")
            return isinstance(kind, exp.Dot) and kind.this.name in SCHEMAS
    return False
