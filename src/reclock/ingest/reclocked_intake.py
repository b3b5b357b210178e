"""Transactions at times that the system gives: RECLOCK INTO EPOCH, and those out of turn.

The numbers of transactions are a time of their own; a second map binds times of the system to
them: at t all transactions before number n are there, and no others. It is part of the binding of
t, as the offset n of the part ``transaction``; the other parts are the positions that were read.
So what is published at t, what waits at t, and what t is bound to are of one moment here too (P2).
Released out of turn (``complete``) transactions have no such number; their times are those of the
wall clock, or the steps of a timeline that is their topic's.

*Whole*, also across sources: those with the same consistency topic, and order, release the same
transactions at every time (``limits``, ``release``). One that is new has to catch up, from its
first transaction on; until it has, the others do not wait for it.

Unlike a source with times of its own this one moves with the timeline's ticks: each takes what is
whole, and nothing waits for what is not (P7).

Tests: tests/ingest/test_into_epoch.py.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeAlias

from reclock.connectors.kafka.consistent import number_of, with_number, without_number
from reclock.engine.taken import Taken
from reclock.errors import ConflictingStatements
from reclock.ingest.cdcv2_intake import StatedIntake, transactions_of
from reclock.ingest.transactions.release import Member, complete_together
from reclock.sql.statement.source import KafkaConnection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.catalog.item import Source
    from reclock.engine.core import Core
    from reclock.engine.timeline import TimelineState
    from reclock.ingest.connect import Connected
    from reclock.ingest.staging import Grid
    from reclock.ingest.transactions.release import Numbers
    from reclock.ingest.transactions.transactions import Release
    from reclock.remap.trace import Remap


Limit: TypeAlias = "int | Numbers"
"""The number before which transactions may be bound, or which may."""


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
    def group(self) -> tuple[str, str, bool]:
        """Those that release the same: broker, consistency topic, and whether in its order."""
        statement = self._source.statement
        assert isinstance(statement.connection, KafkaConnection)
        assert statement.consistency_topic is not None
        return statement.connection.broker, statement.consistency_topic, self.is_strict

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
    def member(self) -> Member:
        """What it has, for those that release the same."""
        return Member(self._transactions, self.most)

    @property
    def is_ready(self) -> bool:
        """Whether a tick has something to take that belongs to no transaction."""
        with self.room:
            return self.failure is not None or self._transactions.loose > 0

    def has_failed(self) -> bool:
        """Return whether what waits, with nothing to release, contradicts itself."""
        with self.room:
            try:
                self._transactions.check()
            except ConflictingStatements as error:
                self.failure = self._conflict(error)
            return self.failure is not None

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

    def take_whole(self, remap: Remap[Any], grid: Grid, limit: Limit | None) -> Taken | None:
        """Return what a tick binds, at one time: what ``limits`` allows."""
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
            return Taken(
                after, remap.changes(time, frontier), offer.closed, offer.waiting,
                runs=offer.runs, held=offer.held,
            )  # fmt: skip

    def settle(self, remap: Remap[Any]) -> None:
        """Forget what is durably bound: what was last taken, if it is."""
        with self.room:
            if self._taken is not None and remap.upper == self._taken[0].upper:
                offer = self._taken[1]
                self._transactions.settle(offer.upper, offer)
                self.number = number_of(remap.latest) or 0
                self._discard()
            self._taken = None
            if self._transactions.waiting_for() is None:
                self.complete_ms = self._complete_ms
            self.room.notify_all()


def limits(intakes: Iterable[ReclockedIntake]) -> dict[ReclockedIntake, Limit]:
    """Return which transactions each source may bind, so that all sources bind the same ones.

    In order, that is before which number: those that are furthest move together, as far as the
    last of them can; others follow.
    """
    groups: dict[tuple[str, str, bool], list[ReclockedIntake]] = {}
    for intake in intakes:
        if intake.failure is None:
            groups.setdefault(intake.group, []).append(intake)
    found: dict[ReclockedIntake, Limit] = {}
    for members in groups.values():
        if members[0].is_strict:
            furthest = max(member.number for member in members)
            together = min(member.reach for member in members if member.number == furthest)
            found |= dict.fromkeys(members, together)
        else:
            with ExitStack() as still:  # nothing comes in while they agree
                for member in members:
                    still.enter_context(member.room)
                allowed = complete_together([member.member for member in members])
                found |= zip(members, allowed, strict=True)
    return found
