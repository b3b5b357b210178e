"""Get and Constant: rows of a table of the session, and rows written into the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.dataflow.batch.relation import Relation, named, select
from reclock.dataflow.types import has_months, to_spark
from reclock.sql.plan.spark_literal import literal_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.sql.plan.relation import Constant
    from reclock.sql.types import Type


def leaf(table: str, kinds: Sequence[Type]) -> Relation:
    """Return the rows of ``table``, whose columns ``c0, …`` are as Arrow stores them."""
    items = named([to_spark(f"c{i}", kind) for i, kind in enumerate(kinds)])
    as_it_is = None if any(map(has_months, kinds)) or not kinds else table
    return Relation(select(items, table), tuple(kinds), table=as_it_is)


def constant(node: Constant) -> Relation:
    """Return the rows of a constant; counted only if some count is negative."""
    kinds = tuple(c.type for c in node.columns)
    counted = any(count < 0 for _, count in node.rows)
    names = [f"c{i}" for i in range(len(kinds))] or ["z"]
    rows = []
    for row, count in node.rows:
        values = [literal_text(v, kind) for v, kind in zip(row, kinds, strict=True)] or ["true"]
        if counted:
            rows.append(f"({', '.join([*values, f'{count}L'])})")
        else:
            rows += [f"({', '.join(values)})"] * count
    carried = ["n"] if counted else []
    if rows:
        listed = ", ".join([*names, *carried])
        text = f"SELECT * FROM VALUES {', '.join(rows)} AS v({listed})"
    else:
        nulls = [f"CAST(NULL AS {kind.spark_name})" for kind in kinds]
        text = select(named(nulls), "VALUES (1) AS v(x)", "false")
    return Relation(text, kinds, counted)
