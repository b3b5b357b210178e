"""TopK and Window: what depends on the order of rows; ties are broken by all columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.spark.batch.relation import Relation, checked, select
from reclock.spark.columns import total_order
from reclock.spark.window_text import constants_of, window_error, window_text

if TYPE_CHECKING:
    from reclock.sql.plan.relation import TopK, Window

_MOST: Final = 2**31 - 1
"""How many rows Spark can take or leave out; an answer has no more."""


def top_k(node: TopK, over: Relation) -> Relation:
    """Return the rows of each group in the places asked for."""
    over = over.expanded()
    order = total_order(node.order, over.columns) or "true"
    if node.limit is None and not node.offset:
        return over
    if not node.group:
        offset = min(node.offset, _MOST)
        places = "" if node.limit is None else f" LIMIT {min(node.limit, _MOST - offset)}"
        places += f" OFFSET {offset}" if offset else ""
        return Relation(f"SELECT * FROM {over.source} ORDER BY {order}{places}", over.kinds)
    groups = ", ".join(over.columns.some(node.group))
    place = f"row_number() OVER (PARTITION BY {groups} ORDER BY {order})"
    source = f"(SELECT *, {place} AS place FROM {over.source})"
    conditions = [f"place > {node.offset}"] if node.offset else []
    if node.limit is not None:
        conditions.append(f"place <= {node.offset + node.limit}")
    return Relation(select(over.names, source, " AND ".join(conditions)), over.kinds)


def window(node: Window, over: Relation) -> Relation:
    """Return each row with the values of the window functions."""
    over = over.expanded()
    columns = over.columns
    known = constants_of(node.input)
    partition = columns.some(node.partition)
    calls = [call for _, call in node.calls]
    values = [window_text(call, columns, partition, node.order, known) for call in calls]
    errors = [window_error(call, columns, partition, node.order, known) for call in calls]
    failing = [error for error in errors if error is not None]
    items = [*columns.names]
    items += [f"{text} AS c{len(columns) + i}" for i, text in enumerate(values)]
    kinds = tuple(c.type for c in node.schema)
    if not failing:
        return Relation(over.select(items), kinds)
    items.append(f"coalesce({', '.join(failing)}, NULL) AS bad")
    names = [f"c{i}" for i in range(len(kinds))]
    return Relation(select(names, f"({over.select(items)})", checked("bad")), kinds)
