"""DECLARE, FETCH and CLOSE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from reclock.sql.parse.options import DURATION, parse_options
from reclock.sql.parse.read import query_or_subscribe
from reclock.sql.statement.cursor import CloseCursor, Declare, Fetch

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor

FETCH = {"timeout": DURATION}


def parse_declare(cursor: Cursor) -> Declare:
    """Read what follows DECLARE."""
    name = cursor.identifier()
    cursor.accept("NO", "SCROLL")
    cursor.expect("CURSOR")
    hold = cursor.accept("WITH", "HOLD")
    if not hold:
        cursor.accept("WITHOUT", "HOLD")
    cursor.expect("FOR")
    return Declare(name, query_or_subscribe(cursor), hold)


def parse_fetch(cursor: Cursor) -> Fetch:
    """Read what follows FETCH."""
    cursor.accept("FORWARD")
    count: int | None = 1
    if cursor.sees_kind(TokenType.NUMBER):
        count = cursor.number()
    elif cursor.accept("ALL"):
        count = None
    else:
        cursor.accept("NEXT")
    if not cursor.accept("FROM"):
        cursor.accept("IN")
    name = cursor.identifier()
    options = parse_options(cursor, FETCH)
    cursor.end()
    return Fetch(name, count, options.duration("timeout") or 0)


def parse_close(cursor: Cursor) -> CloseCursor:
    """Read what follows CLOSE."""
    name = None if cursor.accept("ALL") else cursor.identifier()
    cursor.end()
    return CloseCursor(name)
