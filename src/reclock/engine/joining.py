"""Which changes of the catalog need no tick: they are published while one computes.

A change of the catalog that closes a time needs all that is pending folded in (``catalog_change``).
While a tick of the pace is under way that would mean to wait for it, or to lose its work; and where
much is pending, to compute much under the lock. So objects *join* the pace, or leave it, at no
time: U and W stay, what is new is complete before U, and the tick under way is fitted to them
(``flights``).

That is so for tables, indexes, sequences, views and materialized views without a schedule, in a
pace whose times the system gives, and for sources and sinks that are new. A source that comes has
no rows at first, and none of the tick under way, which binds nothing of it: who reads it waits for
its first readable time (``first_time``), as always. What keeps updates until some time only
(``expirations``), sources and sinks that go or change, views that are replaced, and rows that are
written with objects, at the same time, close a time, and wait.

Tests: tests/engine/test_flights.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.catalog.item import Index, MaterializedView, Sink, Source, Table, View
from reclock.catalog.serial.item import Sequence
from reclock.engine.replacement import roots
from reclock.engine.shape import Shape
from reclock.time.pace import Own

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.catalog.item import Item
    from reclock.engine.core import Core
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.time.pace import Pace

MUCH: Final = 10_000
"""More pending rows than this are folded by a tick that does not hold the lock."""

_KINDS: Final = (Table, View, MaterializedView, Index, Sequence)
_COMING: Final = (*_KINDS, Source, Sink)


def concerned(world: World, added: Iterable[Item], removed: Iterable[ObjectId]) -> set[Pace]:
    """Return the paces whose objects come, go or change."""
    made, gone = tuple(added), tuple(removed)
    before = (world.catalog.items.get(item.id) for item in made)
    items = [*made, *filter(None, before), *(world.catalog[item] for item in gone)]
    paces = {**world.catalog.paces, **world.catalog.changed(made, gone).paces}
    return {paces[i.id] for i in items if i.arranges and i.id in paces}


def waits(
    core: Core, world: World, added: Iterable[Item] = (), removed: Iterable[ObjectId] = ()
) -> set[Pace]:
    """Return the paces that a change of the catalog needs as they are after the tick under way."""
    made, gone = tuple(added), tuple(removed)
    return {
        pace for pace in concerned(world, made, gone) if not joins(core, world, pace, made, gone)
    }


def joins(
    core: Core, world: World, pace: Pace, added: Iterable[Item], removed: Iterable[ObjectId] = ()
) -> bool:
    """Return whether objects can come to a pace, and go, while its next tick computes, and should.

    Without a tick under way, and little that is pending, they close a time.
    """
    state, made, gone = world.timelines.get(pace), tuple(added), tuple(removed)
    if state is None or isinstance(pace, Own):
        return False
    flight = core.flights.of(pace)
    if flight is None:
        if core.loop is None or waiting(core, state) <= MUCH:
            return False
    elif not flight.lets_join or not flight.fits(world):
        return False
    items = world.catalog.items
    known = (*(i for i in made if i.id in items), *(items[i] for i in gone))
    if not all(isinstance(i, _COMING) for i in made) or not all(
        isinstance(i, _KINDS) for i in known
    ):
        return False
    catalog = world.catalog.changed(made, gone)
    scheduled = any(isinstance(i, MaterializedView) and i.schedule is not None for i in made)
    if scheduled or roots(world.catalog, catalog):
        return False  # they change at a time
    lost = set(gone)
    left = [view for view in world.transients.values() if not view.depends & lost]
    shape = Shape.of(catalog, pace, left)
    untils = core.expirations.untils(state, shape)
    there = state.shape.graph.arrangements.keys()
    return all(until is None for name, until in untils.items() if name not in there)


def waiting(core: Core, state: TimelineState) -> int:
    """Return how many rows the next tick of a pace folds."""
    return sum(entry.run.rows for entry in state.wal.pending) + core.intakes.rows(state.pace)
