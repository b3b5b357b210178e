"""The refresh options of a materialized view, which repeat and have words of their own.

``REFRESH [=] ON COMMIT | EVERY '…' [ALIGNED TO time] | AT CREATION | AT time``, several of them
but for ON COMMIT, which is what a view without any does. After the first one ``REFRESH`` may be
left out: ``REFRESH AT '…', AT '…'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import InvalidSyntax
from reclock.sql.statement.view import Refresh, RefreshEvery

if TYPE_CHECKING:
    from reclock.sql.parse.cursor import Cursor


class RefreshOptions:
    """Reads them one by one, among other options."""

    def __init__(self) -> None:
        self._every: list[RefreshEvery] = []
        self._at: list[int | str] = []
        self._at_creation = False
        self._on_commit = False

    def accept(self, cursor: Cursor) -> bool:
        """Read an option if it is one of these."""
        position = cursor.position
        begun = bool(self._every or self._at or self._at_creation)
        if cursor.accept("REFRESH"):
            cursor.accept("=")
        elif not (begun and (cursor.sees("AT") or cursor.sees("EVERY"))):
            return False
        if cursor.accept("EVERY"):
            self._every.append(_every(cursor))
        elif cursor.accept("AT"):
            self._read_time(cursor)
        elif cursor.accept("ON", "COMMIT"):
            self._on_commit = True
        else:
            msg = "EVERY, AT or ON COMMIT"
            raise cursor.error(msg)
        if self._on_commit and self.options is not None:
            message = "REFRESH ON COMMIT cannot be combined with other times"
            hint = "leave out the others: a view without them is right at every time"
            raise InvalidSyntax(message, hint=hint, position=position)
        return True

    @property
    def options(self) -> Refresh | None:
        """What was read; None if the view changes with what it reads."""
        if not (self._every or self._at or self._at_creation):
            return None
        return Refresh(tuple(self._every), tuple(self._at), self._at_creation)

    def _read_time(self, cursor: Cursor) -> None:
        if cursor.accept("CREATION"):
            self._at_creation = True
        else:
            self._at.append(cursor.constant_time())


def _every(cursor: Cursor) -> RefreshEvery:
    position = cursor.position
    interval = cursor.duration()
    if interval <= 0:
        message = "the interval of REFRESH EVERY must be positive"
        hint = "leave REFRESH out: a view is right at every time"
        raise InvalidSyntax(message, code="22023", hint=hint, position=position)
    aligned = cursor.constant_time() if cursor.accept("ALIGNED", "TO") else None
    return RefreshEvery(interval, aligned)
