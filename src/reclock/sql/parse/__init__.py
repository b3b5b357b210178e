"""Text → statements.

``parse_statements`` splits a text at its semicolons and gives one ``Parsed`` per
statement, with its text and where it begins. Queries and expressions are read by sqlglot
and converted by ``expression`` and ``query``; statements of our own by ``Cursor``.

Promise (P9): whatever is not implemented is an error with its name, 0A000, and its
position; nothing that was written is ignored. tests/sql/test_parse.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from reclock.errors import InvalidSyntax
from reclock.sql.depth import check_depth, check_length, check_tokens, too_deep
from reclock.sql.parse.comment import parse_comment
from reclock.sql.parse.create import parse_create
from reclock.sql.parse.cursor import Cursor
from reclock.sql.parse.dialect import tokenize
from reclock.sql.parse.fragment import QUERY_WORDS, query_of
from reclock.sql.parse.maintain import parse_analyze, parse_vacuum
from reclock.sql.parse.manage import parse_alter, parse_drop, parse_show
from reclock.sql.parse.missing import missing, unknown
from reclock.sql.parse.prepare import parameters_of, parse_execute, parse_prepare
from reclock.sql.parse.read import (
    parse_copy,
    parse_explain,
    parse_query_statement,
    parse_subscribe,
)
from reclock.sql.parse.role import parse_grant
from reclock.sql.parse.savepoint import parse_release, parse_rollback_to, parse_savepoint
from reclock.sql.parse.session import (
    parse_begin,
    parse_deallocate,
    parse_discard,
    parse_reset,
    parse_set,
    parse_unlisten,
)
from reclock.sql.parse.sqlcursor import parse_close, parse_declare, parse_fetch
from reclock.sql.parse.write import parse_truncate, parse_write, writes_after_with
from reclock.sql.statement import Parsed, Prepare
from reclock.sql.statement.transaction import Commit, Rollback

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot.tokenizer_core import Token

    from reclock.sql.statement import Statement
    from reclock.sql.syntax.query import Query


_WRITES = ("INSERT", "UPDATE", "DELETE", "MERGE")
_PARSERS: dict[str, Callable[[Cursor], Statement]] = {
    "CREATE": parse_create,
    "DROP": parse_drop,
    "ALTER": parse_alter,
    "GRANT": lambda cursor: parse_grant(cursor, revoke=False),
    "REVOKE": lambda cursor: parse_grant(cursor, revoke=True),
    "SUBSCRIBE": parse_subscribe,
    "COPY": parse_copy,
    "EXPLAIN": lambda cursor: parse_explain(cursor, parse_create),
    "DECLARE": parse_declare,
    "FETCH": parse_fetch,
    "CLOSE": parse_close,
    "SHOW": parse_show,
    "SET": parse_set,
    "RESET": parse_reset,
    "BEGIN": parse_begin,
    "PREPARE": lambda cursor: parse_prepare(cursor, (*_WRITES, *QUERY_WORDS), _parse),
    "EXECUTE": parse_execute,
    "DEALLOCATE": parse_deallocate,
    "DISCARD": parse_discard,
    "UNLISTEN": parse_unlisten,
    "SAVEPOINT": parse_savepoint,
    "RELEASE": parse_release,
    "TRUNCATE": parse_truncate,
    "COMMENT": parse_comment,
    "VACUUM": parse_vacuum,
    "ANALYZE": parse_analyze,
}
_ENDS: dict[str, type[Commit | Rollback]] = {
    "COMMIT": Commit,
    "END": Commit,
    "ROLLBACK": Rollback,
    "ABORT": Rollback,
}


def parse_statements(text: str) -> tuple[Parsed, ...]:
    """Parse all statements of ``text``; empty statements are skipped.

    >>> [type(p.statement).__name__ for p in parse_statements("BEGIN; SELECT 1; COMMIT;")]
    ['Begin', 'SelectStatement', 'Commit']
    >>> parse_statements("SELEKT 1")
    Traceback (most recent call last):
    reclock.errors.InvalidSyntax: syntax error at or near "SELEKT"
    hint: perhaps you meant SELECT
    """
    check_length(text)
    parsed = []
    for tokens in _split(tokenize(text)):
        first, last = int(tokens[0].start), int(tokens[-1].end)
        check_tokens(tokens)
        try:
            statement = _parse(Cursor(tokens, text))
        except RecursionError:
            raise too_deep(first + 1) from None
        check_depth(statement, tokens)
        count = 0 if isinstance(statement, Prepare) else parameters_of(tokens)
        parsed.append(Parsed(statement, text[first : last + 1], first + 1, count))
    return tuple(parsed)


def parse_statement(text: str) -> Statement:
    """Parse a text that holds exactly one statement."""
    parsed = parse_statements(text)
    if len(parsed) != 1:
        message = f"expected one statement, found {len(parsed)}"
        position = parsed[1].position if len(parsed) > 1 else 1
        raise InvalidSyntax(message, hint="give them one by one", position=position)
    return parsed[0].statement


def parse_query(text: str) -> Query:
    """Parse a text that holds exactly one query, such as the stored text of a view."""
    return query_of(tokenize(text), text)


def _split(tokens: list[Token]) -> list[list[Token]]:
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            groups.append([])
        else:
            groups[-1].append(token)
    return [group for group in groups if group]


def _parse(cursor: Cursor) -> Statement:
    absent = missing(cursor)
    if absent is not None:
        raise absent
    if any(cursor.sees(word) for word in _WRITES) or writes_after_with(cursor, _WRITES):
        return parse_write(cursor)
    if any(cursor.sees(word) for word in QUERY_WORDS):
        return parse_query_statement(cursor)
    for word, end in _ENDS.items():
        if cursor.accept(word):
            if not cursor.accept("TRANSACTION"):
                cursor.accept("WORK")
            if end is Rollback and cursor.accept("TO"):
                return parse_rollback_to(cursor)
            cursor.end()
            return end()
    if cursor.accept("START", "TRANSACTION"):
        return parse_begin(cursor)
    for word, parser in _PARSERS.items():
        if cursor.accept(word):
            return parser(cursor)
    raise unknown(cursor, (*_WRITES, *QUERY_WORDS[:4], *_ENDS, *_PARSERS))
