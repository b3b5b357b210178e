"""Get and Constant: rows of a table of the session, and rows written into the text.

Many rows of a constant are a table of the session too: Spark takes longer to read text than
to be handed Arrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.dataflow.values import from_python
from reclock.spark.batch.relation import Relation, named, select
from reclock.sql.plan.spark_literal import literal_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.sql.plan.relation import Constant
    from reclock.sql.types import Type


TEXT_ROWS: Final = 64
"""A constant of more rows than this is handed to Spark as a table.

Measured: for a hundred rows there is no difference; a sum over 1,280 rows of
``reclock.ticks`` takes 1.2 s from text and 0.5 s from a table.
"""


def leaf(table: str, kinds: Sequence[Type]) -> Relation:
    """Return the rows of ``table``, whose columns ``c0, …`` are as Arrow stores them."""
    items = named([f"c{i}" for i in range(len(kinds))])
    return Relation(select(items, table), tuple(kinds), table=table if kinds else None)


def is_long(node: Constant) -> bool:
    """Return whether a constant's rows are better handed over as a table."""
    return node.width > 0 and sum(abs(count) for _, count in node.rows) > TEXT_ROWS


def table_of(node: Constant) -> pa.Table:
    """Return the rows of a constant as stored columns ``c0, …``, and their counts as ``n``."""
    columns = [
        from_python((row[i] for row, _ in node.rows), column.type)
        for i, column in enumerate(node.columns)
    ]
    counts = pa.array([count for _, count in node.rows], pa.int64())
    names = [*(f"c{i}" for i in range(len(columns))), "n"]
    made = pa.Table.from_arrays([*columns, counts], names)
    if _is_counted(node):
        return made
    return made.take(np.repeat(np.arange(len(counts)), counts)).drop_columns("n")


def named_constant(node: Constant, table: str) -> Relation:
    """Return the rows of a constant that ``table`` holds, as ``table_of`` made them."""
    kinds = tuple(c.type for c in node.columns)
    if not _is_counted(node):
        return leaf(table, kinds)
    items = named([f"c{i}" for i in range(len(kinds))])
    return Relation(select([*items, "n"], table), kinds, counted=True)


def _is_counted(node: Constant) -> bool:
    return any(count < 0 for _, count in node.rows)


def constant(node: Constant) -> Relation:
    """Return the rows of a constant as text; counted only if some count is negative."""
    kinds = tuple(c.type for c in node.columns)
    counted = _is_counted(node)
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
