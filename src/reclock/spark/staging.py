"""Reading a source in Spark tasks: a task stages its share of the ranges (``dataflow.stage``).

The plan of a read is built once for each number of tasks, and says nothing of what is read: that is
an errand (``dataflow.job.errand``), a property of the job, as that of a chain is (``spark.chain``).

Tests: tests/dataflow/test_stage.py; that a read ends when it is asked to, and plans:
tests/spark/test_staging.py; on a cluster: tests/ingest/test_cluster.py.
"""

from __future__ import annotations

import pickle
from threading import Lock
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pyarrow as pa

from reclock.arrangement.segment import SUFFIX
from reclock.dataflow.job import errand
from reclock.dataflow.piece import Piece
from reclock.spark.errors import carried, spark_errors
from reclock.spark.pool import Pool, titled
from reclock.spark.stoppable import is_stopped, stoppable
from reclock.spark.worker import settle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from reclock.dataflow.stage import Stager, Together
    from reclock.dataflow.stop import Stop
    from reclock.remap.batch import Range
    from reclock.spark.session import Spark

SCHEMA: Final = pa.schema([("task", pa.int64()), ("piece", pa.string())])
DDL: Final = "task BIGINT, piece STRING"

READING: Final = "reclock.reading"
"""The property of a job that has what its tasks read."""


class Readings:
    """The plans of reads, by their number of tasks; any thread may ask."""

    def __init__(self, spark: Spark) -> None:
        self.spark = spark
        self._plans: dict[int, DataFrame] = {}
        self._session: SparkSession | None = None
        self._lock = Lock()

    def of(self, tasks: int) -> DataFrame:
        """Return a plan that has not been executed, of a read by so many tasks."""
        session = self.spark.jobs
        with self._lock:
            if session is not self._session:  # a Spark that was stopped has plans no more
                self._plans.clear()
                self._session = session
            if tasks not in self._plans:
                numbers = session.range(0, tasks, 1, tasks)
                self._plans[tasks] = numbers.mapInArrow(_staged, DDL)
            return self._plans[tasks].select("task", "piece")


def stage(
    readings: Readings,
    stager: Stager | Together,
    shares: Sequence[Sequence[Range]],
    title: str,
    stop: Stop | None = None,
) -> list[Piece]:
    """Read ranges in Spark tasks, a share each; return the pieces in the order of the shares."""
    from pyspark import cloudpickle  # noqa: PLC0415 - only where Spark is

    sent = stager, tuple(map(tuple, shares))
    what = cloudpickle.dumps(sent)  # type: ignore[no-untyped-call]  # it has no types
    name = f"{stager.stem}-{uuid4().hex}{SUFFIX}"  # in flight, as all files of this reading are
    text, file = errand.sent(what, stager.store, name)
    try:
        with spark_errors():
            context = readings.spark.jobs.sparkContext
            with stoppable(context, stop), titled(context, title, Pool.INGEST):
                plan = readings.of(len(shares))
                context.setLocalProperty(READING, text)
                try:
                    found = plan.toArrow().to_pydict()
                finally:
                    if not is_stopped(context):
                        context.setLocalProperty(READING, None)  # type: ignore[arg-type]  # none
    finally:
        if file is not None:
            stager.store.remove(file)
    by_task: dict[int, list[Piece]] = {}
    for number, made in zip(found["task"], found["piece"], strict=True):
        by_task.setdefault(number, []).append(Piece.from_text(made))
    return [piece for number in sorted(by_task) for piece in by_task[number]]


def _staged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stage every share whose number is given; a task runs it."""
    from pyspark import TaskContext  # noqa: PLC0415 - in a task of Spark

    with carried():
        context = TaskContext.get()
        assert context is not None
        text = context.getLocalProperty(READING)
        assert text is not None
        stager, shares = pickle.loads(errand.data_of(text))
        settle()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for piece in stager.staged(shares[number]):
                    row = {"task": number, "piece": piece.text()}
                    yield pa.RecordBatch.from_pylist([row], SCHEMA)
