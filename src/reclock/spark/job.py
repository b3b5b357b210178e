"""Work as a Spark job: from ``Work`` to the references of the runs that tasks have written.

Chains are kept for the work that comes again, ticks, by graph and by what changes. What is in
the driver's memory is written to the store first, sorted by hash, where tasks read their ranges;
it is removed at the end, with whatever else no run needs.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol

from reclock.arrangement.layout import by_hash
from reclock.arrangement.run import RunRef
from reclock.arrangement.segment import SegmentWriter, rows_per_batch
from reclock.dataflow.changes import Stamped
from reclock.dataflow.graph import ArrangementId, collection_of, errors_of
from reclock.dataflow.job.errand import Errand, Kept
from reclock.dataflow.job.message import COUNTED, FINISHED, SENT, TOOK
from reclock.dataflow.job.parts import Parts
from reclock.dataflow.job.schedule import Keyed, Schedule, keyed_inputs
from reclock.dataflow.operators.temporal import is_due
from reclock.dataflow.steps.faults import rows_steps
from reclock.spark.errors import spark_errors
from reclock.spark.pool import Pool, titled
from reclock.spark.stoppable import is_stopped, stoppable
from reclock.spark.watch import watched
from reclock.time.description import Description
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable

    from pyspark.sql import DataFrame, SparkSession

    from reclock.arrangement.shard import Shard
    from reclock.arrangement.store import Store
    from reclock.dataflow.graph import Graph
    from reclock.dataflow.job.load import Load
    from reclock.dataflow.stop import Stop
    from reclock.dataflow.work import Work
    from reclock.ids import ObjectId
    from reclock.spark.session import Spark
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp

PART_ROWS: Final = 1_000_000
"""How many rows a part has at most, of what is read: it must fit into a worker's memory."""

PART_BYTES: Final = 256 << 20
"""How many bytes a part has at most, about; a column of text must stay below 2 GiB."""

CHAINS: Final = 32
"""How many chains are kept; the one that was not used for longest is forgotten."""

Runs = dict[ArrangementId, tuple[RunRef, ...]]


class Cluster(Protocol):
    """Executes the stages of a schedule: Spark, or in tests a loop."""

    @property
    def parallelism(self) -> int:
        """How many parts run at once."""
        ...

    def execute(self, schedule: Schedule, errand: Errand) -> Iterable[tuple[int, str, bytes]]:
        """Run all stages; return kind, name and bytes of the messages to the driver."""
        ...


def parts_for(rows: int, size: int, parallelism: int) -> Parts:
    """Return how to divide so many rows and bytes: as many parts as run at once, or a multiple.

    >>> parts_for(2_100_000, 10**8, 2), parts_for(10, 10**3, 8), parts_for(10**5, 10**10, 2)
    (Parts(count=4), Parts(count=8), Parts(count=38))
    """
    rounds = max(-(-rows // (parallelism * PART_ROWS)), -(-size // (parallelism * PART_BYTES)))
    return Parts(parallelism * max(1, rounds))


@dataclass(frozen=True)
class Job:
    """Computes by a cluster; what tasks read and write is in ``store``."""

    cluster: Cluster
    store: Store

    def run(self, work: Work) -> Runs:
        """Return the runs that were written, of every arrangement that changes."""
        parts = parts_for(work.rows, work.bytes, self.cluster.parallelism)
        adopted = _adopted(work)
        schedule = _schedule(work, parts, adopted)
        names = blake2b(" ".join(sorted(schedule.new)).encode(), digest_size=8).hexdigest()
        stem = f"job-{names}-{work.lower}-{work.upper}"
        with ExitStack() as undo:
            inputs = self._inputs(work, f"{stem}-changes", adopted, undo)
            errand = Errand(
                self.store, work.lower, work.upper.back(), work.hydrating,
                _descriptions(work, schedule), stem, inputs,
                {n: Kept.of(work.kept[n]) for n in _read(work, schedule) if n in work.kept},
                {n: Kept.of(work.state[n]) for n in _state(schedule) if n in work.state},
                work.limits.untils, frozenset(map(collection_of, adopted)),
            )  # fmt: skip
            found = {name: _bound(inputs[name], work, name) for name in errand.adopted}
            work.effort.by_tasks = True
            for kind, name, blob in self.cluster.execute(schedule, errand):
                if kind == FINISHED:
                    ref = RunRef.from_json(json.loads(blob))
                    found.setdefault(ArrangementId(name), []).append(ref)
                elif kind == COUNTED:
                    work.limits.dropped[ArrangementId(name)] += int(blob)
                elif kind == SENT:
                    work.effort.tasks += 1
                    work.effort.bytes += int(blob)
                elif kind == TOOK:
                    work.effort.note(json.loads(blob))
        return {name: tuple(refs) for name, refs in found.items()}

    def _inputs(
        self, work: Work, stem: str, adopted: Collection[ObjectId], undo: ExitStack
    ) -> dict[ArrangementId, tuple[Stamped, ...]]:
        """Return changes from outside as runs; those in memory are written."""
        found: dict[ArrangementId, list[Stamped]] = {}
        description = Description(at(work.lower), at(work.upper), at(0))
        with SegmentWriter(self.store, stem, durable=False) as writer:
            names = []
            for item, change in work.changes.items():
                name = collection_of(item) if item in adopted else work.graph.entry(item)[1]
                keying = work.graph.keying(name)
                found.setdefault(name, []).extend(change.runs)
                for nth, batch in enumerate(change.batches):
                    updates = by_hash(keying.arrange(batch))
                    per_batch = rows_per_batch(updates.num_rows, updates.nbytes)
                    run = f"{name}.{nth}"
                    writer.add(
                        run, keying.layout, [updates], description,
                        batch_rows=per_batch, dealt=True,
                    )  # fmt: skip
                    names.append(name)
            refs = writer.finish()
        for name, ref in zip(names, refs, strict=True):
            found[name].append(Stamped(ref))
        for segment in {ref.segment for ref in refs} - {None}:
            assert segment is not None
            undo.callback(self.store.remove, segment)
        return {name: tuple(runs) for name, runs in found.items()}


def _adopted(work: Work) -> frozenset[ObjectId]:
    """Return the sources whose changes are runs of their collections already."""
    return frozenset(
        item for item, change in work.changes.items()
        if change.adoptable and rows_steps(work.graph, item)
    )  # fmt: skip


def _bound(runs: Iterable[Stamped], work: Work, name: ArrangementId) -> list[RunRef]:
    """Return staged runs as runs of a collection, which they are from this tick on."""
    description = Description(_end(work.state.get(name)), at(work.upper), at(0))
    return [replace(run.ref, description=description) for run in runs]


def _schedule(work: Work, parts: Parts, adopted: Collection[ObjectId]) -> Schedule:
    graph = work.graph
    if work.wanted is not None:
        return Schedule.of_load(graph, parts, work.wanted, work.given)
    due = {
        name for name in graph.waiting.values()
        if name in work.state and is_due(work.state[name], work.lower, work.upper.back())
    }  # fmt: skip
    return Schedule.of_tick(graph, parts, work.changes.keys(), due, adopted)


def _descriptions(work: Work, schedule: Schedule) -> dict[ArrangementId, Description[Timestamp]]:
    if work.hydrating:
        beginning = Description(at(0), at(work.upper), at(work.lower))
        return dict.fromkeys(schedule.new, beginning)
    return {
        name: Description(_end(work.state.get(name)), at(work.upper), at(0))
        for name in schedule.new
    }


def _end(shard: Shard | None) -> Antichain[Timestamp]:
    """Return where the last run of an arrangement ends."""
    return at(0) if shard is None else shard.runs[-1].ref.description.upper


def _state(schedule: Schedule) -> frozenset[ArrangementId]:
    """Return what operators look up."""
    reads = schedule.graph.reads
    return frozenset().union(*(reads.get(step, frozenset()) for step in schedule.steps))


def _read(work: Work, schedule: Schedule) -> frozenset[ArrangementId]:
    """Return the kept arrangements that are read, not looked up."""
    if work.wanted is None:
        return frozenset()
    graph = schedule.graph
    found = set(work.given.sources(graph, work.wanted))
    for plan in schedule.stages:
        for step in map(graph.steps.__getitem__, plan.steps):
            if isinstance(step, Keyed):
                found |= {name for _, name in keyed_inputs(step)}
        found |= {errors_of(item) for items in plan.kept_errors.values() for item in items}
    return frozenset(found - schedule.new)


class Chains:
    """The chains that Spark has built, for the work that comes again; any thread may ask."""

    def __init__(self, spark: Spark) -> None:
        self._spark = spark
        self._chains: OrderedDict[Hashable, tuple[Graph, DataFrame]] = OrderedDict()
        self._session: SparkSession | None = None
        self._lock = Lock()

    def of(self, schedule: Schedule) -> DataFrame:
        """Return the chain of a schedule."""
        from reclock.spark.chain import build  # noqa: PLC0415 - imports pyspark

        graph = schedule.graph
        errors = tuple(frozenset(plan.kept_errors.items()) for plan in schedule.stages)
        given = frozenset(schedule.given)
        kind = id(graph), schedule.parts, schedule.new, given, schedule.steps, errors
        session = self._spark.jobs
        with self._lock:
            if session is not self._session:  # a Spark that was stopped has plans no more
                self._chains.clear()
                self._session = session
            if kind in self._chains:
                self._chains.move_to_end(kind)
                return self._chains[kind][1]
        made = build(session, schedule)
        with self._lock:
            self._chains[kind] = graph, made  # the graph too: its identity stays taken
            if len(self._chains) > CHAINS:
                self._chains.popitem(last=False)
        return made


@dataclass(frozen=True)
class SparkCluster:
    """Executes schedules as Spark jobs, whose ``title`` Spark's pages show."""

    spark: Spark
    chains: Chains
    title: str = "reclock"
    stop: Stop | None = None
    load: Load | None = None
    pool: Pool = Pool.TICKS

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        return self.spark.parallelism

    def execute(self, schedule: Schedule, errand: Errand) -> list[tuple[int, str, bytes]]:
        """Run all stages as one job."""
        from reclock.spark.chain import ERRAND, again  # noqa: PLC0415 - imports pyspark

        context = self.spark.jobs.sparkContext
        stages = len(schedule.stages)
        text, file = errand.sent()
        try:
            with (
                spark_errors(),
                stoppable(context, self.stop),
                titled(context, self.title, self.pool) as group,
                watched(context, group, self.load, stages * schedule.parts.count),
            ):
                frame = again(self.chains.of(schedule))
                context.setLocalProperty(ERRAND, text)
                try:
                    made = frame.toArrow().to_pydict()
                finally:
                    if not is_stopped(context):
                        context.setLocalProperty(ERRAND, None)  # type: ignore[arg-type]  # none
        finally:
            if file is not None:
                errand.store.remove(file)
        return list(zip(made["kind"], made["name"], made["blob"], strict=True))
