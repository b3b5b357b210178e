"""Who runs the parts of a stage: threads of this process, or Spark tasks.

``Threads`` share the process's memory maps and start at once; what Spark must evaluate they
ask on the spot. ``Tasks`` run wherever Spark runs them; Spark is asked ``ahead`` of a stage,
for all parts at once. A worker may run a part more than once: it leaves the same files. Whoever
asks for an end (``Stop``) gets it when the parts under way are done, or Spark has cancelled them.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeAlias

from reclock.arrangement.run import RunRef
from reclock.dataflow.bulk.load import Load
from reclock.dataflow.bulk.task import DDL
from reclock.dataflow.spark_errors import spark_errors
from reclock.dataflow.stop import stoppable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from reclock.dataflow.bulk.task import RunStage
    from reclock.dataflow.evaluate import Evaluator
    from reclock.dataflow.session import Spark
    from reclock.dataflow.stop import Stop

Made: TypeAlias = tuple[str, str, RunRef]
"""A run that was written: its kind, whose it is, and where."""


class Workers(Protocol):
    """Runs the parts of stages; see the head of this module."""

    @property
    def load(self) -> Load:
        """How far they are."""
        ...

    @property
    def ahead(self) -> bool:
        """Whether Spark is asked before a stage, by ``ask``."""
        ...

    @property
    def parallelism(self) -> int:
        """How many parts run at once."""
        ...

    @property
    def evaluator(self) -> Evaluator | None:
        """Whom a part asks, unless Spark is asked ahead; any thread may."""
        ...

    def ask(self, stage: RunStage) -> Iterator[Made]:
        """Have Spark answer what a stage asks, and yield the runs with the answers."""
        ...

    def run(self, stage: RunStage) -> Iterator[Made]:
        """Run all parts of a stage, and yield what they wrote."""
        ...


class Threads:
    """As many threads as this process has cores."""

    ahead = False

    def __init__(
        self,
        cores: int,
        evaluator: Evaluator,
        load: Load | None = None,
        stop: Stop | None = None,
    ) -> None:
        self.parallelism = cores
        self.evaluator = evaluator
        self.load = load or Load()
        self._stop = stop

    def ask(self, stage: RunStage) -> Iterator[Made]:
        """Do nothing: parts ask themselves."""
        del stage
        yield from ()

    def run(self, stage: RunStage) -> Iterator[Made]:
        """Run the parts side by side; after an end is asked for no other one begins."""

        def part(number: int) -> list[Made]:
            if self._stop is not None:
                self._stop.check()
            return stage.part(number)

        with ThreadPoolExecutor(self.parallelism, "reclock-part") as pool:
            for made in pool.map(part, range(stage.shelf.parts.count)):
                self.load.reach(self.load.done + 1)
                yield from made


class Tasks:
    """Spark tasks, one per part."""

    ahead = True
    evaluator = None

    def __init__(self, spark: Spark, load: Load | None = None, stop: Stop | None = None) -> None:
        self._spark = spark
        self.load = load or Load()
        self._stop = stop

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        return self._spark.parallelism

    def ask(self, stage: RunStage) -> Iterator[Made]:
        """Run one job per question."""
        from reclock.dataflow.bulk.ask import questions  # noqa: PLC0415 - imports pyspark

        with spark_errors():
            for frame in questions(self._spark.bulk, stage):
                yield from self._collected(frame)

    def run(self, stage: RunStage) -> Iterator[Made]:
        """Run one job of one task per part."""
        parts = stage.shelf.parts.count
        with spark_errors():
            numbers = self._spark.bulk.range(0, parts, 1, parts)
            yield from self._collected(numbers.mapInArrow(stage, DDL))

    def _collected(self, frame: DataFrame) -> Iterator[Made]:
        """Run a job whose rows are references."""
        with stoppable(self._spark.bulk.sparkContext, self._stop):
            found = frame.toArrow().to_pydict()
        for kind, name, ref in zip(found["kind"], found["name"], found["ref"], strict=True):
            yield kind, name, RunRef.from_json(json.loads(ref))
