"""Limits of a statement: its depth, its length, and the length of its numbers.

Code that reads a tree recurses into its parts, so a text of a few thousand parentheses would
exhaust the stack in the middle of some work. So depth is counted before anything is done:
parentheses, brackets, CASE and signs one within the other (``NESTING``), and levels of the tree
that was read (``DEPTH``; a chain of n operators has n). What is kept is read again when the
database is opened, and by ticks, by programs that have called more or less before: ``allow`` makes
room for ``CALLS``, far more than the deepest statement needs anywhere. What begins with the name of
a type sqlglot reads in two ways, one after the other, and twice as often with every level: so there
are fewer of these (``TYPES``).

Cost: a look at each token; texts that are short enough to be shallow have their trees left alone.

Tests: tests/sql/test_depth.py.
"""

from __future__ import annotations

import re
import sys
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Final

from sqlglot.parser import Parser
from sqlglot.tokenizer_core import TokenType

from reclock.errors import StatementError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlglot.tokenizer_core import Token

NESTING: Final = 128
TYPES: Final = 8
"""Calls within calls, or arrays within arrays, that begin with the name of a type (``date(…)``)."""
DEPTH: Final = 800
CALLS: Final = 10_000
MAX_LENGTH: Final = 16 << 20
"""In characters: larger data are for COPY, or for parameters."""
PARAMETERS: Final = 65_535
"""So many can be counted in the messages of PostgreSQL's protocol."""

_OPENS: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE})
_CLOSES: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END})
_SIGNS: Final = frozenset({TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE})


_HUGE: Final = re.compile(r"[\d_.]{1001}|[eE][+-]?\d{5}")
_FEWER: Final = "numeric has 38 digits, and double precision exponents up to 308"


def allow() -> None:
    """Make room for calls."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), CALLS))


def check_length(text: str) -> None:
    """Refuse a text that is too long to be read in a reasonable time."""
    if len(text) > MAX_LENGTH:
        message = f"the statement is too long: it has {len(text)} characters"
        hint = f"there may be {MAX_LENGTH}; use COPY, or parameters, for data"
        raise StatementError(message, code="54000", hint=hint)


def check_tokens(tokens: Iterable[Token]) -> None:
    """Refuse tokens that open more, one within the other, than can be read, and endless numbers."""
    opened: list[bool] = []  # whether after the name of a type
    types = signs = 0
    before = None
    for token in tokens:
        kind = token.token_type
        signs = signs + 1 if kind in _SIGNS else 0
        if kind in _OPENS:
            opened.append(before in Parser.TYPE_TOKENS)
            types += opened[-1]
        elif kind in _CLOSES and opened:
            types -= opened.pop()
        parameter, before = before == TokenType.PARAMETER, kind
        if kind == TokenType.NUMBER and _HUGE.search(str(token.text)):
            message = "the number is out of range: it has too many digits"
            position = int(token.start) + 1
            raise StatementError(message, code="22003", hint=_FEWER, position=position)
        if parameter and kind == TokenType.NUMBER:
            _check_parameter(token)
        if len(opened) > NESTING or signs > NESTING or types > TYPES:
            raise too_deep(int(token.start) + 1)


def _check_parameter(token: Token) -> None:
    number = str(token.text)
    if number.isdecimal() and int(number) > PARAMETERS:
        message = f"a statement cannot have parameter ${number}"
        hint = f"there may be {PARAMETERS}: use COPY for many values"
        raise StatementError(message, code="54000", hint=hint, position=int(token.start) + 1)


def check_depth(tree: object, tokens: Sequence[Token]) -> None:
    """Refuse a statement that has more levels than can be gone down."""
    if len(tokens) < DEPTH // 2:
        return
    level, depth = [tree], 0
    while level:
        parts: list[object] = []
        for node in level:
            if isinstance(node, tuple):
                parts += node
            elif is_dataclass(node):
                parts += (getattr(node, field.name) for field in fields(node))
        level = [part for part in parts if isinstance(part, tuple) or is_dataclass(part)]
        depth += 1
        if depth > DEPTH:
            raise too_deep(int(tokens[0].start) + 1)


def too_deep(position: int | None = None) -> StatementError:
    """Return the error of a statement that is nested too deeply."""
    message = "the statement is nested too deeply"
    detail = f"{NESTING} parentheses, or about {DEPTH // 2} operators in a row, are the limit"
    hint = "write IN (…) for many ORs, a table for many values, views for parts of a query"
    return StatementError(message, code="54001", detail=detail, hint=hint, position=position)
