"""One Spark job of tasks that do not know each other: each gets an item and gives a text.

For what is not a graph of steps, such as merges. Items travel with the function that tasks run;
they are references, not rows.

Tests: tests/dataflow/test_merge.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import pyarrow as pa

from reclock.dataflow.pool import titled
from reclock.dataflow.spark_errors import carried, spark_errors
from reclock.dataflow.stop import stoppable
from reclock.dataflow.work import Effort

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from reclock.dataflow.pool import Pool
    from reclock.dataflow.session import Spark
    from reclock.dataflow.stop import Stop

Item = TypeVar("Item")

SCHEMA: Final = pa.schema([("number", pa.int64()), ("made", pa.string())])
DDL: Final = "number BIGINT, made STRING"


class Tasks(Protocol):
    """Runs tasks: Spark, or in tests a loop."""

    @property
    def parallelism(self) -> int:
        """How many run at once."""
        ...

    def run(self, task: Callable[[Item], str], items: Sequence[Item]) -> list[str]:
        """Return what ``task`` gives for each item."""
        ...


@dataclass(frozen=True)
class TasksHere:
    """Tasks in this process, one after the other."""

    stop: Stop | None = None
    parallelism: int = 1

    def run(self, task: Callable[[Item], str], items: Sequence[Item]) -> list[str]:
        """Run one task for each item."""
        made = []
        for item in items:
            if self.stop is not None:
                self.stop.check()
            made.append(task(item))
        return made


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
        with carried():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    row = {"number": number, "made": self.task(self.items[number])}
                    yield pa.RecordBatch.from_pylist([row], SCHEMA)
