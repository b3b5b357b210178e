"""What a statement runs in."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Final

from reclock.errors import StatementTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.coordinator.core import Core
    from reclock.coordinator.session import Session
    from reclock.coordinator.settings import SessionSettings
    from reclock.coordinator.transaction import Transaction
    from reclock.coordinator.world import World


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

    @contextmanager
    def writing(self) -> Iterator[World]:
        """Wait for one's turn to change something, as long as ``statement_timeout`` allows."""
        timeout = self.settings.statement_timeout
        deadline = None if timeout is None else monotonic() + timeout
        while not self.core.lock.acquire(timeout=_GLANCE):
            self.session.interrupt.check()
            if deadline is None or monotonic() < deadline:
                continue
            message = "no turn to write within statement_timeout"
            detail = "another statement, or a tick, has not finished; nothing was written"
            raise StatementTimeout(message, detail=detail, hint="raise statement_timeout")
        try:
            with self.core.writing() as world:
                yield world
        finally:
            self.core.lock.release()
