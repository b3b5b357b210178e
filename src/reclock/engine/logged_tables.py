"""Tables as the log of writes has them, while a tick that folds it in computes.

Definition. Tables are complete before W, the frontier of writes: what is pending for them is
durable, with its times. So a table at a time before W is its collection, complete before U, and
the writes of [U, W). ``with_log`` gives a world in which that is so, of the tables that a plan
reads and of nothing else: it is read from, and never published.

Only plans that read tables alone, of a timeline with a tick under way (``flights``): otherwise a
tick folds them in at once, and is of use to the next reader too. What reads to write under the lock
(``session.statements.read_then_write``) does so also where that tick would take long. Indexes do
not have what is pending, so none is used.

Cost: that of opening the runs of pending writes. Keeps P1, P7.
Tests: tests/engine/test_flights.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.catalog.item import Table
from reclock.dataflow.graph import collection_of
from reclock.engine.arrangements import following
from reclock.engine.joining import MUCH, waiting
from reclock.engine.leaves import leaves
from reclock.engine.system_answer import system_relations

if TYPE_CHECKING:
    from reclock.engine.core import Core
    from reclock.engine.world import World
    from reclock.sql.plan.relation import QueryPlan
    from reclock.time.timeline import Timeline


def in_log(core: Core, world: World, plan: QueryPlan) -> bool:
    """Return whether a plan reads tables alone, and the next tick of their timeline takes long.

    It is under way, or has much to fold in.
    """
    timeline = plan.root.timeline.timeline
    if timeline is None or timeline not in world.timelines or not _reads_tables(world, plan):
        return False
    if core.flights.among([timeline]):
        return True
    return core.loop is not None and waiting(core, world[timeline]) > MUCH


def with_log(core: Core, world: World, plan: QueryPlan) -> World:
    """Return a world in which the tables that a plan reads are complete before W, if that helps."""
    timeline = plan.root.timeline.timeline
    if timeline is None or not core.flights.among([timeline]) or not _reads_tables(world, plan):
        return world
    return logged(world, timeline, plan)


def logged(world: World, timeline: Timeline, plan: QueryPlan) -> World:
    """Return a world in which the tables that a plan reads are complete before W."""
    state = world[timeline]
    if state.settled:
        return world
    runs = {}
    for table in leaves(world, plan):
        refs = state.arrangements.runs[collection_of(table.id)]
        for entry in state.wal.of_table(table.id):
            description = following(refs, entry.time.step())
            refs = (*refs, replace(entry.run, description=description))
        runs[collection_of(table.id)] = refs
    arrangements = replace(state.arrangements, runs=runs, own=state.table_upper)
    shape = replace(state.shape, indexes={})
    return world.with_states([replace(state, arrangements=arrangements, shape=shape)])


def _reads_tables(world: World, plan: QueryPlan) -> bool:
    return all(isinstance(item, Table) for item in leaves(world, plan)) and not any(
        system_relations(plan.root, world.catalog.system)
    )
