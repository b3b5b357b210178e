"""Statements compiled once, for the few that every tick executes.

SQLAlchemy caches compilations too, but looks each up by a key made of the whole statement;
a compiled text that is kept costs a third of that per execution. Only statements without
expanding parameters or result types that convert may be prepared so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection, CursorResult, Dialect
    from sqlalchemy.sql.expression import ClauseElement


class Prepared:
    """A statement as text for one dialect, and the order of its parameters."""

    def __init__(self, statement: ClauseElement, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self._text = str(compiled)
        self._places: list[str] | None = getattr(compiled, "positiontup", None)

    def execute(self, connection: Connection, values: Mapping[str, object]) -> CursorResult[Any]:
        """Execute it once."""
        return connection.exec_driver_sql(self._text, self._arrange(values))

    def execute_many(
        self, connection: Connection, rows: Sequence[Mapping[str, object]]
    ) -> CursorResult[Any]:
        """Execute it for every row, as one call of the driver."""
        return connection.exec_driver_sql(self._text, [self._arrange(row) for row in rows])

    def _arrange(self, values: Mapping[str, object]) -> Any:
        places = self._places
        return dict(values) if places is None else tuple(values[name] for name in places)
