"""Reduce and Distinct."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.spark.aggregate_text import aggregate_error, aggregate_text
from reclock.spark.batch.relation import Relation, checked, named, select

if TYPE_CHECKING:
    from reclock.sql.plan.relation import Reduce


def reduce(node: Reduce, over: Relation, *, exact: bool) -> Relation:
    """Return a row per group; without keys exactly one, also of no rows."""
    over = over.expanded()
    columns = over.columns
    keys = [columns[k] for k in node.keys]
    values = [aggregate_text(call, columns, exact=exact) for _, call in node.aggregates]
    errors = [aggregate_error(call, columns, exact=exact) for _, call in node.aggregates]
    failing = [error for error in errors if error is not None]
    items = named([*keys, *values]) if keys or values else ["max(true) AS z"]
    names = [f"c{i}" for i in range(len(items))]
    if failing:
        items.append(f"coalesce({', '.join(failing)}, NULL) AS bad")
    text = over.select(items)
    if keys:
        text += f" GROUP BY {', '.join(dict.fromkeys(keys))}"
    if failing:
        text = select(names, f"({text})", checked("bad"))
    return Relation(text, tuple(c.type for c in node.schema))


def distinct(over: Relation) -> Relation:
    """Return each row once that is there."""
    if over.counted:
        return Relation(select(over.names, over.netted("n > 0").source), over.kinds)
    return Relation(f"SELECT DISTINCT * FROM {over.source}", over.kinds)
