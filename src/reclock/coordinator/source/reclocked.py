"""Transactions in wall-clock time: RECLOCK INTO EPOCH.

The numbers of transactions are a time of their own; a second map binds times of the system to
them: at t all transactions before number n are there, and no others. It is part of the binding of
t, as the offset n of the part ``transaction``; the other parts are the positions that were read.
So what is published at t, what waits at t, and what t is bound to are of one moment here too (P2).

*Whole*, also across sources: those with the same consistency topic are bound to the same number at
every time, as far as the last of them is (``limits``). One that is new has to catch up, from its
first transaction on; until it has, nobody waits for it. Released out of turn (``complete``),
transactions have no such number: each source has whole ones, for itself.

Unlike a source with times of its own this one moves with the timeline's ticks: each takes what
is whole, and nobody waits for what is not (P7).

Tests: tests/coordinator/source/test_into_epoch.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reclock.connectors.kafka.consistent import number_of, with_number, without_number
from reclock.coordinator.source.staging import Taken
from reclock.coordinator.source.stated import StatedIntake, transactions_of
from reclock.errors import ConflictingStatements
from reclock.sql.statement.source import KafkaConnection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.coordinator.core import Core
    from reclock.coordinator.item import Source
    from reclock.coordinator.source.connect import Connected
    from reclock.coordinator.source.staging import Grid
    from reclock.coordinator.source.transactions import Release
    from reclock.coordinator.timeline import TimelineState
    from reclock.remap.trace import Remap


class ReclockedIntake(StatedIntake):
    """Reads one source whose transactions get times of the system."""

    def __init__(
        self, connected: Connected, core: Core, state: TimelineState, source: Source, most: int
    ) -> None:
        super().__init__(connected, core, state, source, most)
        self.statements = self._transactions = transactions_of(connected, state, source)
        remap = state.bindings[source.id].remap
        self.number = number_of(remap.latest) or 0
        """Before which number transactions are durably bound."""
        self._frontier = without_number(remap.latest)
        self._taken: tuple[Remap[Any], Release] | None = None

    @property
    def group(self) -> tuple[str, str]:
        """Those that are bound to the same numbers: broker and consistency topic."""
        statement = self._source.statement
        assert isinstance(statement.connection, KafkaConnection)
        assert statement.consistency_topic is not None
        return statement.connection.broker, statement.consistency_topic

    @property
    def is_strict(self) -> bool:
        """Whether its transactions are released in their order."""
        return self._source.is_strict

    @property
    def reach(self) -> int:
        """The first number that could not be bound now."""
        with self.room:
            return self._transactions.reach

    @property
    def is_ready(self) -> bool:
        """Whether a tick may have something to take."""
        with self.room:
            return self.failure is not None or self._transactions.waiting_for() is None

    def skew(self, now_ms: int) -> str | None:
        """Say nothing: its times are the system's."""
        del now_ms
        return None

    def last_ms(self, otherwise: int | None) -> int | None:
        """Return when all that there was, was bound."""
        return otherwise

    def limit(self, now_ms: int) -> int | None:
        """Return that no time is too far ahead: they are the system's."""
        del now_ms
        return None

    def take_whole(self, remap: Remap[Any], grid: Grid, limit: int | None) -> Taken | None:
        """Return what a tick binds: transactions before number ``limit``, at one time."""
        with self.room:
            self.settle(remap)
            time, offer = grid.time, None
            if self.failure is None:
                try:
                    offer = self._transactions.offer(limit, self.most, time)
                except ConflictingStatements as error:
                    self.failure = self._conflict(error)
            if self.failure is not None:
                return self._failed(remap, time, self.failure)
            if offer is None:
                return None
            frontier = self._frontier
            if self.is_strict:
                frontier = with_number(frontier, offer.reach)
            after = remap.bound(time, frontier)
            self._taken = after, offer
            return Taken(after, remap.changes(time, frontier), offer.closed, offer.waiting)

    def settle(self, remap: Remap[Any]) -> None:
        """Forget what is durably bound: what was last taken, if it is."""
        with self.room:
            if self._taken is not None and remap.upper == self._taken[0].upper:
                offer = self._taken[1]
                self._transactions.settle(offer.upper, offer)
                self.number = number_of(remap.latest) or 0
            self._taken = None
            if self._transactions.waiting_for() is None:
                self.complete_ms = self._complete_ms
            self.room.notify_all()


def limits(intakes: Iterable[ReclockedIntake]) -> dict[ReclockedIntake, int]:
    """Return before which number each source may bind transactions, so that all have the same.

    Those that are furthest move together, as far as the last of them can; others follow.
    """
    groups: dict[tuple[str, str], list[ReclockedIntake]] = {}
    for intake in intakes:
        if intake.is_strict and intake.failure is None:
            groups.setdefault(intake.group, []).append(intake)
    found: dict[ReclockedIntake, int] = {}
    for members in groups.values():
        furthest = max(member.number for member in members)
        together = min(member.reach for member in members if member.number == furthest)
        found |= dict.fromkeys(members, together)
    return found
