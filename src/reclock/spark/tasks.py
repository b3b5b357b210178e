"""One Spark job of tasks that do not know each other: each gets an item and gives a text.

For what is not a graph of steps, such as merges. Items travel with the function that tasks run;
they are references, not rows.

Tests: tests/dataflow/test_merge.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from reclock.dataflow.work import Effort
from reclock.spark.errors import carried, spark_errors
from reclock.spark.pool import titled
from reclock.spark.stoppable import stoppable
from reclock.spark.worker import settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from reclock.dataflow.stop import Stop
    from reclock.spark.pool import Pool
    from reclock.spark.session import Spark

Item = TypeVar("Item")

SCHEMA: Final = pa.schema([("number", pa.int64()), ("made", pa.string())])
DDL: Final = "number BIGINT, made STRING"


@dataclass(frozen=True)
class SparkTasks:
    """Tasks of a Spark job in a scheduling pool; ``title`` is what Spark's pages show."""

    spark: Spark
    title: str
    pool: Pool
    stop: Stop | None = None
    effort: Effort = field(default_factory=Effort)
    """What it took."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        return self.spark.parallelism

    def run(self, task: Callable[[Item], str], items: Sequence[Item]) -> list[str]:
        """Run one task for each item, as one job; none for none."""
        if not items:
            return []
        self.effort.tasks += len(items)
        with spark_errors():
            session = self.spark.jobs
            context = session.sparkContext
            with (
                stoppable(context, self.stop),
                titled(context, self.title, self.pool),
            ):
                numbers = session.range(0, len(items), 1, len(items))
                found = numbers.mapInArrow(_Numbered(task, tuple(items)), DDL).toArrow()
        made = dict(zip(*found.to_pydict().values(), strict=True))
        return [made[number] for number in range(len(items))]


@dataclass(frozen=True)
class _Numbered:
    """What a Spark task runs: it gets the number of its item."""

    task: Callable[[Any], str]
    items: tuple[Any, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        with carried():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    row = {"number": number, "made": self.task(self.items[number])}
                    yield pa.RecordBatch.from_pylist([row], SCHEMA)
