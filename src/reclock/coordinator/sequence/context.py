"""What a statement runs in."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from reclock.coordinator.item import Item
from reclock.coordinator.roles import gone
from reclock.errors import StatementTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.coordinator.core import Core
    from reclock.coordinator.session import Session
    from reclock.coordinator.settings import SessionSettings
    from reclock.coordinator.transaction import Transaction
    from reclock.coordinator.world import World


I = TypeVar("I", bound=Item)  # noqa: E741 - an item

_GLANCE: Final = 0.05
"""After so many seconds of waiting for a turn a statement looks whether it is cancelled."""


@dataclass(frozen=True, slots=True)
class Context:
    """The session, the statement's text and the values of $1, $2, …."""

    session: Session
    text: str
    parameters: tuple[object, ...] = ()

    @property
    def core(self) -> Core:
        """The state that all sessions share."""
        return self.session.core

    @property
    def settings(self) -> SessionSettings:
        """The settings in force for the statement."""
        return self.session.settings

    @property
    def transaction(self) -> Transaction | None:
        """The transaction that the statement is part of; None if it is one by itself."""
        return self.session.transaction

    def owned(self, item: I, world: World) -> I:
        """Return a new object as one of the session's role; one that is gone makes nothing.

        Who it belongs to is part of its record: there is no moment at which it is nobody's.
        """
        role = self.session.role
        if role is not None and world.roles.find(role) is None:
            raise gone(role)
        return replace(item, owner=role)

    @contextmanager
    def writing(self) -> Iterator[World]:
        """Wait for one's turn to change something, as long as ``statement_timeout`` allows."""
        timeout = self.settings.statement_timeout
        deadline = None if timeout is None else monotonic() + timeout
        if not self.core.lock.acquire(blocking=False):
            with self.core.turns.waiting():
                self._wait(deadline)
        try:
            with self.core.writing() as world:
                yield world
        finally:
            self.core.lock.release()

    def _wait(self, deadline: float | None) -> None:
        """Wait for the lock."""
        while not self.core.lock.acquire(timeout=_GLANCE):
            self.session.interrupt.check()
            if deadline is None or monotonic() < deadline:
                continue
            message = "no turn to write within statement_timeout"
            detail = "another statement, or a tick, has not finished; nothing was written"
            raise StatementTimeout(message, detail=detail, hint="raise statement_timeout")
