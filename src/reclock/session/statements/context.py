"""The context of a statement, and how it gets its turn to change something.

A statement that changes something holds the lock for a moment. One that needs a pace as it is now,
because it writes what a query over views or sources gives, or alters a source, waits for the
running tick of that pace (``flights``), without the lock; and if much has come since, for one
more tick, so that little is left to do under the lock. Other statements wait for no tick.

Tests: tests/engine/test_flights.py, tests/session/test_cancel.py.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from reclock.catalog.item import Item
from reclock.catalog.roles import gone
from reclock.engine.detached import apart
from reclock.engine.joining import MUCH, waiting
from reclock.engine.tick import tick
from reclock.errors import StatementTimeout
from reclock.time.pace import order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.settings import SessionSettings
    from reclock.engine.interrupt import Interrupt
    from reclock.engine.world import World
    from reclock.session.conversation import Conversation
    from reclock.session.system import System
    from reclock.session.transaction.draft import Draft
    from reclock.session.transaction.transaction import Transaction
    from reclock.time.pace import Pace


I = TypeVar("I", bound=Item)  # noqa: E741 - an item

_GLANCE: Final = 0.05
"""After so many seconds of waiting for a turn a statement looks whether it is cancelled."""

TICKS_FIRST: Final = 2
"""How often a statement has much folded by a tick before its turn."""

MOST_PENDING: Final = 16_384
"""So many writes may be pending while a tick computes; then statements wait for it."""


@dataclass(frozen=True, slots=True)
class Context:
    """The session, the statement's text and the values of $1, $2, …."""

    session: Conversation
    text: str
    parameters: tuple[object, ...] = ()
    allowed: Callable[[], None] | None = None
    """Refuses the statement, when it is its turn, if it may not change what it is about to."""

    @property
    def core(self) -> System:
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

    @property
    def catalog(self) -> Catalog:
        """The catalog that the statement is planned with: the transaction's, or the latest."""
        seen = None if self.transaction is None else self.transaction.catalog
        return self.core.world.catalog if seen is None else seen

    def owned(self, item: I, world: World | Draft) -> I:
        """Return a new object as one of the session's role; one that is gone makes nothing.

        Its owner is part of its record, so it has one at every moment.
        """
        role = self.session.role
        if role is not None and world.roles.find(role) is None:
            raise gone(role)
        return replace(item, owner=role)

    @contextmanager
    def writing(self, paces: Callable[[World], Iterable[Pace]] | None = None) -> Iterator[World]:
        """Wait for one's turn to change something, as long as ``statement_timeout`` allows.

        ``paces`` are those of a world that the statement needs as they are now.
        """
        timeout = self.settings.statement_timeout
        deadline = None if timeout is None else monotonic() + timeout
        self._take(paces, deadline)
        try:
            with self.core.writing() as world:
                if self.allowed is not None:
                    self.allowed()
                yield world
        finally:
            self.core.lock.release()

    def _take(
        self, paces: Callable[[World], Iterable[Pace]] | None, deadline: float | None
    ) -> None:
        """Take the lock when it is the statement's turn."""
        core = self.core
        if core.lock.acquire(blocking=False):
            busy, laden = self._in_the_way(paces)
            if not busy and not laden:
                return
        busy, laden = set(), []
        for left in count(TICKS_FIRST, -1):
            with core.turns.waiting({*busy, *laden} or None):
                self._wait(deadline, partial(core.flights.wait, busy, _GLANCE))
                for pace in laden:
                    apart(self.session.interrupt, partial(_tick, core, pace))
                self._wait(deadline, partial(core.lock.acquire, timeout=_GLANCE))
                busy, laden = self._in_the_way(paces, ticks=left > 0)
                if not busy and not laden:
                    return

    def _in_the_way(
        self, paces: Callable[[World], Iterable[Pace]] | None, *, ticks: bool = True
    ) -> tuple[set[Pace], list[Pace]]:
        """Return which ticks to wait for, and which to run, before one's turn.

        The lock is held, and still is if there are none.
        """
        core, keep = self.core, False
        try:
            with core.writing() as world:
                full = [p for p, s in world.timelines.items() if len(s.wal.pending) > MOST_PENDING]
                wanted = [] if paces is None else sorted(paces(world), key=order)
                busy = core.flights.among([*full, *wanted])
                laden = []
                if ticks and core.loop is not None and not busy:
                    there = [pace for pace in wanted if pace in world.timelines]
                    laden = [pace for pace in there if waiting(core, world[pace]) > MUCH]
            keep = not busy and not laden
            return busy, laden
        finally:
            if not keep:
                core.lock.release()

    def _wait(self, deadline: float | None, done: Callable[[], bool]) -> None:
        """Wait until something is done, which is asked again and again."""
        while not done():
            self.session.interrupt.check()
            if deadline is None or monotonic() < deadline:
                continue
            message = "no turn to write within statement_timeout"
            detail = "another statement, or a tick, has not finished; nothing was written"
            raise StatementTimeout(message, detail=detail, hint="raise statement_timeout")


def _tick(core: System, pace: Pace, _: Interrupt) -> None:
    tick(core, pace)
