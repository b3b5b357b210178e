"""The stages of a first load, one after the other; see the head of this package."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, TypeAlias

from reclock.arrangement.run import RunRef
from reclock.dataflow.bulk.exchange import Kept, Shelf
from reclock.dataflow.bulk.parts import Parts
from reclock.dataflow.bulk.schedule import Keyed, keyed_inputs
from reclock.dataflow.bulk.task import ANSWERS, DDL, EXCHANGED, FINISHED, ROWS, RunStage
from reclock.dataflow.graph import ArrangementId, errors_of
from reclock.dataflow.spark_errors import spark_errors
from reclock.time.description import Description
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame

    from reclock.arrangement.shard import Shard
    from reclock.arrangement.store import Store
    from reclock.dataflow.bulk.schedule import Schedule
    from reclock.dataflow.session import Spark
    from reclock.time.timestamp import Timestamp

Made: TypeAlias = tuple[str, str, RunRef]
"""A run that a task wrote: its kind, whose it is, and where."""

PART_ROWS: Final = 500_000
"""How many rows a part has at most, of what is read: it must fit into a task's memory."""


def hydrate(
    spark: Spark,
    store: Store,
    schedule: Schedule,
    traces: Mapping[ArrangementId, Shard],
    as_of: Timestamp,
    *,
    in_tasks: bool = False,
) -> dict[ArrangementId, tuple[RunRef, ...]]:
    """Return runs, written to ``store``, that fill the schedule's new arrangements.

    On this machine alone, parts run in threads of this process, which share its memory maps
    and start at once; with ``in_tasks``, and on any cluster, in Spark tasks.
    """
    with spark_errors():
        return _Loading(spark, store, schedule, traces, as_of, in_tasks=in_tasks).run()


def parts_for(rows: int, parallelism: int) -> Parts:
    """Return how to divide so many rows: as many parts as tasks run at once, or a multiple.

    >>> parts_for(1_100_000, 2), parts_for(10, 8)
    (Parts(count=4), Parts(count=8))
    """
    rounds = -(-rows // (parallelism * PART_ROWS))
    return Parts(parallelism * max(1, rounds))


class _Loading:
    def __init__(
        self,
        spark: Spark,
        store: Store,
        schedule: Schedule,
        traces: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
        *,
        in_tasks: bool,
    ) -> None:
        self._always = in_tasks
        self._spark = spark
        self._schedule = schedule
        parts = parts_for(schedule.rows(traces), spark.own_cores or spark.parallelism)
        kept = {
            name: Kept(tuple(run.ref for run in traces[name].runs), traces[name].upper)
            for name in _read(schedule)
            if name in traces
        }
        self._shelf = Shelf(store, parts, as_of, kept)
        self._description = Description(at(0), at(as_of.step()), at(as_of))
        names = blake2b(" ".join(sorted(schedule.new)).encode(), digest_size=8)
        self._stem = f"load-{names.hexdigest()}-{as_of}"
        self._passing: set[str] = set()

    def run(self) -> dict[ArrangementId, tuple[RunRef, ...]]:
        """Run all stages, and return the runs that are to stay."""
        finished: dict[ArrangementId, list[RunRef]] = {}
        try:
            for number in range(len(self._schedule.stages)):
                for kind, name, ref in self._stage(number):
                    self._take(finished, kind, name, ref)
        finally:
            for segment in self._passing:
                self._shelf.store.remove(segment)
        return {name: tuple(refs) for name, refs in finished.items()}

    def _stage(self, number: int) -> Iterator[Made]:
        """Have Spark answer what a stage asks, then run its parts."""
        plan = self._schedule.stages[number]
        task = RunStage(self._schedule, number, self._shelf, self._description, self._stem)
        if plan.asked or plan.grouped:
            from reclock.dataflow.bulk.ask import questions  # noqa: PLC0415 - imports pyspark

            for frame in questions(self._spark.bulk, task):
                yield from _collected(frame)
        pending = [n for n in plan.finished if n in self._shelf.exchanged]
        if plan.steps or plan.exchanged or plan.kept_errors or pending:
            yield from self._run_parts(task)

    def _run_parts(self, task: RunStage) -> Iterator[Made]:
        parts, cores = self._shelf.parts.count, self._spark.own_cores
        if cores is None or self._always:
            numbers = self._spark.bulk.range(0, parts, 1, parts)
            yield from _collected(numbers.mapInArrow(task, DDL))
            return
        with ThreadPoolExecutor(cores, "reclock-load") as pool:
            for made in pool.map(task.part, range(parts)):
                yield from made

    def _take(
        self, finished: dict[ArrangementId, list[RunRef]], kind: str, name: str, ref: RunRef
    ) -> None:
        shelf = self._shelf
        if kind == FINISHED:
            finished.setdefault(ArrangementId(name), []).append(ref)
            return
        if kind == EXCHANGED:
            shelf.exchanged.setdefault(ArrangementId(name), []).append(ref)
        elif kind == ROWS:
            shelf.rows.setdefault(int(name), []).append(ref)
        elif kind == ANSWERS:
            shelf.answers.setdefault(name, []).append(ref)
        if ref.segment is not None:
            self._passing.add(ref.segment)


def _collected(frame: DataFrame) -> Iterator[Made]:
    """Run a job whose rows are references."""
    found = frame.toArrow().to_pydict()
    for kind, name, ref in zip(found["kind"], found["name"], found["ref"], strict=True):
        yield kind, name, RunRef.from_json(json.loads(ref))


def _read(schedule: Schedule) -> frozenset[ArrangementId]:
    """Return the kept arrangements that tasks read."""
    graph = schedule.graph
    found = set(schedule.sources())
    for plan in schedule.stages:
        for step in map(graph.steps.__getitem__, plan.steps):
            if isinstance(step, Keyed):
                found |= {name for _, name in keyed_inputs(step)}
        found |= {errors_of(item) for items in plan.kept_errors.values() for item in items}
    return frozenset(found - schedule.new)
