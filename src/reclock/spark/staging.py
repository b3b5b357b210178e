"""Reading a source in Spark tasks: a task stages its share of the ranges (``dataflow.stage``).

Tests: tests/dataflow/test_stage.py; on a cluster: tests/ingest/test_cluster.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from reclock.dataflow.piece import Piece
from reclock.spark.errors import carried, spark_errors
from reclock.spark.pool import Pool, titled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reclock.dataflow.stage import Stager
    from reclock.remap.batch import Range
    from reclock.spark.session import Spark

SCHEMA: Final = pa.schema([("task", pa.int64()), ("piece", pa.string())])
DDL: Final = "task BIGINT, piece STRING"


def stage(
    spark: Spark, stager: Stager, shares: Sequence[Sequence[Range]], title: str
) -> list[Piece]:
    """Read ranges in Spark tasks, a share each; return the pieces in the order of the shares."""
    with spark_errors():
        session = spark.jobs
        with titled(session.sparkContext, title, Pool.INGEST):
            numbers = session.range(0, len(shares), 1, len(shares))
            task = _Task(stager, tuple(map(tuple, shares)))
            found = numbers.mapInArrow(task, DDL).toArrow().to_pydict()
    by_task: dict[int, list[Piece]] = {}
    for number, text in zip(found["task"], found["piece"], strict=True):
        by_task.setdefault(number, []).append(Piece.from_text(text))
    return [piece for number in sorted(by_task) for piece in by_task[number]]


@dataclass(frozen=True)
class _Task:
    """What a task runs: it gets the number of its share."""

    stager: Stager
    shares: tuple[tuple[Range, ...], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage every share whose number is given."""
        with carried():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for piece in self.stager.staged(self.shares[number]):
                        row = {"task": number, "piece": piece.text()}
                        yield pa.RecordBatch.from_pylist([row], SCHEMA)
