"""The leaves of a plan in a world: objects, their shape and their traces.

Tests: tests/engine/test_read.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.item import Index, RelationItem
from reclock.dataflow.graph import collection_of
from reclock.dataflow.scan import Arranged
from reclock.sql.plan.relation import Get, walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.arrangement.shard import Shard
    from reclock.dataflow.graph import ArrangementId
    from reclock.engine.shape import Shape
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.sql.plan.relation import QueryPlan
    from reclock.time.timestamp import Timestamp


def leaves(world: World, plan: QueryPlan) -> list[RelationItem | Index]:
    """Return the objects whose rows a plan reads, each once; system relations are none.

    Of a view that an index keeps that is the index.
    """
    found = dict.fromkeys(node.item for node in walk(plan.root) if isinstance(node, Get))
    items, transients = world.catalog.items, world.transients
    there = [items.get(i) or transients.get(i) for i in found]
    return [item for item in there if isinstance(item, RelationItem | Index)]


def shapes(world: World, plan: QueryPlan) -> tuple[Shape | None, Mapping[ArrangementId, Shard]]:
    """Return the shape and the traces of all that a plan reads; no shape if that is nothing."""
    states = {item.id: world.of(item) for item in leaves(world, plan)}
    if not states:
        return None, {}
    first = next(iter(states.values()))
    if all(state is first for state in states.values()):
        return first.shape, first.traces
    shape = first.shape.reading({item: state.shape for item, state in states.items()})
    traces = {
        name: state.traces[name]
        for item, state in states.items()
        for name in (collection_of(item), *state.shape.indexes.get(item, ()))
    }
    return shape, traces


def leaves_of(
    plan: QueryPlan,
    shape: Shape | None,
    traces: Mapping[ArrangementId, Shard],
    as_of: Timestamp,
) -> dict[ObjectId, list[Arranged]]:
    """Return the arrangements of what a query reads: the collection, then its indexes.

    An index that was made after ``as_of`` is of no use there.
    """
    found: dict[ObjectId, list[Arranged]] = {}
    for node in walk(plan.root):
        if not isinstance(node, Get) or shape is None:
            continue
        names = dict.fromkeys([collection_of(node.item), *shape.indexes.get(node.item, ())])
        found[node.item] = [
            Arranged(shape.graph.arrangements[name].keying, traces[name])
            for name in names
            if name == collection_of(node.item) or traces[name].description.definite_at(as_of)
        ]
    return found
