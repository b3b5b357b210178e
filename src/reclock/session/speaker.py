"""Who speaks, and with which settings: what others may know of a session.

A narrow protocol, so that what a session is made of need not know the session.
Tests: tests/test_layers.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from reclock.catalog.settings import SessionSettings
    from reclock.engine.core import Core
    from reclock.engine.interrupt import Interrupt
    from reclock.session.drawn_numbers import SessionNumbers
    from reclock.session.transaction.transaction import Transaction


class Speaker(Protocol):
    """One session, without what it can be asked to do."""

    @property
    def core(self) -> Core:
        """The state that all sessions share."""
        ...

    @property
    def role(self) -> str | None:
        """Who the user is; None is the one who opened the database, and may do everything."""
        ...

    @property
    def is_superuser(self) -> bool:
        """Whether its user may do everything."""
        ...

    @property
    def settings(self) -> SessionSettings:
        """The settings in force."""
        ...

    @property
    def transaction(self) -> Transaction | None:
        """The transaction under way, if there is one."""
        ...

    @property
    def interrupt(self) -> Interrupt:
        """Stops the statement under way, from any thread."""
        ...

    @property
    def numbers(self) -> SessionNumbers:
        """The numbers of sequences that it has drawn."""
        ...
