"""The engine of a database: ticks by ``dataflow.maintain``, answers by ``dataflow.peek``.

Spark starts when an expression or a query first needs it; a tick that only moves rows into
arrangements runs without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.dataflow.hydrate import hydrate
from reclock.dataflow.maintain import Tick
from reclock.dataflow.session import Spark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from reclock.arrangement.shard import Shard
    from reclock.coordinator.shape import Shape
    from reclock.dataflow.evaluate import Answer, Evaluator, Request
    from reclock.dataflow.exchange import Exchange
    from reclock.dataflow.graph import ArrangementId
    from reclock.ids import ObjectId
    from reclock.time.timestamp import Timestamp


class SparkEngine:
    """``coordinator.engine.Engine`` by Spark; ``master`` is any Spark master."""

    def __init__(self, master: str | None = None) -> None:
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
    ) -> dict[ArrangementId, pa.RecordBatch]:
        """Fill new arrangements from those that exist."""
        return hydrate(shape.graph, new, traces, as_of, self)

    def close(self) -> None:
        """Give Spark back; it stops with its last user."""
        if self._exchange is not None:
            self._exchange.close()
        self._spark.close()
