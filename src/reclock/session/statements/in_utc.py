"""A notice for views that are created in another time zone: their times of day are in UTC.

It is given if the query has another plan in the session's zone. Cost: nothing in UTC, else planning
the query twice. Tests: tests/functions/test_zones.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.sql.plan.build import plan_query
from reclock.sql.zone import DEFAULT, in_zone

if TYPE_CHECKING:
    from reclock.session.statements.context import Context
    from reclock.sql.statement import CreateMaterializedView, CreateView


def in_utc(context: Context, statement: CreateView | CreateMaterializedView) -> tuple[str, ...]:
    """Return what to tell about a view whose rows would be others in the session's zone."""
    there = context.settings.time_zone
    if there == DEFAULT:
        return ()
    plans = []
    for zone in (there, DEFAULT):
        with in_zone(zone):
            plans.append(plan_query(statement.query, context.catalog).root)
    if plans[0] == plans[1]:
        return ()
    return (f"times of day in {statement.name} are those of UTC",)
