"""Decides which statements of one text are one transaction.

PostgreSQL runs the statements of one simple query as one transaction, unless they say otherwise.
Here a text is cut into *stretches*: reads after each other, INSERTs of values after each other, and
every other statement by itself, so that none waits for, or fails because of, another. Reads of a
stretch are of one time; INSERTs of a stretch become visible together, or not at all. Each stretch
sees what those before it did.

A statement that names its own time (AS OF), and an INSERT that reads or gives rows back, are by
themselves: what works alone must not fail because of its neighbours.

Tests: tests/server/protocol/test_together.py.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from reclock.sql import statement as s
from reclock.sql.parse import parse_statements
from reclock.sql.syntax import query as q

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.sql.statement import Parsed

BEGIN, COMMIT, ROLLBACK = parse_statements("BEGIN; COMMIT; ROLLBACK")

_READ: Final = "read"
_WRITE: Final = "write"


def stretches(statements: Sequence[Parsed]) -> list[list[Parsed]]:
    """Cut a text into what one transaction can have; those of one statement need none.

    >>> text = "SELECT 1; SELECT 2; CREATE TABLE t (a INT); SELECT 3"
    >>> [len(stretch) for stretch in stretches(parse_statements(text))]
    [2, 1, 1]
    """
    kinds = [(_kind(parsed.statement) or at, parsed) for at, parsed in enumerate(statements)]
    return [[parsed for _, parsed in some] for _, some in groupby(kinds, lambda pair: pair[0])]


def _kind(statement: s.Statement) -> str | None:
    match statement:
        case s.SelectStatement(as_of=None) | s.CatalogQuery() | s.Fetch() | s.CloseCursor():
            return _READ
        case (
            s.Copy(s.SelectStatement(as_of=None) | s.CatalogQuery())
            | s.Declare(of=s.SelectStatement(as_of=None) | s.CatalogQuery())
        ):
            return _READ
        case s.CopyFrom():
            return _WRITE
        case s.Insert(query=query, conflict=None, returning=()) if query is None or _is_values(
            query
        ):
            return _WRITE
    return None


def _is_values(query: q.Query) -> bool:
    """Return whether a query is a list of rows that reads nothing."""
    if not isinstance(query.body, q.Values) or query != q.Query(query.body):
        return False
    waiting: list[object] = [query.body]
    while waiting:
        at = waiting.pop()
        if isinstance(at, q.Query):
            return False
        if isinstance(at, tuple):
            waiting += at
        elif is_dataclass(at) and not isinstance(at, type):
            waiting += [getattr(at, field.name) for field in fields(at)]
    return True
