"""Transactions: everything between BEGIN and COMMIT happens at one time, or not at all.

**Reads.** The first read chooses the timestamp, as a read by itself does (AS OF included),
and every later one is answered at that time, from the same world: objects that others
create, change or drop meanwhile do not matter. All objects of the timeline are held at that
time, so that others can read at it too. An object of another timeline is refused at once: its
times mean something else, and waiting for them to meet could take for ever (P6).

**Writes and definitions** are kept in a draft (``draft``), which the statements that follow see.
COMMIT makes all of it durable in one append, at one timestamp: rows, objects, and what is computed
for these. Nothing is durable before. If the transaction has read, what it read must still be so at
that timestamp (``replay``); else it fails with 40001, and none of it happened (P7).

A key that is there already is refused by the statement that adds it, by what is durable then and by
the draft; COMMIT checks all keys again.

An error, of whatever kind, aborts: what was held is released at once, and only ROLLBACK, or
COMMIT, which then is one, ends it. SET is undone by a rollback, SET LOCAL ends in any case. What
a session held that was lost without being closed is let go by the next tick.

Tests: tests/session/test_transaction.py, test_draft.py, test_isolation.py.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

from reclock.engine.read import (
    Readable,
    check_errors,
    check_ready,
    choose,
    kept_at,
    read_time,
    readable,
    settled,
)
from reclock.errors import (
    ConstraintViolation,
    HoldViolation,
    InvalidTransactionState,
    InvalidValue,
    StatementError,
    TimelineMismatch,
    UndefinedName,
)
from reclock.ids import HolderId
from reclock.session.drawn_numbers import LocalValues
from reclock.session.transaction.draft import Draft, removed_and_added
from reclock.session.transaction.keys import Keys
from reclock.session.transaction.publication import publish
from reclock.session.transaction.replay import (
    Back,
    Mark,
    Query,
    Step,
    again,
    failure,
    is_same,
    now,
    read_by,
)
from reclock.sql import statement as s
from reclock.sql.as_of import asked
from reclock.sql.statement.select import AsOf
from reclock.sql.zone import here
from reclock.time import select
from reclock.time.timeline import TimelineContext
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Table
    from reclock.catalog.settings import SessionSettings
    from reclock.engine.core import Core
    from reclock.engine.interrupt import Interrupt
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.session.transaction.replay import Entry, Run
    from reclock.sql.plan.relation import QueryPlan
    from reclock.time.holds import Hold
    from reclock.time.pace import Pace
    from reclock.time.select import Choice

_numbers: Final = count(1)

MOST_READS: Final = 4_096
"""So many queries of a transaction are run again if something that they read has changed."""

_READS = (s.SelectStatement, s.CatalogQuery, s.ExplainPlan, s.ExplainTimestamp, s.Show)
_CURSORS = (s.Declare, s.Fetch, s.CloseCursor)
_OURS = (s.SetVariable, s.SetTransaction, s.Prepare, s.Execute, s.Deallocate, s.Discard, s.Unlisten)
_POINTS = (s.Savepoint, s.Release, s.RollbackTo)
_ROWS = (s.Insert, s.Update, s.Delete, s.Merge, s.Truncate, s.CopyFrom)
_OBJECTS = (
    s.CreateTable, s.CreateView, s.CreateMaterializedView, s.CreateIndex, s.Drop, s.CreateSequence,
    s.AlterTable, s.Rename, s.Comment, s.Grant, s.AlterOwner, s.CreateRole, s.AlterRole, s.DropRole,
)  # fmt: skip
_WRITES = (*_ROWS, *_OBJECTS, s.CreateTableAs)
_OTHERS = (s.Begin, s.Commit, s.Rollback, s.Maintain, *_POINTS, *_CURSORS, *_OURS)


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
    """A savepoint: the draft, what was set, which cursors were open."""

    name: str
    mark: Mark
    draft: Draft | None
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
        self._draft: Draft | None = None
        self._log: list[Entry] = []
        self._read: set[ObjectId] = set()
        self._reads = 0
        self._is_past = False
        self._keys = Keys()
        self._savepoints: list[Point] = []
        self.values: Final = LocalValues()
        """Where the sequences are that it has made."""
        self.aborted = False
        self.began_ms = core.clock.now_ms()
        """What ``now()`` is in it."""
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
        copies = isinstance(statement, s.Copy) and not isinstance(statement.of, s.Subscribe)
        if not (copies or isinstance(statement, _READS + _WRITES + _OTHERS)):
            message = f"{_words(statement)} cannot run inside a transaction"
            raise InvalidTransactionState(message, hint="COMMIT first, and run it by itself")
        if isinstance(statement, _WRITES) and self.settings.get("transaction_read_only") == "on":
            raise _read_only()

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

    # What it sees.

    @property
    def snapshot(self) -> Snapshot | None:
        """What all its reads see, from the first one on."""
        return self._snapshot

    @property
    def has_drafted(self) -> bool:
        """Whether it has done something that only it can see."""
        return self._draft is not None and not self._draft.is_empty

    def draft(self) -> Draft:
        """Return what it has done so far; without a snapshot, over the world as it is."""
        if self._draft is not None:
            return self._draft
        if self._snapshot is not None:
            return Draft.of(self._core, self._snapshot.world, self._snapshot.timestamp)
        world = self._core.world
        return Draft.of(self._core, world, read_time(world, None) or Timestamp(0))

    @property
    def catalog(self) -> Catalog | None:
        """The catalog that its statements are planned with; None is the latest."""
        if self._draft is not None:
            return self._draft.read_catalog
        return None if self._snapshot is None else self._snapshot.world.catalog

    def described(self, now: World) -> World:
        """Return the world whose catalog its queries over that see, from the first one on."""
        if self._draft is not None and self._draft.edits:
            return self._draft.shown
        if self._described is None:
            self._described = now if self._snapshot is None else self._snapshot.world
        return self._described

    # Reads.

    @contextmanager
    def readable(
        self,
        plan_of: Callable[[Catalog], QueryPlan],
        as_of: AsOf | None,
        role: str | None,
        interrupt: Interrupt,
    ) -> Iterator[Readable]:
        """Give what the transaction sees; the first read of an object decides what."""

        def checked(catalog: Catalog) -> QueryPlan:
            plan = plan_of(catalog)
            if plan.root.timeline.timeline is not None and (known := self._timeline) is not None:
                _check_same(known, plan.root.timeline)
            return plan

        def on_base(catalog: Catalog) -> QueryPlan:
            draft = self._over(catalog, interrupt)
            return draft.on_base(checked(draft.read_catalog))

        while self._snapshot is None:
            with readable(
                self._core,
                on_base,
                self.settings,
                as_of,
                role=role,
                hold_all=True,
                interrupt=interrupt,
            ) as at:
                if at.timeline is None:
                    yield self._alone(at, checked)
                    return
                self._hold(at, interrupt)
                self._is_past = as_of is not None
        if self._is_past and self.has_drafted:
            raise _of_the_past()
        draft = self.draft()
        known, catalog = replace(self._snapshot, world=draft.seen), draft.read_catalog
        plan, choice = settled(
            checked(catalog), checked, catalog, lambda p: known.choose(p, self.settings, as_of)
        )
        check_ready(choice)
        check_errors(known.world, plan, choice.timestamp)
        self._note(plan, Query(here(plan_of), role, draft))
        yield Readable(plan, known.world, choice.timestamp, role)

    def reads(
        self, plan_of: Callable[[Catalog], QueryPlan], role: str | None, interrupt: Interrupt
    ) -> None:
        """Have a time for what a statement reads before it writes; it tells what it does itself."""
        log = len(self._log)
        with self.readable(plan_of, None, role, interrupt):
            del self._log[log:]

    def _over(self, catalog: Catalog, interrupt: Interrupt) -> Draft:
        """Return what was done, over another catalog."""
        draft = self.draft()
        if draft.base.catalog is catalog:
            return draft
        world = self._core.world
        if world.catalog is not catalog:
            world = replace(world, catalog=catalog)
        return again(
            self._log, Draft.of(self._core, world, draft.timestamp), interrupt, check=False
        )

    def _alone(self, at: Readable, plan_of: Callable[[Catalog], QueryPlan]) -> Readable:
        """Return what can be read without a time: constants, and tables that it has made."""
        draft = self.draft()
        if not draft.made:
            return at
        return Readable(plan_of(draft.read_catalog), draft.seen, draft.timestamp, at.role)

    def _note(self, plan: QueryPlan, query: Query) -> None:
        """Remember what was read; of very many reads only the objects."""
        read = read_by(plan, query.before.base)
        self._read |= read
        if read and self.settings.get("transaction_read_only") != "on":
            self._reads += 1
            if self._reads <= MOST_READS:
                self._log.append(query)

    def _hold(self, at: Readable, interrupt: Interrupt) -> None:
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
        if self._draft is not None:
            begun = Draft.of(self._core, at.world, at.timestamp)
            self._draft = again(self._log, begun, interrupt, check=False)

    # Writes.

    def run(self, step: Run) -> Any:
        """Run a statement that changes something; return what it tells."""
        before = self.draft()
        after, told = step(before)
        self.check_draft(after)
        self._log.append(Step(here(step), told))
        self._draft = after
        return told

    def check_write(self, table: Table) -> None:
        """Refuse to write where this transaction may not."""
        if self.settings.get("transaction_read_only") == "on":
            raise _read_only()
        if self._is_past:
            raise _of_the_past()
        if (known := self._timeline) is not None:
            _check_same(known, TimelineContext(table.timeline, table.name))

    @property
    def _timeline(self) -> TimelineContext | None:
        """The timeline that it is bound to: that of what it read first, or wrote."""
        if self._snapshot is not None:
            return self._snapshot.timeline
        if self._draft is not None and self._draft.changes:
            first = self._draft.changes[0].table
            return TimelineContext(first.timeline, first.name)
        return None

    def check_draft(self, after: Draft) -> None:
        """Refuse what was just written if a key of it is there already."""
        if self._is_past:
            raise _of_the_past()
        self._keys.check(after, self._core.world)

    def paces(self, world: World) -> frozenset[Pace]:
        """Return the paces that must be as they are now to commit; none if only rows are added."""
        draft = self._draft
        if draft is None or (self._snapshot is None and not draft.edits):
            return frozenset()
        found = {world.catalog.paces[i] for i in self._read if i in world.catalog.paces}
        if draft.edits:
            added, removed = removed_and_added(draft.base.catalog, draft.catalog)
            known = {**world.catalog.paces, **draft.catalog.paces}
            found |= {known[i] for i in (*added, *removed) if i in known}
            found |= {change.table.timeline for change in draft.changes if change.table.timeline}
        return frozenset(found)

    def commit(
        self, writing: Callable[..., AbstractContextManager[World]], interrupt: Interrupt
    ) -> Timestamp | None:
        """Make what was done durable, in one's turn; return the time, None for nothing."""
        draft = self._draft
        if draft is None or draft.is_empty:
            return None
        with writing(self.paces if self.paces(self._core.world) else None) as world:
            latest = self._latest(draft, world, interrupt)
            return publish(self._core, self.values.applied(latest))

    def _latest(self, draft: Draft, world: World, interrupt: Interrupt) -> Draft:
        """Return the draft as it is after all that has happened; hold the lock."""
        same = world.catalog is draft.base.catalog and world.roles is draft.base.roles
        if self._snapshot is None and not draft.edits:
            for change in draft.changes:
                if change.table.id not in world.catalog.items:
                    message = f'table "{change.table.name}" was dropped meanwhile'
                    raise UndefinedName(message, code="42P01")
            return draft
        if self._snapshot is None:
            if same:
                return draft
            begun = Draft.of(self._core, world, draft.timestamp)
            return again(self._log, begun, interrupt, check=False)
        tables = {c.table.id for c in draft.changes} - draft.made
        there = tables <= world.catalog.items.keys()
        since = self._snapshot.timestamp
        if (same or not draft.edits) and there and is_same(self._core, self._read, since):
            return draft
        timeline = self._snapshot.timeline.timeline
        assert timeline is not None
        read = sorted(self._read)
        if self._reads > MOST_READS:
            raise failure()
        try:
            return again(self._log, now(self._core, read, timeline), interrupt, check=True)
        except (StatementError, ConstraintViolation) as error:
            if isinstance(error, ConstraintViolation):
                raise
            raise failure() from error

    # Savepoints.

    def save(self, name: str, cursors: frozenset[str]) -> None:
        """Remember where the transaction is; ``cursors`` are open."""
        settings, kept = self.settings.copy(), self.kept.copy()
        mark = Mark()
        self._log.append(mark)
        self._savepoints.append(Point(name, mark, self._draft, settings, kept, cursors))

    def forget(self, name: str) -> None:
        """Forget a savepoint, and those after it."""
        del self._savepoints[self._place(name) :]

    def go_back(self, name: str, interrupt: Interrupt) -> frozenset[str]:
        """Undo what came after a savepoint; return the cursors that were open then."""
        place = self._place(name)
        point = self._savepoints[place]
        del self._savepoints[place + 1 :]
        self._log.append(Back(point.mark))
        draft = point.draft
        snapshot = self._snapshot
        if draft is not None and snapshot is not None and draft.base is not snapshot.world:
            begun = Draft.of(self._core, snapshot.world, snapshot.timestamp)  # it was read later
            draft = again(self._log, begun, interrupt, check=False)
        self._draft = draft
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
        self._draft, self._log, self._read = None, [], set()
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


def _of_the_past() -> InvalidTransactionState:
    message = "a transaction that reads the past cannot write"
    return InvalidTransactionState(message, hint="leave out AS OF, or write in another transaction")


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
