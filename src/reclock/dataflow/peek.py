"""One-shot answers: a query over collections at one time.

``peek`` answers straight from the runs where that is possible (``direct``), else by one
Spark job (``batch``) over the snapshots of the collections (``scan``). The answer is exactly
what a view of the same query would hold at that time (P3), in the query's order; if the view
would hold an error, ``ExpressionFailed`` is raised with its SQLSTATE. ``dataframe`` gives
the same as a Spark DataFrame, computed when it is used.

Tests: tests/dataflow/test_peek.py.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.dataflow import batch
from reclock.dataflow.direct import direct
from reclock.dataflow.scan import LOCAL_ROWS, frame
from reclock.dataflow.spark_errors import spark_errors
from reclock.dataflow.types import arrow_type
from reclock.sql.plan.relation import Get, walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from reclock.arrangement.store import Store
    from reclock.dataflow.scan import Arranged
    from reclock.dataflow.session import Spark
    from reclock.ids import ObjectId
    from reclock.sql.plan.relation import QueryPlan
    from reclock.time.timestamp import Timestamp

_numbers: Final = count()


def peek(
    spark: Spark,
    plan: QueryPlan,
    leaves: Mapping[ObjectId, Sequence[Arranged]],
    as_of: Timestamp,
    store: Store | None = None,
) -> pa.Table:
    """Return the visible columns of a query at ``as_of``, in its order.

    ``leaves`` has for each collection its arrangements: that of the collection, then any
    index. Tasks open large ones in ``store``; without it the driver reads everything.
    """
    answer = direct(plan, leaves, as_of)
    if answer is not None:
        return answer
    with spark_errors():
        table = _frame(spark, plan, leaves, as_of, store, stored=True).toArrow()
    names = plan.root.schema.names[: plan.visible]
    kinds = [arrow_type(c.type) for c in plan.root.schema.columns[: plan.visible]]
    columns = [
        column if column.type == kind else column.cast(kind)
        for column, kind in zip(table.columns, kinds, strict=False)
    ]
    return pa.Table.from_arrays(columns, names=list(names))


def dataframe(
    spark: Spark,
    plan: QueryPlan,
    leaves: Mapping[ObjectId, Sequence[Arranged]],
    as_of: Timestamp,
    store: Store | None = None,
) -> DataFrame:
    """Return a query at ``as_of`` as a DataFrame with the query's column names.

    It reads runs when it is executed: as long as it is used, ``as_of`` must be held.
    """
    with spark_errors():
        made = _frame(spark, plan, leaves, as_of, store, stored=False)
        return made.toDF(*plan.root.schema.names[: plan.visible])


def _frame(
    spark: Spark,
    plan: QueryPlan,
    leaves: Mapping[ObjectId, Sequence[Arranged]],
    as_of: Timestamp,
    store: Store | None,
    *,
    stored: bool,
) -> DataFrame:
    """Return the query over tables of the session that hold its leaves, which are dropped."""
    read = {node.item: node for node in walk(plan.root) if isinstance(node, Get)}
    rows = [a.shard.rows for a in (leaves[item][0] for item in read) if a.shard is not None]
    session = spark.bulk if sum(rows) > LOCAL_ROWS else spark.session
    tables: dict[ObjectId, str] = {}
    try:
        for item, node in read.items():
            kinds = [column.type for column in node.schema]
            tables[item] = f"reclock_leaf_{next(_numbers)}"
            frame(session, leaves[item][0], kinds, as_of, store).createTempView(tables[item])
        return session.sql(batch.query(plan, tables, stored=stored))
    finally:
        # The query has been resolved: it holds what the tables stand for.
        for table in tables.values():
            session.catalog.dropTempView(table)
