"""The engine of a database without Spark: real operators, expressions in plain Python.

Ticks and first loads run the graph as ``spark.engine`` does, in one piece, and keep
the state of operators; expressions are those of the reference evaluator, queries are answered by
``ModelEngine``. So what operators keep can be tested through restarts, in a moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from engines.model_engine import ModelEngine
from model.evaluator import PythonEvaluator
from reclock.dataflow.operators.temporal import is_due
from reclock.dataflow.work import InProcess, Work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.arrangement.precedence import Unhurried
    from reclock.arrangement.shard import Shard
    from reclock.dataflow.changes import Changes
    from reclock.dataflow.graph import ArrangementId
    from reclock.dataflow.stop import Stop
    from reclock.dataflow.work import Effort
    from reclock.engine.engine import Updates
    from reclock.engine.shape import Shape
    from reclock.ids import ObjectId
    from reclock.time.timestamp import Timestamp


class LocalEngine(ModelEngine):
    """``engine.engine.Engine`` by the operators of ``dataflow``, without Spark."""

    by_jobs: ClassVar[bool] = False
    """Whether what runs beside ticks is work like all other."""

    def step(
        self,
        shape: Shape,
        changes: Mapping[ObjectId, Changes],
        traces: Mapping[ArrangementId, Shard],
        lower: Timestamp,
        upper: Timestamp,
        *,
        effort: Effort | None = None,
        stop: Stop | None = None,
    ) -> Mapping[ArrangementId, Updates]:
        """Run one tick of the graph on the changes."""
        del stop
        self.steps += 1
        work = Work.tick(
            shape.graph, changes, traces,
            lower=lower, upper=upper, limits=shape.limits, effort=effort,
        )  # fmt: skip
        return self.run(work)

    def run(self, work: Work) -> Mapping[ArrangementId, Updates]:
        """Compute, in this process."""
        return InProcess(PythonEvaluator()).run(work)

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
        """Fill new arrangements from those that exist."""
        work = Work.load(shape.graph, new, traces, as_of, shape.limits)
        if beside is None or self.by_jobs:
            return self.run(work)
        return InProcess(PythonEvaluator()).beside(work, beside, stop)

    def follow(
        self,
        shape: Shape,
        new: frozenset[ArrangementId],
        before: Mapping[ArrangementId, Shard],
        after: Mapping[ArrangementId, Shard],
        *,
        lower: Timestamp,
        upper: Timestamp,
        stop: Stop | None = None,
    ) -> Mapping[ArrangementId, Updates]:
        """Bring new arrangements from one time to another."""
        del stop
        work = Work.catch_up(
            shape.graph, new, before, after, lower=lower, upper=upper, limits=shape.limits
        )
        return self.run(work)
