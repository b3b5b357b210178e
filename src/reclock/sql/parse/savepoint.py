"""SAVEPOINT, RELEASE and ROLLBACK TO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.sql.statement.transaction import Release, RollbackTo, Savepoint

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor


def parse_savepoint(cursor: Cursor) -> Savepoint:
    """Read what follows SAVEPOINT."""
    return Savepoint(_name(cursor))


def parse_release(cursor: Cursor) -> Release:
    """Read what follows RELEASE."""
    cursor.accept("SAVEPOINT")
    return Release(_name(cursor))


def parse_rollback_to(cursor: Cursor) -> RollbackTo:
    """Read what follows ROLLBACK TO."""
    cursor.accept("SAVEPOINT")
    return RollbackTo(_name(cursor))


def _name(cursor: Cursor) -> str:
    name = cursor.identifier()
    cursor.end()
    return name
