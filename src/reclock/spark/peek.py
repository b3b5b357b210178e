"""One-shot answers: a query over collections at one time.

``peek`` answers straight from the runs where that is possible (``direct``), else by one Spark job
(``batch``) over the snapshots of the collections (``scan``). The answer is exactly what a view of
the same query would hold at that time (P3), in the query's order; if the view would hold an error,
``ExpressionFailed`` is raised with its SQLSTATE. ``stream`` gives the same rows a batch at a time,
without having all of them in memory where no order of rows is wanted that are read from the runs;
``dataframe`` the same as a Spark DataFrame, computed when it is used.

A job of a query, its planning and the start of Spark run in a thread of their own
(``engine.detached``): a statement that is cancelled, or interrupted by Ctrl-C, ends at once, and an
interrupt never breaks off a conversation with the JVM, whose next answer would be the wrong one.

Tests: tests/spark/test_peek.py, test_left.py.
"""

from __future__ import annotations

from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa

from reclock.dataflow import direct
from reclock.dataflow.pieces import Pieces
from reclock.dataflow.types import arrow_type
from reclock.engine.detached import apart
from reclock.engine.interrupt import Interrupt
from reclock.spark import batch
from reclock.spark.errors import spark_errors
from reclock.spark.exact_text import EXACT_ROWS, register_exact
from reclock.spark.frame import LOCAL_ROWS, frame
from reclock.spark.interval_reader import register_reader
from reclock.spark.local_relation import local_relation
from reclock.spark.pool import Pool, title_of, titled
from reclock.spark.spill import fetched, spilled
from reclock.spark.stoppable import stoppable
from reclock.sql.plan.relation import Constant, FlatMap, Get, Join, Reduce, TopK, walk
from reclock.sql.plan.scalar import Call, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from reclock.arrangement.store import Store
    from reclock.dataflow.scan import Arranged
    from reclock.dataflow.stop import Stop
    from reclock.ids import ObjectId
    from reclock.spark.session import Spark
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.relation import QueryPlan
    from reclock.time.timestamp import Timestamp

_numbers: Final = count()

JOINED_ROWS: Final = 500_000
"""A query of which a join may give more rows than this runs as generated code.

Measured: interpreting costs as much as generating code does at a million rows.
"""


SPILLED_ROWS: Final = 50_000
"""The rows of a query that may give more than this pass through files, not through memory."""


def peek(
    spark: Spark,
    plan: QueryPlan,
    leaves: Mapping[ObjectId, Sequence[Arranged]],
    as_of: Timestamp,
    store: Store | None = None,
    *,
    stop: Stop | None = None,
) -> pa.Table:
    """Return the visible columns of a query at ``as_of``, in its order.

    ``leaves`` has for each collection its arrangements: that of the collection, then any
    index. Tasks open large ones in ``store``; without it the driver reads everything. Its jobs
    are cancelled if ``stop`` asks for an end.
    """
    answer = direct.direct(plan, leaves, as_of)
    if answer is not None:
        return answer

    def run(stop: Stop) -> pa.Table:
        with spark_errors():
            session = _session(spark, plan, leaves)
            context = session.sparkContext
            with titled(context, title(plan), Pool.QUERIES), stoppable(context, stop):
                return _frame(session, plan, leaves, as_of, store).toArrow()

    table = apart(stop or Interrupt(), run)
    return pa.Table.from_arrays(_stored(table.columns, plan), names=_names(plan))


def stream(
    spark: Spark,
    plan: QueryPlan,
    leaves: Mapping[ObjectId, Sequence[Arranged]],
    as_of: Timestamp,
    store: Store | None = None,
    *,
    stop: Stop | None = None,
) -> Pieces:
    """Return the rows that ``peek`` returns, in its order, as batches of any size."""
    scanned = direct.pieces(plan, leaves, as_of)
    if scanned is not None:
        return Pieces(scanned, reads_runs=True)
    if direct.way(plan, leaves) is not None or _gives_few(plan, leaves):
        return Pieces.of(peek(spark, plan, leaves, as_of, store, stop=stop))

    def run(stop: Stop) -> tuple[DataFrame, Generator[pa.RecordBatch, None, None] | None]:
        with spark_errors():
            session = _session(spark, plan, leaves)
            context = session.sparkContext
            with titled(context, title(plan), Pool.QUERIES), stoppable(context, stop):
                frame = _frame(session, plan, leaves, as_of, store)
        if spark.own_cores is None:
            return frame, None
        return frame, spilled(frame, title(plan), spark.scratch, stop)

    frame, batches = apart(stop or Interrupt(), run)
    if batches is None:
        return Pieces(_cast(fetched(frame, title(plan), stop), plan), reads_runs=True)
    return Pieces(_cast(batches, plan))


def _cast(
    batches: Generator[pa.RecordBatch, None, None], plan: QueryPlan
) -> Generator[pa.RecordBatch, None, None]:
    with closing(batches):
        for batch in batches:
            yield pa.RecordBatch.from_arrays(_stored(batch.columns, plan), names=_names(plan))


def title(plan: QueryPlan) -> str:
    """Return what Spark calls the jobs of a query: by what it reads."""
    read = dict.fromkeys(node.name for node in walk(plan.root) if isinstance(node, Get))
    return title_of("query", None, read)


def _names(plan: QueryPlan) -> list[str]:
    return list(plan.root.schema.names[: plan.visible])


C = TypeVar("C", pa.Array, pa.ChunkedArray)


def _stored(columns: Sequence[C], plan: QueryPlan) -> list[C]:
    """Return what Spark gave as the columns that a query has."""
    kinds = [arrow_type(c.type) for c in plan.root.schema.columns[: plan.visible]]
    return [
        column if column.type == kind else column.cast(kind)
        for column, kind in zip(columns, kinds, strict=False)
    ]


def _session(
    spark: Spark, plan: QueryPlan, leaves: Mapping[ObjectId, Sequence[Arranged]]
) -> SparkSession:
    return spark.session if _is_small(plan, leaves) else spark.bulk


def _gives_few(plan: QueryPlan, leaves: Mapping[ObjectId, Sequence[Arranged]]) -> bool:
    """Return whether an answer has few rows, as far as can be known before."""
    most = _most_rows(plan.root, _sizes(plan, leaves), _elements)
    return most[plan.root] <= SPILLED_ROWS


def _elements(node: FlatMap) -> int:
    """Return how many rows become of one: of arrays that are stored not many, of a series its."""
    match node.array:
        case Call(function, arguments) if function.name == "generate_series":
            values = [a.value if isinstance(a, Literal) else None for a in arguments]
            match values:
                case [int(first), int(last)]:
                    return max(0, last - first + 1)
                case [int(first), int(last), int(step)] if step:
                    return max(0, (last - first) // step + 1)
            return SPILLED_ROWS + 1
    return 1


def way(plan: QueryPlan, leaves: Mapping[ObjectId, Sequence[Arranged]]) -> str:
    """Say how ``peek`` would answer a query."""
    found = direct.way(plan, leaves)
    if found is not None:
        return f"{found}: without a Spark job"
    sizes = _sizes(plan, leaves)
    listed = ", ".join(f"{rows} updates of {node.name}" for node, rows in sizes.items())
    how = "in one task" if _is_small(plan, leaves) else "on all cores"
    return f"a Spark job {how}" + (f" over {listed}" if listed else "")


def _sizes(plan: QueryPlan, leaves: Mapping[ObjectId, Sequence[Arranged]]) -> dict[Get, int]:
    """Return how many updates each collection has that a query reads."""
    read = [node for node in walk(plan.root) if isinstance(node, Get)]
    shards = {node: leaves[node.item][0].shard for node in read}
    return {node: 0 if shard is None else shard.rows for node, shard in shards.items()}


def _is_small(plan: QueryPlan, leaves: Mapping[ObjectId, Sequence[Arranged]]) -> bool:
    """Return whether one task without shuffles or generated code answers a query soonest."""
    sizes = _sizes(plan, leaves)
    return (
        sum(sizes.values()) <= LOCAL_ROWS
        and max(_most_rows(plan.root, sizes).values()) <= JOINED_ROWS
    )


def _most_rows(
    root: Node, sizes: Mapping[Get, int], elements: Callable[[FlatMap], int] = lambda _: 1
) -> dict[Node, int]:
    """Return a bound on how many rows each node has, if arrays have so many elements."""
    most: dict[Node, int] = {}
    for node in walk(root):
        below = [most[child] for child in node.inputs]
        match node:
            case Get():
                most[node] = sizes[node]
            case Constant():
                most[node] = sum(abs(count) for _, count in node.rows)
            case FlatMap():
                most[node] = sum(below) * elements(node)
            case Join():
                most[node] = _most_joined(node, *below)
            case Reduce() if not node.keys:
                most[node] = 1
            case TopK() if not node.group and node.limit is not None:
                most[node] = min(node.limit, *below)
            case _:
                most[node] = sum(below)
    return most


def _most_joined(node: Join, left: int, right: int) -> int:
    """Return a bound on the rows of a join: a unique key has at most one match."""
    lefts, rights = {p.left for p in node.on}, {p.right for p in node.on}
    if any(key <= rights for key in node.right.unique_keys):
        return left + right
    if any(key <= lefts for key in node.left.unique_keys):
        return left + right
    return left * right + left + right


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
        made = _frame(spark.bulk, plan, leaves, as_of, store)
        return made.toDF(*plan.root.schema.names[: plan.visible])


def _frame(
    session: SparkSession,
    plan: QueryPlan,
    leaves: Mapping[ObjectId, Sequence[Arranged]],
    as_of: Timestamp,
    store: Store | None,
) -> DataFrame:
    """Return the query over temporary views of the session, which are dropped again."""
    name = f"reclock_{next(_numbers)}"
    read = {node.item: node for node in walk(plan.root) if isinstance(node, Get)}
    tables = {item: f"{name}_leaf_{i}" for i, item in enumerate(read)}
    made: list[str] = []
    try:
        for item, node in read.items():
            kinds = [column.type for column in node.schema]
            made.append(tables[item])
            frame(session, leaves[item][0], kinds, as_of, store).createTempView(tables[item])
        exact = sum(_sizes(plan, leaves).values()) <= EXACT_ROWS
        script = batch.query(plan, tables, f"{name}_part", exact=exact)
        texts = [*(part.text for part in script.parts), script.text]
        register_exact(session, texts)
        register_reader(session, texts)
        for table, rows_of in script.constants:
            made.append(table)
            local_relation(session, rows_of).createTempView(table)
        for part in script.parts:
            rows = session.sql(part.text)
            made.append(part.name)
            (rows.localCheckpoint() if part.computed else rows).createTempView(part.name)
        return session.sql(script.text)
    finally:
        # The query has been resolved: it holds what the views stand for.
        for view in made:
            session.catalog.dropTempView(view)
