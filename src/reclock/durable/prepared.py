"""Statements compiled once and handed to the driver, for the few that every append runs.

SQLAlchemy's own execution builds a key, a context and a result around each statement: on a
fast disk that costs as much as the commit. These statements need none of it: they have no
expanding parameters and no types that convert. Connections, transactions and dialects stay
SQLAlchemy's, and so do errors: a driver's error is raised as ``DBAPIError``, and a lost
connection is invalidated, as SQLAlchemy would.

Measured by ``make bench``; lost connections: tests/durable/test_postgres.py.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import DBAPIError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection, Dialect
    from sqlalchemy.sql.expression import ClauseElement


class Prepared:
    """A statement as text for one dialect, and the order of its parameters."""

    def __init__(self, statement: ClauseElement, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self._text = str(compiled)
        self._places: list[str] | None = getattr(compiled, "positiontup", None)
        self._dialect = dialect

    def all(self, connection: Connection, values: Mapping[str, object]) -> list[Any]:
        """Execute it and return the rows."""
        driver = connection.connection
        with closing(driver.cursor()) as cursor:
            try:
                cursor.execute(self._text, self._arrange(values))
                return list(cursor.fetchall())
            except self._dialect.loaded_dbapi.Error as error:
                raise self._failure(connection, error) from error

    def execute_many(self, connection: Connection, rows: Sequence[Mapping[str, object]]) -> int:
        """Execute it for every row, and return how many rows it changed in all.

        The last row goes by itself: psycopg sends many rows as a pipeline, after which
        PostgreSQL does not count a session as idle, and a stalled owner would never end.
        """
        *many, last = [self._arrange(row) for row in rows]
        changed = 0
        driver = connection.connection
        with closing(driver.cursor()) as cursor:
            try:
                if many:
                    cursor.executemany(self._text, many)
                    changed = cursor.rowcount
                cursor.execute(self._text, last)
            except self._dialect.loaded_dbapi.Error as error:
                raise self._failure(connection, error) from error
            return changed + cursor.rowcount

    def _arrange(self, values: Mapping[str, object]) -> Any:
        places = self._places
        return values if places is None else tuple([values[name] for name in places])

    def _failure(self, connection: Connection, error: Exception) -> DBAPIError:
        lost = self._dialect.is_disconnect(error, connection.connection, None)  # type: ignore[arg-type]
        if lost:
            connection.invalidate(error)
        return DBAPIError(self._text, None, error, connection_invalidated=lost)
