"""VACUUM and ANALYZE.

Tests: tests/session/test_maintain.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.sql.statement.maintain import Maintain

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor
    from reclock.sql.syntax.expression import Name


def parse_vacuum(cursor: Cursor) -> Maintain:
    """Read what follows VACUUM."""
    _options(cursor)
    for word in ("FULL", "FREEZE", "VERBOSE", "ANALYZE"):
        cursor.accept(word)
    return Maintain("VACUUM", _tables(cursor))


def parse_analyze(cursor: Cursor) -> Maintain:
    """Read what follows ANALYZE."""
    _options(cursor)
    cursor.accept("VERBOSE")
    return Maintain("ANALYZE", _tables(cursor))


def _options(cursor: Cursor) -> None:
    if cursor.sees("("):
        cursor.inside_parens()


def _tables(cursor: Cursor) -> tuple[Name, ...]:
    names = []
    while not cursor.at_end:
        names.append(cursor.name())
        if cursor.sees("("):
            cursor.names_in_parens()
        if not cursor.accept(","):
            break
    cursor.end()
    return tuple(names)
