"""The engine of a database: ticks by ``dataflow.maintain``, answers by ``dataflow.peek``.

Spark starts when an expression or a query first needs it: a tick that only moves rows into
arrangements runs without, and so does a look-up by a key.

Tests: tests/coordinator/test_spark_engine.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.dataflow import peek
from reclock.dataflow.bulk.hydrate import hydrate as hydrate_in_parts
from reclock.dataflow.bulk.schedule import Schedule
from reclock.dataflow.graph import collection_of
from reclock.dataflow.hydrate import hydrate
from reclock.dataflow.maintain import Tick
from reclock.dataflow.scan import Arranged
from reclock.dataflow.session import Spark
from reclock.sql.plan.relation import Get, walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from reclock.arrangement.shard import Shard
    from reclock.arrangement.store import Store
    from reclock.coordinator.engine import Updates
    from reclock.coordinator.shape import Shape
    from reclock.dataflow.evaluate import Answer, Evaluator, Request
    from reclock.dataflow.exchange import Exchange
    from reclock.dataflow.graph import ArrangementId
    from reclock.ids import ObjectId
    from reclock.sql.plan.relation import QueryPlan
    from reclock.time.timestamp import Timestamp

BULK_ROWS: Final = 200_000
"""New arrangements that read more updates than this are computed in parts."""

ASKING_ROWS: Final = 2_000_000
"""The same on this machine alone when Spark has to compute something for them.

Measured: up to there one job over all rows costs less than the exchange between parts.
"""


class SparkEngine:
    """``coordinator.engine.Engine`` by Spark; ``master`` is any Spark master.

    ``segments`` is where tasks find the runs of large collections.
    """

    def __init__(self, segments: Store, master: str | None = None) -> None:
        self._segments = segments
        self._spark = Spark(master)
        self._exchange: Exchange | None = None
        self._evaluator: Evaluator | None = None

    def evaluate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer what the steps of a tick ask of Spark, starting it if need be."""
        if self._evaluator is None:
            from reclock.dataflow.exchange import Exchange  # noqa: PLC0415 - imports pyspark
            from reclock.dataflow.spark_evaluator import SparkEvaluator  # noqa: PLC0415

            self._exchange = Exchange(self._spark.session)
            self._evaluator = SparkEvaluator(self._exchange)
        return self._evaluator.evaluate(requests)

    def step(
        self,
        shape: Shape,
        changes: Mapping[ObjectId, pa.RecordBatch],
        traces: Mapping[ArrangementId, Shard],
        lower: Timestamp,
        upper: Timestamp,
    ) -> dict[ArrangementId, pa.RecordBatch]:
        """Run one tick of the graph on the changes."""
        return Tick(shape.graph, changes, traces, range(lower, upper)).run(self)

    def hydrate(
        self,
        shape: Shape,
        new: frozenset[ArrangementId],
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
    ) -> Mapping[ArrangementId, Updates]:
        """Fill new arrangements from those that exist; if they are large, in parts."""
        schedule = Schedule.of(shape.graph, new, traces)
        alone = self._spark.own_cores is not None
        if schedule.rows(traces) > (ASKING_ROWS if alone and schedule.asks else BULK_ROWS):
            return hydrate_in_parts(self._spark, self._segments, schedule, traces, as_of)
        return hydrate(shape.graph, new, traces, as_of, self)

    def peek(
        self,
        plan: QueryPlan,
        shape: Shape | None,
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
    ) -> pa.Table:
        """Answer a query once, from the runs if they suffice."""
        leaves = leaves_of(plan, shape, traces, as_of)
        return peek.peek(self._spark, plan, leaves, as_of, self._segments)

    def dataframe(
        self,
        plan: QueryPlan,
        shape: Shape | None,
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
    ) -> DataFrame:
        """Return a query as a DataFrame, computed when it is used."""
        leaves = leaves_of(plan, shape, traces, as_of)
        return peek.dataframe(self._spark, plan, leaves, as_of, self._segments)

    def close(self) -> None:
        """Give Spark back; it stops with its last user."""
        if self._exchange is not None:
            self._exchange.close()
        self._spark.close()


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
            if traces[name].description.definite_at(as_of)
        ]
    return found
