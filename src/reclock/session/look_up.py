"""The short way of a read: a look-up with a cached plan.

What ``read`` and an engine do for any query, this does for one of which ``Plans`` knows that it is
a look-up (``dataflow.point``): it reads the rows from one world at one time, which is chosen by the
same rule. Without patience it waits for nothing: what is not complete at its time, or not in
memory, is ``COLD``, and so is a transaction, whose first read may have to wait. With patience the
time is that of ``Session.readable``, which waits, and raises the errors that a view holds.

It is None, and the statement is run as any other, with AS OF, with a NULL, if the role's rights
are to be looked up, if the catalog has changed, or if there are many rows.

Tests: tests/session/test_look_up.py; statements with it and without: test_plans.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from reclock.catalog.item import Index, RelationItem
from reclock.dataflow.graph import collection_of, errors_of
from reclock.dataflow.point import COLD, look_up
from reclock.engine.read import read_time
from reclock.session.plans import kinds_of, values_of
from reclock.session.speaker import Speaker
from reclock.sql.statement import SelectStatement
from reclock.time.select import select

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from reclock.catalog.catalog import Catalog
    from reclock.dataflow.graph import ArrangementId
    from reclock.engine.read import Readable
    from reclock.engine.world import World
    from reclock.session.plans import Kinds, Known
    from reclock.session.system import System
    from reclock.sql.plan.relation import QueryPlan
    from reclock.sql.schema import Schema
    from reclock.sql.statement import Parsed
    from reclock.sql.statement.select import AsOf
    from reclock.time.timestamp import Timestamp


@dataclass(frozen=True, eq=False, slots=True)
class Looked:
    """Rows, as Arrow gives their values, and the time they were read at."""

    schema: Schema
    rows: list[tuple[Any, ...]]
    timestamp: Timestamp


class Looking(Speaker, Protocol):
    """A session that looks something up."""

    @property
    def core(self) -> System:
        """The state that all sessions share."""
        ...

    def readable(
        self, plan_of: Callable[[Catalog], QueryPlan], as_of: AsOf | None, /
    ) -> AbstractContextManager[Readable]:
        """Give a world in which a query can be answered: the transaction's, or the latest."""
        ...


Answered = Looked | Literal["cold"] | None


def look_up_known(
    session: Looking, parsed: Parsed, parameters: Sequence[object], *, patient: bool
) -> Answered:
    """Answer a statement, if it is a look-up that is known; ``COLD`` if that takes patience."""
    statement = parsed.statement
    if not isinstance(statement, SelectStatement) or statement.as_of is not None:
        return None
    kinds = kinds_of(parameters)
    if kinds is None or (session.transaction is not None and session.transaction.has_drafted):
        return None
    if patient:
        return _waited(session, parsed.text, statement, tuple(parameters), kinds)
    world = session.core.pinned()
    if world is None:
        return None
    try:
        known = _known(session, parsed.text, kinds, world)
        if known is None or session.transaction is not None:
            return None if known is None else COLD
        return _at_once(session, known, world, values_of(parameters))
    finally:
        session.core.unpin(world)


def _known(session: Looking, text: str, kinds: Kinds, world: World) -> Known | None:
    """Return what is known of a look-up that the role may run."""
    plans, catalog, role = session.core.plans, _catalog(session, world), session.role
    known = plans.known(text, kinds, catalog)
    if known is None or known.point is None:
        return None
    return known if role is None or plans.may(text, role, catalog, world.roles) else None


def _catalog(session: Looking, world: World) -> Catalog:
    """Return the catalog that a session sees."""
    seen = None if session.transaction is None else session.transaction.catalog
    return world.catalog if seen is None else seen


def _at_once(session: Looking, known: Known, world: World, values: list[object]) -> Answered:
    """Look up in a world as it is."""
    item = _item(known, world)
    state = world.of(item)
    isolation, read_ts = session.settings.isolation, read_time(world, state.timeline)
    choice = select([world.bounds(item)], isolation=isolation, read_ts=read_ts)
    if not choice.ready or choice.linearize:
        return COLD
    errors, names = errors_of(item.id), _names(known, world)
    if errors in state.shape.graph.arrangements:
        names.append(errors)
    if not all(map(state.traces.is_open, names)) or (
        errors in names and state.traces[names.pop()].rows
    ):
        return COLD
    return _rows(known, world, names, values, choice.timestamp, patient=False)


def _waited(
    session: Looking,
    text: str,
    statement: SelectStatement,
    parameters: tuple[object, ...],
    kinds: Kinds,
) -> Looked | None:
    """Look up at the time of any read of the session, however long that takes."""
    core = session.core
    with core.reading() as world:
        known, catalog = _known(session, text, kinds, world), _catalog(session, world)
    if known is None:
        return None
    if session.transaction is not None:
        session.transaction.admit(statement)

    def plan_of(seen: Catalog) -> QueryPlan:
        if seen is catalog and known.plan is not None:
            return known.plan  # with values that are late: which objects it reads is known
        return core.plans.plan(text, statement.query, parameters, seen)

    with session.readable(plan_of, None) as at:
        if at.world.catalog is not catalog or at.plan is not known.plan:
            return None
        names, values = _names(known, at.world), values_of(parameters)
        found = _rows(known, at.world, names, values, at.timestamp, patient=True)
        assert found != COLD
        return found


def _item(known: Known, world: World) -> RelationItem | Index:
    assert known.point is not None
    item = world.catalog[known.point.item]
    assert isinstance(item, RelationItem | Index)
    return item


def _names(known: Known, world: World) -> list[ArrangementId]:
    """Return the arrangements that can be asked."""
    item, point = _item(known, world), known.point
    assert point is not None
    shape = world.of(item).shape
    names = (collection_of(item.id), *shape.indexes.get(item.id, ()))
    return [name for name in names if point.by_key(shape.graph.arrangements[name].keying)]


def _rows(
    known: Known,
    world: World,
    names: list[ArrangementId],
    values: list[object],
    when: Timestamp,
    *,
    patient: bool,
) -> Answered:
    """Read the rows from the first arrangement that has them at a time."""
    item, point = _item(known, world), known.point
    assert point is not None
    state = world.of(item)
    for name in names:
        shard = state.traces[name]
        if name == collection_of(item.id) or shard.description.definite_at(when):
            keying = state.shape.graph.arrangements[name].keying
            rows = look_up(point, values, keying, shard, when, patient=patient)
            return rows if rows is None or rows == COLD else Looked(known.schema, rows, when)
    return None
