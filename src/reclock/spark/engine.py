"""The engine of a database: ticks by ``dataflow.maintain``, answers by ``spark.peek``.

Ticks, first loads and catching up are ``Work``. It runs in this process if that takes a moment,
else as a Spark job, on every master (``dataflow.placement``); so do merges (``dataflow.merge``).

Spark starts when an expression or a query first needs it: a tick that only moves rows into
arrangements runs without, and so does a look-up by a key. Where ticks needed it before, it
starts with the next opening (``spark.early``).

Tests: tests/spark/test_engine.py.
"""

from __future__ import annotations

from threading import Lock
from time import thread_time
from typing import TYPE_CHECKING

from reclock.dataflow.costs import CLOSE, MERGE, READ, weight
from reclock.dataflow.evaluate import Evaluators
from reclock.dataflow.job.load import Load
from reclock.dataflow.job.tasks import TasksHere
from reclock.dataflow.merge import merge_here, merge_in_tasks
from reclock.dataflow.operators.temporal import is_due
from reclock.dataflow.placement import DRIVER_SECONDS, Execution, Place, Placement
from reclock.dataflow.work import Effort, InProcess, Work
from reclock.engine.leaves import leaves_of
from reclock.spark import peek
from reclock.spark.job import Chains, Job, SparkCluster
from reclock.spark.pool import Pool, title_of
from reclock.spark.session import Spark
from reclock.spark.staging import Readings, stage
from reclock.spark.tasks import SparkTasks

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from reclock.arrangement.precedence import Unhurried
    from reclock.arrangement.run import RunRef
    from reclock.arrangement.shard import Shard
    from reclock.arrangement.store import Store
    from reclock.dataflow.changes import Changes
    from reclock.dataflow.evaluate import Answer, Evaluator, Request
    from reclock.dataflow.graph import ArrangementId
    from reclock.dataflow.job.tasks import Tasks
    from reclock.dataflow.merge import Merge
    from reclock.dataflow.piece import Piece
    from reclock.dataflow.pieces import Pieces
    from reclock.dataflow.placement import Outlook
    from reclock.dataflow.stage import Stager, Together
    from reclock.dataflow.stop import Stop
    from reclock.engine.engine import Updates
    from reclock.engine.shape import Shape
    from reclock.ids import ObjectId
    from reclock.remap.batch import Range
    from reclock.spark.early import EarlySpark
    from reclock.spark.exchange import Exchange
    from reclock.sql.plan.relation import QueryPlan
    from reclock.time.timestamp import Timestamp


class Spent:
    """Jobs of Spark, their tasks and what these sent one another, by what they were for."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._spent: dict[str, tuple[int, int, int]] = {}

    def add(self, stage: str, effort: Effort) -> None:
        """Note a job that is done."""
        with self._lock:
            jobs, tasks, sent = self._spent.get(stage, (0, 0, 0))
            self._spent[stage] = jobs + 1, tasks + effort.tasks, sent + effort.bytes

    def now(self) -> dict[str, tuple[int, int, int]]:
        """Return jobs, tasks and bytes of each stage."""
        with self._lock:
            return dict(self._spent)


class SparkEngine:
    """``engine.engine.Engine`` by Spark.

    ``segments`` is where tasks find the runs of large collections, ``early`` a Spark that may
    be starting already; by default this machine's.
    """

    def __init__(self, segments: Store, early: EarlySpark | None = None) -> None:
        self._segments = segments
        self._early = early
        self._spark = Spark() if early is None else early.spark
        self._spark.store = segments
        self._exchanges: list[Exchange] = []
        self._evaluators = Evaluators(self._evaluator)
        self._chains = Chains(self._spark)
        self._readings = Readings(self._spark)
        self.placement = Placement()
        self.load: Load | None = None
        self.spent = Spent()
        """What Spark did, by what it was for."""

    def configure(self, execution: Execution) -> None:
        """Run where the setting says."""
        self.placement.execution = execution

    def outlook(self, shape: Shape, changed: Collection[ObjectId]) -> Outlook:
        """Return where ticks would run, by what operators have cost so far."""
        return self.placement.outlook(shape.graph, changed)

    def evaluate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer what the steps of a tick ask of Spark, starting it if need be."""
        if self._exchanges and self._exchanges[0].is_over:
            for exchange in self._exchanges:
                exchange.close()
            self._exchanges = []
            self._evaluators = Evaluators(self._evaluator)
        return self._evaluators.evaluate(requests)

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
        work = Work.tick(
            shape.graph, changes, traces,
            lower=lower, upper=upper, limits=shape.limits, effort=effort,
        )  # fmt: skip
        title = title_of("tick", upper.back(), shape.changed_by(changes))
        return self._run(work, "tick", title, stop)

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
        if beside is not None:
            if self._place(self.placement.estimate(work), "renewal") is Place.DRIVER:
                return InProcess(self).beside(work, beside, stop)
            title = title_of("renewal", as_of, shape.made_of(new))
            cluster = SparkCluster(self._spark, self._chains, title, stop, pool=Pool.MERGES)
            return self._job(cluster, work, "renewal")
        try:
            title = title_of("first load", as_of, shape.made_of(new))
            return self._run(work, "load", title, stop)
        finally:
            self.load = None

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
        work = Work.catch_up(
            shape.graph, new, before, after, lower=lower, upper=upper, limits=shape.limits
        )
        title = title_of("catching up", upper.back(), shape.made_of(new))
        return self._run(work, "catch up", title, stop)

    def _run(
        self, work: Work, kind: str, title: str, stop: Stop | None = None
    ) -> Mapping[ArrangementId, Updates]:
        """Have work done where it belongs."""
        if self._place(self.placement.estimate(work), kind) is Place.DRIVER:
            return InProcess(self, self.placement.costs).run(work)
        if work.hydrating:
            self.load = Load()
        cluster = SparkCluster(self._spark, self._chains, title, stop, self.load)
        return self._job(cluster, work, kind)

    def _job(
        self, cluster: SparkCluster, work: Work, stage: str
    ) -> Mapping[ArrangementId, Updates]:
        made = Job(cluster, self._segments).run(work)
        self.spent.add(stage, work.effort)
        self.placement.fade(work)
        return made

    def _place(self, seconds: float, kind: str) -> Place:
        """Return where work runs that would take the driver so long; have Spark come if need be."""
        place = self.placement.choose_for(seconds, kind, is_up=self._spark.is_up)
        if place is Place.SPARK and self._early is not None:
            self._early.needed()
        chosen = self.placement.execution is Execution.AUTO
        if chosen and place is Place.DRIVER and seconds > DRIVER_SECONDS:
            self._spark.begin()
        return place

    def merge(
        self,
        merges: Sequence[Merge],
        store: Store,
        stem: str,
        *,
        title: str,
        stop: Stop | None = None,
    ) -> Sequence[tuple[RunRef, ...]]:
        """Merge runs beside the ticks."""
        costs = self.placement.costs
        rows = weight(sum(one.rows for one in merges), sum(one.bytes for one in merges))
        if self._place(costs.of([(MERGE, rows)]), MERGE) is Place.SPARK:
            tasks = SparkTasks(self._spark, title, Pool.MERGES, stop)
            parts = merge_in_tasks(tasks, merges, store, stem)
            self.spent.add(MERGE, tasks.effort)
            return parts
        begun = thread_time()
        made = merge_here(merges, store, stem, stop)
        costs.note(MERGE, rows, thread_time() - begun)
        return made

    def tasks(
        self,
        rows: int,
        title: str,
        *,
        effort: Effort | None = None,
        stop: Stop | None = None,
    ) -> Tasks:
        """Return tasks of Spark for much, of this process for little."""
        if self._place(self.placement.costs.of([(CLOSE, rows)]), CLOSE) is Place.SPARK:
            effort = Effort() if effort is None else effort
            return SparkTasks(self._spark, title, Pool.TICKS, stop, effort)
        return TasksHere(stop)

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

    def reading_tasks(self, records: int, size: int = 0) -> int:
        """Return how many tasks should read so many records; 0: the driver reads."""
        spark, seconds = self._spark, self.placement.costs.of([(READ, weight(records, size))])
        place = self.placement.choose_for(seconds, READ, is_up=spark.is_up)
        return spark.parallelism if place is Place.SPARK else 0

    def note_read(self, records: int, size: int, seconds: float) -> None:
        """Note what it took the driver to read so many records and bytes."""
        self.placement.costs.note(READ, weight(records, size), seconds)

    def stage(
        self,
        stager: Stager | Together,
        shares: Sequence[Sequence[Range]],
        title: str,
        *,
        stop: Stop | None = None,
    ) -> list[Piece]:
        """Read ranges of a source in tasks, a share each, into runs; in the order of the shares."""
        if stager.reaches is not None:
            self._spark.reach(*stager.reaches)
        pieces = stage(self._readings, stager, shares, title, stop)
        self.spent.add("source", Effort(len(shares)))
        self.placement.costs.fade([READ])
        return pieces

    @property
    def ui(self) -> str | None:
        """Where Spark shows what it does; None if it is not up, or shows nothing."""
        return self._spark.ui

    def close(self) -> None:
        """Give Spark back; it stops with its last user."""
        for exchange in self._exchanges:
            exchange.close()
        (self._early or self._spark).close()

    def _evaluator(self) -> Evaluator:
        from reclock.spark.evaluator import SparkEvaluator  # noqa: PLC0415
        from reclock.spark.exchange import Exchange  # noqa: PLC0415 - imports pyspark

        if self._early is not None:
            self._early.needed()
        exchange = Exchange(self._spark.session)
        self._exchanges.append(exchange)
        return SparkEvaluator(exchange)
