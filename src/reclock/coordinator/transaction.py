"""Transactions: several reads at one time, or several INSERTs at one time.

The first statement that reads or writes an object decides which of the two it is.

**Reads.** The first read chooses the timestamp, as a read by itself does (AS OF included),
and every later one is answered at that time, from the same world: objects that others
create, change or drop meanwhile do not matter. All objects of the timeline are held at that
time, so that others can read at it too. An object of another timeline is refused at once: its
times mean something else, and waiting for them to meet could take for ever (P6).

**Writes.** Rows of INSERTs wait in memory; COMMIT makes all of them durable in one append, at
one timestamp, after checking the keys of all tables over all rows (P7). Nothing is durable
before. What a transaction wrote it cannot read.

An error, of whatever kind, aborts: what was held is released at once, and only ROLLBACK, or
COMMIT, which then is one, ends it. SET is undone by a rollback, SET LOCAL ends in any case. What
a session held that was lost without being closed is let go by the next tick.

Tests: tests/coordinator/test_transaction.py.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final
from weakref import finalize

from reclock.coordinator.as_of import asked
from reclock.coordinator.constraints import check_not_null, fitted
from reclock.coordinator.read import (
    Readable,
    check_errors,
    check_ready,
    choose,
    kept_at,
    readable,
    settled,
)
from reclock.coordinator.write import Change, write_all
from reclock.errors import (
    HoldViolation,
    InvalidTransactionState,
    InvalidValue,
    NotSupported,
    TimelineMismatch,
    UndefinedName,
)
from reclock.ids import HolderId
from reclock.sql import statement as s
from reclock.sql.statement.select import AsOf
from reclock.time import select
from reclock.time.timeline import TimelineContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from reclock.coordinator.catalog import Catalog
    from reclock.coordinator.core import Core
    from reclock.coordinator.interrupt import Interrupt
    from reclock.coordinator.item import Table
    from reclock.coordinator.settings import SessionSettings
    from reclock.coordinator.world import World
    from reclock.sql.plan.relation import QueryPlan
    from reclock.time.holds import Hold
    from reclock.time.select import Choice
    from reclock.time.timestamp import Timestamp

_numbers: Final = count(1)

_READS = (s.SelectStatement, s.CatalogQuery, s.ExplainPlan, s.ExplainTimestamp, s.Show)
_CURSORS = (s.Declare, s.Fetch, s.CloseCursor)
_OURS = (s.SetVariable, s.SetTransaction, s.Deallocate, s.Discard, s.Unlisten)
_POINTS = (s.Savepoint, s.Release, s.RollbackTo)
_OTHERS = (s.Insert, s.CopyFrom, s.Commit, s.Rollback, *_POINTS, *_CURSORS, *_OURS)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What all reads of a transaction see, and the hold that keeps it."""

    timeline: TimelineContext
    world: World
    timestamp: Timestamp
    hold: Hold

    def choose(self, plan: QueryPlan, settings: SessionSettings, as_of: AsOf | None) -> Choice:
        """Return the choice of a later read: the same time, which AS OF may only repeat."""
        match asked(as_of, self.timeline.timeline):
            case select.AsOf(time) if time != self.timestamp:
                raise self._elsewhere(time)
            case select.AsOfAtLeast(time) if time > self.timestamp:
                raise self._elsewhere(time)
        same = AsOf(int(self.timestamp))
        choice = choose(self.world, plan, settings, self.timestamp, same)
        return replace(choice, rule="the time of the transaction")

    def release(self, core: Core) -> None:
        """Let go of what is held."""
        self.hold.release()
        core.unpin(self.world)

    def _elsewhere(self, wanted: Timestamp) -> InvalidTransactionState:
        message = f"the transaction reads at {self.timestamp}, not at {wanted}"
        return InvalidTransactionState(message, hint="use a transaction for each time")


@dataclass(frozen=True, slots=True)
class Point:
    """A savepoint: how many writes there were, what was set, which cursors were open."""

    name: str
    writes: int
    settings: SessionSettings
    kept: SessionSettings
    cursors: frozenset[str]


class Transaction:
    """What is between BEGIN and COMMIT; ``settings`` are in force, ``kept`` if it commits."""

    def __init__(self, core: Core, settings: SessionSettings, begin: s.Begin) -> None:
        self._core = core
        self._snapshot: Snapshot | None = None
        self._finalizer: finalize[..., Transaction] | None = None
        self._described: World | None = None
        self._writes: list[Change] = []
        self._savepoints: list[Point] = []
        self.aborted = False
        self.kept = settings.copy()
        self.settings = settings.copy()
        if begin.isolation is not None:
            self.settings.set("transaction_isolation", begin.isolation)
        read_only = settings.is_read_only if begin.read_only is None else begin.read_only
        self.settings.set("transaction_read_only", "on" if read_only else "off")

    def admit(self, statement: s.Statement) -> None:
        """Refuse a statement that cannot be part of a transaction, or of this one."""
        if isinstance(statement, s.Commit | s.Rollback | s.RollbackTo):
            return
        if self.aborted:
            message = "current transaction is aborted, commands are ignored until its end"
            raise InvalidTransactionState(message, code="25P02", hint="write ROLLBACK")
        if isinstance(statement, s.Begin):
            message = "there is already a transaction in progress"
            raise InvalidTransactionState(message, hint="write COMMIT or ROLLBACK first")
        if isinstance(statement, s.Update | s.Delete):
            message = f"{_words(statement)} in a transaction is not supported"
            hint = "run it by itself: it is a transaction of its own"
            raise NotSupported(message, hint=hint)
        copies = isinstance(statement, s.Copy) and not isinstance(statement.of, s.Subscribe)
        if not (copies or isinstance(statement, _READS + _OTHERS)):
            message = f"{_words(statement)} cannot run inside a transaction"
            raise InvalidTransactionState(message, hint="COMMIT first, and run it by itself")

    # Settings.

    def set(self, name: str | None, value: str | None, *, local: bool) -> None:
        """Set a value until the end of the transaction, or, if it commits, of the session."""
        if name == "transaction_isolation" and self._snapshot is not None:
            message = "the isolation level must be set before the first query"
            raise InvalidTransactionState(message)
        mode = self.settings.get("transaction_read_only")
        self.settings.set(name, value)
        if name is None:
            self.settings.set("transaction_read_only", mode)
        if not local:
            self.kept.set(name, value)

    # Reads.

    @property
    def snapshot(self) -> Snapshot | None:
        """What all its reads see, from the first one on."""
        return self._snapshot

    def described(self, now: World) -> World:
        """Return the world whose catalog its queries over that see, from the first one on."""
        if self._described is None:
            self._described = now if self._snapshot is None else self._snapshot.world
        return self._described

    @contextmanager
    def readable(
        self, plan_of: Callable[[Catalog], QueryPlan], as_of: AsOf | None, interrupt: Interrupt
    ) -> Iterator[Readable]:
        """Give what the transaction sees; the first read of an object decides what."""

        def checked(catalog: Catalog) -> QueryPlan:
            plan = plan_of(catalog)
            self._check_read(plan.root.timeline)
            return plan

        while self._snapshot is None:
            with readable(
                self._core, checked, self.settings, as_of, hold_all=True, interrupt=interrupt
            ) as at:
                if at.timeline is None:
                    yield at
                    return
                self._hold(at)
        known = self._snapshot
        catalog = known.world.catalog
        plan, choice = settled(
            checked(catalog), checked, catalog, lambda p: known.choose(p, self.settings, as_of)
        )
        check_ready(choice)
        check_errors(known.world, plan, choice.timestamp)
        yield Readable(plan, known.world, choice.timestamp)

    def _check_read(self, timeline: TimelineContext) -> None:
        if timeline.timeline is None:
            return
        if self._writes:
            message = "a transaction that has written cannot read"
            hint = "read before BEGIN, or after COMMIT"
            raise InvalidTransactionState(
                message, detail=f'it reads "{timeline.origin}"', hint=hint
            )
        if self._snapshot is not None:
            _check_same(self._snapshot.timeline, timeline)

    def _hold(self, at: Readable) -> None:
        """Keep what a read saw, and all else of its timeline that is kept at its time."""
        assert at.timeline is not None
        items = kept_at(at.world, at.timeline, at.timestamp)
        try:
            hold = self._core.hold(HolderId(f"transaction/{next(_numbers)}"), items, at.timestamp)
        except (HoldViolation, InvalidValue):
            return  # something was forgotten or dropped just now: the read is repeated
        self._core.pin(at.world)
        self._snapshot = Snapshot(at.plan.root.timeline, at.world, at.timestamp, hold)
        lost = partial(self._snapshot.release, self._core)
        self._finalizer = finalize(self, self._core.lost.append, lost)

    # Writes.

    def write(self, table: Table, rows: Sequence[pa.Array]) -> None:
        """Add rows to a table when the transaction commits."""
        self.check_write(table)
        check_not_null(table, rows)
        self._writes.append(Change(table, fitted(table, rows)))

    def check_write(self, table: Table) -> None:
        """Refuse to write where this transaction may not."""
        if self.settings.get("transaction_read_only") == "on":
            raise _read_only()
        if self._snapshot is not None:
            message = "a transaction that has read cannot write"
            detail = f'it has read "{self._snapshot.timeline.origin}"'
            raise InvalidTransactionState(message, detail=detail, hint="write after COMMIT")
        if self._writes:
            first = self._writes[0].table
            known = TimelineContext(first.timeline, first.name)
            _check_same(known, TimelineContext(table.timeline, table.name))

    def commit(self, writing: Callable[[], AbstractContextManager[World]]) -> Timestamp | None:
        """Write what is to be written, in one's turn; return the time, None for nothing."""
        if not self._writes:
            return None
        with writing() as world:
            for change in self._writes:
                if change.table.id not in world.catalog.items:
                    message = f'table "{change.table.name}" was dropped meanwhile'
                    raise UndefinedName(message, code="42P01")
            return write_all(self._core, self._writes)

    # Savepoints.

    def save(self, name: str, cursors: frozenset[str]) -> None:
        """Remember where the transaction is; ``cursors`` are open."""
        settings, kept = self.settings.copy(), self.kept.copy()
        self._savepoints.append(Point(name, len(self._writes), settings, kept, cursors))

    def forget(self, name: str) -> None:
        """Forget a savepoint, and those after it."""
        del self._savepoints[self._place(name) :]

    def go_back(self, name: str) -> frozenset[str]:
        """Undo what came after a savepoint; return the cursors that were open then."""
        place = self._place(name)
        point = self._savepoints[place]
        del self._savepoints[place + 1 :]
        del self._writes[point.writes :]
        self.settings, self.kept = point.settings.copy(), point.kept.copy()
        self.aborted = False
        return point.cursors

    def _place(self, name: str) -> int:
        """Return where a savepoint is; the last one of that name counts."""
        for place in reversed(range(len(self._savepoints))):
            if self._savepoints[place].name == name:
                return place
        message = f'savepoint "{name}" does not exist'
        raise InvalidTransactionState(message, code="3B001", hint="check the name")

    # The end.

    def abort(self) -> None:
        """Let go of everything, unless there is a savepoint to go back to."""
        self.aborted = True
        if self._savepoints:
            return
        self._writes = []
        self.release()

    def release(self) -> None:
        """Let go of what is held; again is harmless."""
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None and self._finalizer is not None:
            self._finalizer.detach()
            snapshot.release(self._core)


def refuse_write(statement: s.Statement, settings: SessionSettings) -> None:
    """Refuse to change anything outside of a transaction if a session is to change nothing."""
    reads = (
        *_READS,
        *_CURSORS,
        *_OURS,
        *_POINTS,
        s.Subscribe,
        s.Copy,
        s.Begin,
        s.Commit,
        s.Rollback,
    )
    if settings.is_read_only and not isinstance(statement, reads):
        raise _read_only()


def _read_only() -> InvalidTransactionState:
    message = "cannot write in a read-only transaction"
    return InvalidTransactionState(message, code="25006", hint="leave out READ ONLY")


def _check_same(known: TimelineContext, other: TimelineContext) -> None:
    if known.timeline == other.timeline:
        return
    message = "multiple timelines within one transaction are not supported"
    detail = (
        f'"{known.origin}" is in timeline {known.timeline}, '
        f'"{other.origin}" is in timeline {other.timeline}'
    )
    raise TimelineMismatch(message, detail=detail, hint="use a transaction for each")


def _words(statement: s.Statement) -> str:
    """Return how a statement begins, near enough: CREATE TABLE, ALTER SYSTEM."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(statement).__name__).upper()
