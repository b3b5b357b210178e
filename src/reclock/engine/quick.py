"""The queries that are quick enough to be answered under the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.dataflow.direct import scanned_rows
from reclock.engine.leaves import leaves, leaves_of, shapes

if TYPE_CHECKING:
    from reclock.engine.world import World
    from reclock.sql.plan.relation import QueryPlan

FEW_ROWS: Final = 16_384
"""A scan of so many updates is as quick as the write."""


def is_quick(world: World, plan: QueryPlan, few: int = FEW_ROWS) -> bool:
    """Return whether a query is answered from a few rows, without Spark."""
    shape, traces = shapes(world, plan)
    if shape is None:
        return False
    uppers = [world.of(item).upper for item in leaves(world, plan)]
    rows = scanned_rows(plan, leaves_of(plan, shape, traces, min(uppers).back()))
    return rows is not None and rows <= few
