"""The engine of a database: ticks by ``dataflow.maintain``, answers by ``dataflow.peek``.

Sources are read in this process if the master is this machine, otherwise in Spark tasks.
Ticks and first loads of many rows run in parts (``dataflow.bulk``): in threads of this
process if the master is this machine, otherwise in Spark tasks.

Spark starts when an expression or a query first needs it: a tick that only moves rows into
arrangements runs without, and so does a look-up by a key. Where ticks needed it before, it
starts with the next opening (``dataflow.early``).

Tests: tests/coordinator/test_spark_engine.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.dataflow import peek
from reclock.dataflow.bulk.hydrate import hydrate as hydrate_in_parts
from reclock.dataflow.bulk.load import Load
from reclock.dataflow.bulk.tick import step as step_in_parts
from reclock.dataflow.bulk.workers import Tasks, Threads
from reclock.dataflow.evaluate import Evaluators
from reclock.dataflow.follow import follow
from reclock.dataflow.given import Given
from reclock.dataflow.graph import collection_of
from reclock.dataflow.hydrate import hydrate, hydrate_beside
from reclock.dataflow.maintain import Tick
from reclock.dataflow.operators.temporal import is_due
from reclock.dataflow.read import read_in_tasks
from reclock.dataflow.scan import Arranged
from reclock.dataflow.session import Spark
from reclock.sql.plan.relation import Get, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from reclock.arrangement.precedence import Unhurried
    from reclock.arrangement.shard import Shard
    from reclock.arrangement.store import Store
    from reclock.coordinator.engine import Updates
    from reclock.coordinator.shape import Shape
    from reclock.dataflow.bulk.workers import Workers
    from reclock.dataflow.early import EarlySpark
    from reclock.dataflow.evaluate import Answer, Evaluator, Request
    from reclock.dataflow.exchange import Exchange
    from reclock.dataflow.graph import ArrangementId
    from reclock.dataflow.peek import Pieces
    from reclock.dataflow.stop import Stop
    from reclock.ids import ObjectId
    from reclock.remap.batch import Range
    from reclock.sql.plan.relation import QueryPlan
    from reclock.time.timestamp import Timestamp

BULK_ROWS: Final = 200_000
"""New arrangements that read more updates than this are computed in parts."""

TICK_ROWS: Final = 200_000
"""Ticks of more changes than this run in parts."""

OWN_TICK_ROWS: Final = 2_000_000
"""The same when the parts are threads of this process.

Measured: up to a million changes the exchange between parts costs more than they gain; beyond
it the parts bound the memory of a tick.
"""


class SparkEngine:
    """``coordinator.engine.Engine`` by Spark; ``master`` is any Spark master.

    ``segments`` is where tasks find the runs of large collections, ``early`` a Spark that may
    be starting already.
    """

    def __init__(
        self, segments: Store, master: str | None = None, early: EarlySpark | None = None
    ) -> None:
        self._segments = segments
        self._early = early
        self._spark = Spark(master) if early is None else early.spark
        self._exchanges: list[Exchange] = []
        self._evaluators = Evaluators(self._evaluator)
        self.load: Load | None = None

    def evaluate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer what the steps of a tick ask of Spark, starting it if need be."""
        return self._evaluators.evaluate(requests)

    def step(
        self,
        shape: Shape,
        changes: Mapping[ObjectId, pa.RecordBatch],
        traces: Mapping[ArrangementId, Shard],
        lower: Timestamp,
        upper: Timestamp,
    ) -> Mapping[ArrangementId, Updates]:
        """Run one tick of the graph on the changes; if there are many, in parts."""
        most = TICK_ROWS if self._spark.own_cores is None else OWN_TICK_ROWS
        if sum(delta.num_rows for delta in changes.values()) > most:
            return step_in_parts(
                self._workers(),
                self._segments,
                shape.graph,
                changes,
                traces,
                lower=lower,
                upper=upper,
                limits=shape.limits,
            )
        times = range(lower, upper)
        return Tick(shape.graph, changes, traces, times, limits=shape.limits).run(self)

    def is_due(
        self,
        shape: Shape,
        traces: Mapping[ArrangementId, Shard],
        lower: Timestamp,
        upper: Timestamp,
    ) -> bool:
        """Return whether updates of temporal filters waited for one of these times."""
        pending = shape.graph.waiting.values()
        return any(is_due(traces[name], lower, upper.back()) for name in pending)

    def hydrate(
        self,
        shape: Shape,
        new: frozenset[ArrangementId],
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
        *,
        beside: Unhurried | None = None,
        stop: Stop | None = None,
    ) -> Mapping[ArrangementId, Updates]:
        """Fill new arrangements from those that exist; if they are large, in parts."""
        if beside is not None:
            return hydrate_beside(
                shape.graph, new, traces, as_of, self, limits=shape.limits, beside=beside
            )
        sources = Given.of(shape.graph, new, traces).sources(shape.graph, new)
        if sum(traces[name].rows for name in sources) > BULK_ROWS:
            self.load = Load()
            try:
                return hydrate_in_parts(
                    self._workers(self.load, stop), self._segments, shape.graph, new, traces,
                    as_of=as_of, limits=shape.limits,
                )  # fmt: skip
            finally:
                self.load = None
        return hydrate(shape.graph, new, traces, as_of, self, limits=shape.limits)

    def follow(
        self,
        shape: Shape,
        new: frozenset[ArrangementId],
        before: Mapping[ArrangementId, Shard],
        after: Mapping[ArrangementId, Shard],
        *,
        lower: Timestamp,
        upper: Timestamp,
    ) -> Mapping[ArrangementId, pa.RecordBatch]:
        """Bring new arrangements from one time to another."""
        return follow(
            shape.graph, new, before, after,
            lower=lower, upper=upper, evaluator=self, limits=shape.limits,
        )  # fmt: skip

    def peek(
        self,
        plan: QueryPlan,
        shape: Shape | None,
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
        *,
        stop: Stop | None = None,
    ) -> pa.Table:
        """Answer a query once, from the runs if they suffice."""
        leaves = leaves_of(plan, shape, traces, as_of)
        return peek.peek(self._spark, plan, leaves, as_of, self._segments, stop=stop)

    def stream(
        self,
        plan: QueryPlan,
        shape: Shape | None,
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
        *,
        stop: Stop | None = None,
    ) -> Pieces:
        """Answer a query once, in batches."""
        leaves = leaves_of(plan, shape, traces, as_of)
        return peek.stream(self._spark, plan, leaves, as_of, self._segments, stop=stop)

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

    def read(
        self,
        read: Callable[[Sequence[Range]], Iterator[pa.RecordBatch]],
        ranges: Sequence[Range],
        schema: pa.Schema,
    ) -> Iterator[pa.RecordBatch]:
        """Read a source: here, if the master is this machine, else in Spark tasks."""
        if self._spark.own_cores is None:
            return read_in_tasks(self._spark, read, ranges, schema)
        return read(ranges)

    def close(self) -> None:
        """Give Spark back; it stops with its last user."""
        for exchange in self._exchanges:
            exchange.close()
        (self._early or self._spark).close()

    def _workers(self, load: Load | None = None, stop: Stop | None = None) -> Workers:
        cores = self._spark.own_cores
        if cores is None:
            return Tasks(self._spark, load, stop)
        return Threads(cores, self._evaluators, load, stop)

    def _evaluator(self) -> Evaluator:
        from reclock.dataflow.exchange import Exchange  # noqa: PLC0415 - imports pyspark
        from reclock.dataflow.spark_evaluator import SparkEvaluator  # noqa: PLC0415

        if self._early is not None:
            self._early.needed()
        exchange = Exchange(self._spark.session)
        self._exchanges.append(exchange)
        return SparkEvaluator(exchange)


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
