"""The short way of a read: a look-up whose plan is known, at a time that needs no wait.

What ``read`` does for any query, this does for one of which ``Plans`` knows that it is a look-up
(``dataflow.point``): it chooses the time by the same rule, from one world, and reads the rows. It
waits for nothing and asks no engine. Wherever that is not enough it is None, and the statement is
run as any other: inside of a transaction, with AS OF, if what it reads is not complete at its time
or may hold errors, if the role's rights are to be looked up, if the world is to be read again.

Tests: tests/coordinator/test_look_up.py; statements with it and without: test_plans.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from reclock.coordinator.item import RelationItem
from reclock.coordinator.plans import kinds_of, values_of
from reclock.coordinator.read import read_time
from reclock.dataflow.graph import collection_of, errors_of
from reclock.dataflow.point import COLD, look_up
from reclock.sql.statement import SelectStatement
from reclock.time.select import select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.coordinator.plans import Known
    from reclock.coordinator.session import Session
    from reclock.coordinator.world import World
    from reclock.sql.parse import Parsed
    from reclock.sql.schema import Schema
    from reclock.time.timestamp import Timestamp


@dataclass(frozen=True, eq=False, slots=True)
class Looked:
    """Rows, as Arrow gives their values, and the time they were read at."""

    schema: Schema
    rows: list[tuple[Any, ...]]
    timestamp: Timestamp


Answered = Looked | Literal["cold"] | None


def look_up_known(
    session: Session, parsed: Parsed, parameters: Sequence[object], *, patient: bool
) -> Answered:
    """Answer a statement, if it is a look-up that is known; ``COLD`` if that takes patience."""
    statement = parsed.statement
    if not isinstance(statement, SelectStatement) or statement.as_of is not None:
        return None
    kinds = kinds_of(parameters)
    if kinds is None or session.transaction is not None:
        return None
    core = session.core
    world = core.pinned()
    if world is None:
        return None
    try:
        known = core.plans.known(parsed.text, kinds, world.catalog)
        if known is None or known.point is None or not _may(session, parsed.text, world):
            return None
        return _looked(session, known, world, values_of(parameters), patient=patient)
    finally:
        core.unpin(world)


def _may(session: Session, text: str, world: World) -> bool:
    role = session.role
    return role is None or session.core.plans.may(text, role, world.catalog, world.roles)


def _looked(
    session: Session, known: Known, world: World, values: list[object], *, patient: bool
) -> Answered:
    point = known.point
    assert point is not None
    item = world.catalog[point.item]
    assert isinstance(item, RelationItem)
    state = world.of(item)
    isolation = session.settings.isolation
    read_ts = read_time(world, state.timeline)
    choice = select([state.bounds(item)], isolation=isolation, read_ts=read_ts)
    if not choice.ready or choice.linearize:
        return None
    shape, traces = state.shape, state.traces
    errors, collection = errors_of(item.id), collection_of(item.id)
    names = [name for name in (collection, *shape.indexes.get(item.id, ()))
             if point.by_key(shape.graph.arrangements[name].keying)]  # fmt: skip
    if errors in shape.graph.arrangements:
        names.append(errors)
    if not patient and not all(map(traces.is_open, names)):
        return COLD
    if errors in names and traces[names.pop()].rows:
        return None
    when = choice.timestamp
    there = (n for n in names if n == collection or traces[n].description.definite_at(when))
    if (name := next(there, None)) is None:
        return None
    keying = shape.graph.arrangements[name].keying
    rows = look_up(point, values, keying, traces[name], when, patient=patient)
    return rows if rows is None or rows == COLD else Looked(known.schema, rows, when)
