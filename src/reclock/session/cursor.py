"""Cursors: the rows of a query or a subscription, fetched a few at a time.

A cursor lives as long as its transaction; one that was declared WITH HOLD, as long as its session.
FETCH returns the available rows, at most as many as it asks for. If a SUBSCRIBE has none yet, it
waits for the first, at most for its ``timeout``.

Tests: tests/session/test_cursor.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reclock.errors import StatementError
from reclock.session.answer import Answer

if TYPE_CHECKING:
    from reclock.engine.interrupt import Interrupt
    from reclock.sql.schema import Schema
    from reclock.subscribe.subscription import Subscription


class Cursor:
    """Rows that are fetched; ``held`` is one that outlives its transaction."""

    def __init__(self, of: Answer | Subscription, *, held: bool) -> None:
        self._of = of
        self.held = held

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self._of.schema

    def fetch(
        self, count: int | None, timeout: float, interrupt: Interrupt
    ) -> list[tuple[Any, ...]]:
        """Return rows, at most ``count``; of what is followed wait so many seconds for some."""
        if isinstance(self._of, Answer):
            return _part(self._of, count).rows()
        with interrupt.waking(self._of.close):
            updates = self._of.fetch(timeout, count) if count != 0 else []
            while updates and (count is None or len(updates) < count):
                more = self._of.fetch(0.0, None if count is None else count - len(updates))
                if not more:
                    break
                updates += more
        interrupt.check()
        return [self._of.values(update) for update in updates]

    def part(self, count: int | None) -> Answer | None:
        """Return the same in batches; None of what is followed, which may have to be waited for."""
        return _part(self._of, count) if isinstance(self._of, Answer) else None

    def close(self) -> None:
        """Let go of what it reads or follows."""
        self._of.close()


def _part(of: Answer, count: int | None) -> Answer:
    return Answer(of.schema, of.batches(count), of.timestamp, tag="FETCH")


class Cursors:
    """The cursors of one session, by name."""

    def __init__(self) -> None:
        self._open: dict[str, Cursor] = {}

    def check_new(self, name: str) -> None:
        """Refuse a name that is taken."""
        if name in self._open:
            message = f'cursor "{name}" already exists'
            raise StatementError(message, code="42P03", hint="CLOSE it first")

    def add(self, name: str, cursor: Cursor) -> None:
        """Keep a cursor."""
        self._open[name] = cursor

    def find(self, name: str) -> Cursor | None:
        """Return the cursor of that name, or None."""
        return self._open.get(name)

    def get(self, name: str) -> Cursor:
        """Return the cursor of that name, or say that there is none."""
        found = self._open.get(name)
        if found is None:
            message = f'cursor "{name}" does not exist'
            hint = "cursors end with their transaction: DECLARE it WITH HOLD to keep it"
            raise StatementError(message, code="34000", hint=hint)
        return found

    @property
    def names(self) -> frozenset[str]:
        """Those that are open."""
        return frozenset(self._open)

    def close(self, name: str) -> None:
        """End a cursor."""
        self._open.pop(name).close()

    def close_all(self, *, held: bool = True) -> None:
        """End all cursors; without ``held``, those that end with the transaction."""
        for name, cursor in tuple(self._open.items()):
            if held or not cursor.held:
                self.close(name)
