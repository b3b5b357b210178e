"""Tables as the log of writes has them, while a tick that folds it in computes.

Definition. Tables are complete before W, the frontier of writes: what is pending for them is
durable, with its times. So a table at a time before W is its collection, complete before U, and
the writes of [U, W). ``with_log`` gives a world in which that is so, of the tables that a plan
reads and of nothing else: it is read from, and never published.

Only plans that read tables alone, of a timeline with a tick under way (``flights``): otherwise a
tick folds them in at once, and is of use to the next reader too. Indexes do not have what is
pending, so none is used.

Cost: that of opening the runs of pending writes. Keeps P1, P7.
Tests: tests/engine/test_flights.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.catalog.item import Table
from reclock.dataflow.graph import collection_of
from reclock.engine.arrangements import following
from reclock.engine.leaves import leaves
from reclock.engine.system_answer import system_relations

if TYPE_CHECKING:
    from reclock.engine.core import Core
    from reclock.engine.world import World
    from reclock.sql.plan.relation import QueryPlan


def with_log(core: Core, world: World, plan: QueryPlan) -> World:
    """Return a world in which the tables that a plan reads are complete before W, if that helps."""
    timeline = plan.root.timeline.timeline
    if timeline is None or not core.flights.among([timeline]):
        return world
    tables = leaves(world, plan)
    if not all(isinstance(item, Table) for item in tables) or any(
        system_relations(plan.root, world.catalog.system)
    ):
        return world
    state = world[timeline]
    if state.settled:
        return world
    runs = {}
    for table in tables:
        refs = state.arrangements.runs[collection_of(table.id)]
        for entry in state.wal.of_table(table.id):
            description = following(refs, entry.time.step())
            refs = (*refs, replace(entry.run, description=description))
        runs[collection_of(table.id)] = refs
    arrangements = replace(state.arrangements, runs=runs, own=state.table_upper)
    shape = replace(state.shape, indexes={})
    return world.with_states([replace(state, arrangements=arrangements, shape=shape)])
