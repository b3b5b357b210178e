"""A graph with its state in a segment store, whose ticks run in parts.

What ``spark.engine`` does with a tick of many changes, without a database
and, with a loop for a cluster, without Spark: so it can be tested by the thousand cases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphs.memory_graph import Log, MemoryGraph, written
from model.evaluator import PythonEvaluator
from reclock.arrangement.cache import process_cache
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.shard import Shard
from reclock.arrangement.stream import concat
from reclock.dataflow.changes import Changes
from reclock.dataflow.trace import DeltaTrace
from reclock.dataflow.work import Work
from reclock.spark.job import Job
from reclock.time.description import Description
from reclock.time.frontier import at
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.arrangement.run import RunRef
    from reclock.arrangement.store import Store
    from reclock.dataflow.graph import ArrangementId
    from reclock.ids import ObjectId
    from reclock.spark.job import Cluster
    from reclock.sql.plan.node import Node
    from reclock.time.refresh import Schedule


class StoredGraph(MemoryGraph):
    """The same with its state in runs of ``store``; ticks run in parts, on a ``cluster``."""

    def __init__(
        self,
        plans: Mapping[ObjectId, Node],
        cluster: Cluster,
        store: Store,
        schedules: Mapping[ObjectId, Schedule] | None = None,
    ) -> None:
        super().__init__(plans, PythonEvaluator(), schedules)
        self.cluster = cluster
        self.store = store
        self.runs: dict[ArrangementId, list[RunRef]] = {}

    def tick(self, logs: Mapping[str, Log], times: range, *, hydrating: bool = False) -> None:
        """Run one tick on the changes of the tables: the first in memory, the others in parts."""
        if hydrating:
            super().tick(logs, times, hydrating=True)
            self._begin(times[-1])
            return
        changes = {item: Changes((delta,)) for item, delta in written(logs).items()}
        work = Work.tick(
            self.graph, changes, self._shards(times[0]),
            lower=Timestamp(times[0]), upper=Timestamp(times[-1] + 1),
        )  # fmt: skip
        made = Job(self.cluster, self.store).run(work)
        for name, refs in made.items():
            self.runs[name] += refs
            layout = self.graph.arrangements[name].keying.layout
            runs = [process_cache().open(self.store, ref, layout) for ref in refs]
            added = [batch for run in runs for batch in run]
            for run in runs:
                if consolidate(layout, concat(list(run))).num_rows != run.ref.rows:
                    message = f"a run of {name} is not consolidated"
                    raise ValueError(message)
            known = self.state.get(name)
            whole = added if known is None else [known.updates, *added]
            self.state[name] = DeltaTrace(layout, concat(whole))

    def _begin(self, time: int) -> None:
        with SegmentWriter(self.store, f"begin-{time}") as writer:
            now = Timestamp(time)
            description = Description(at(0), at(now.step()), at(now))
            for name, arrangement in self.graph.arrangements.items():
                trace, layout = self.state.get(name), arrangement.keying.layout
                batches = [] if trace is None else [consolidate(layout, trace.updates)]
                writer.add(name, layout, batches, description)
            refs = writer.finish()
        self.runs = {n: [r] for n, r in zip(self.graph.arrangements, refs, strict=True)}

    def _shards(self, upper: int) -> dict[ArrangementId, Shard]:
        return {
            name: Shard.open(
                self.graph.arrangements[name].keying.layout, refs, self.store, process_cache(),
                at(Timestamp(upper)),
            )
            for name, refs in self.runs.items()
        }  # fmt: skip
