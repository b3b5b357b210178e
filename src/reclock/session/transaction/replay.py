"""The isolation of transactions: whether the answers that a client got still hold (P7).

A transaction reads at one time t and commits at a later one, w. It is serializable if everything
that it was told at t it would have been told just before w. So each of its statements is kept as a
*step*, a function from a draft (``draft``) to the next one and to what the client was told:

- if nothing that was read has changed since t, the draft is what is committed;
- else all steps run again, over the world of w − 1, under the lock. If each of them tells the same,
  the new draft is committed: the transaction might as well have run then. What an UPDATE tells is
  how many rows it changed, so two that add to one row both succeed, one after the other;
- if one tells something else, the transaction fails with 40001, and nothing of it happened.

Reads that a ROLLBACK TO has undone count too: the client knows them. Queries over many rows are not
answered again under the lock: if what they read has changed, that is 40001.

Tests: tests/session/test_isolation.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from reclock.catalog.item import Table
from reclock.dataflow.graph import collection_of, errors_of
from reclock.engine.quick import FEW_ROWS, is_quick
from reclock.engine.tick import settle
from reclock.errors import SerializationFailure
from reclock.session.transaction.draft import Draft
from reclock.sql.plan.relation import Get, walk
from reclock.time.frontier import at
from reclock.time.pace import order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from reclock.catalog.catalog import Catalog
    from reclock.dataflow.graph import ArrangementId
    from reclock.engine.core import Core
    from reclock.engine.interrupt import Interrupt
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.sql.plan.relation import QueryPlan
    from reclock.time.timeline import Timeline
    from reclock.time.timestamp import Timestamp

    Run: TypeAlias = Callable[[Draft], tuple[Draft, Any]]


@dataclass(frozen=True, eq=False)
class Step:
    """A statement; ``told`` is what the client knows by it."""

    run: Run
    told: object


@dataclass(frozen=True, eq=False)
class Query:
    """A read; what it told is what it tells again in the draft that it read."""

    plan_of: Callable[[Catalog], QueryPlan]
    role: str | None
    before: Draft

    def told(self, draft: Draft, interrupt: Interrupt) -> Counter[tuple[object, ...]]:
        """Return the rows that it gives, in no order."""
        if not is_quick(draft.seen, self.plan_of(draft.read_catalog)):
            raise failure()
        found = draft.answer(self.plan_of, self.role, interrupt)
        columns = [map(repr, column.to_pylist()) for column in found.columns]
        rows = zip(*columns, strict=True) if columns else iter([()] * found.num_rows)
        return Counter(rows)


@dataclass(frozen=True, eq=False)
class Mark:
    """A savepoint."""


@dataclass(frozen=True, eq=False)
class Back:
    """What came after a savepoint is undone."""

    to: Mark


Entry: TypeAlias = "Step | Query | Mark | Back"


def again(log: Iterable[Entry], draft: Draft, interrupt: Interrupt, *, check: bool) -> Draft:
    """Run the steps of a transaction over another world; ``check`` what each tells."""
    marks: dict[int, Draft] = {}
    for entry in log:
        interrupt.check()
        match entry:
            case Step(run, told):
                draft, tells = run(draft)
                if check and tells != told:
                    raise failure()
            case Query(_, _, before):
                if check and entry.told(before, interrupt) != entry.told(draft, interrupt):
                    raise failure()
            case Mark():
                marks[id(entry)] = draft
            case Back(to):
                draft = marks[id(to)]
    return draft


def failure() -> SerializationFailure:
    """Return the error of a transaction that cannot be put after what others did."""
    message = "could not serialize access due to concurrent update"
    detail = (
        "something that the transaction read was changed before it committed; none of it happened"
    )
    return SerializationFailure(message, detail=detail, hint="run the transaction again")


def read_by(plan: QueryPlan, world: World) -> frozenset[ObjectId]:
    """Return the objects of a world that a plan reads."""
    found = {node.item for node in walk(plan.root) if isinstance(node, Get)}
    return frozenset(item for item in found if item in world.catalog.items)


def is_same(core: Core, read: Iterable[ObjectId], since: Timestamp) -> bool:
    """Return whether nothing that was read has changed since a time; hold the lock.

    Only runs that reach beyond that time are looked into; large ones may have changed.
    """
    names = frozenset(read)
    catalog = core.world.catalog
    if not names <= catalog.items.keys():
        return False  # something was dropped, or is another one now
    kept = [catalog[name] for name in names if not isinstance(catalog[name], Table)]
    settled(core, [item.id for item in kept], None)
    for name in names:
        item = core.world.catalog[name]
        state = core.world.of(item)
        if any(entry.table == name and entry.time > since for entry in state.wal.pending):
            return False
        known = state.arrangements.runs.keys() & {collection_of(name), errors_of(name)}
        if any(_has_changed(state, run, since) for run in known):
            return False
    return True


def _has_changed(state: TimelineState, name: ArrangementId, since: Timestamp) -> bool:
    after = at(since.step())
    later = [
        ref.rows
        for ref in state.arrangements.runs[name]
        if ref.rows and not ref.description.upper.precedes(after)
    ]
    if not later or state.upper <= since.step():
        return False
    if sum(later) > FEW_ROWS:
        return True
    changes = state.traces[name].changes(since.step(), state.arrangements.upper)
    return any(batch.num_rows for batch in changes)


def settled(core: Core, items: Iterable[ObjectId], timeline: Timeline | None) -> None:
    """Make the last time complete in some objects, and in a timeline; hold the lock."""
    catalog = core.world.catalog
    paces = {catalog.paces[item] for item in items if item in catalog.paces}
    if timeline is not None:
        paces.add(timeline)
    for pace in sorted(paces, key=order):
        settle(core, pace)


def now(core: Core, read: Sequence[ObjectId], timeline: Timeline) -> Draft:
    """Return an empty draft over all that has happened; hold the lock."""
    settled(core, read, timeline)
    return Draft.of(core, core.world, core.world[timeline].upper.back())
