"""Sources, tables and views over them with their state in runs, tick by tick.

What the engine does with a graph, without one: ``tick`` runs it on the records of sources and the
changes of tables, in the driver or in parts; ``create`` makes views from what is kept; ``rows_at``
and ``errors_at`` read any time. Every tick opens its traces again from the runs in the store, so
nothing outlives a tick but what a restart would find.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from model.evaluator import PythonEvaluator
from reclock.arrangement.cache import process_cache
from reclock.arrangement.merge import merge
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.shard import Shard
from reclock.change.value import canonical
from reclock.dataflow.changes import Changes
from reclock.dataflow.envelope import NONE
from reclock.dataflow.graph import collection_of, errors_of
from reclock.dataflow.render.build import View, build_graph, key_of
from reclock.dataflow.work import InProcess, Stream, Work
from reclock.spark.job import Job
from reclock.sql.names import CatalogItem
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_query
from reclock.sql.rewrite.pipeline import RewriteContext, rewrite
from reclock.time.description import Description
from reclock.time.frontier import at
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from reclock.arrangement.run import RunRef
    from reclock.arrangement.store import Store
    from reclock.dataflow.graph import ArrangementId
    from reclock.dataflow.render.build import Relation
    from reclock.dataflow.render.source import Source
    from reclock.engine.engine import Updates
    from reclock.ids import ObjectId
    from reclock.spark.job import Cluster
    from reclock.sql.plan.node import Node

Rows = Counter[tuple[Any, ...]]


class SourceGraph:
    """A graph of sources, tables and views, each called by its id.

    With a ``cluster``, ticks and first loads run in parts.
    """

    def __init__(
        self,
        sources: Mapping[ObjectId, Source],
        store: Store,
        cluster: Cluster | None = None,
        tables: Mapping[ObjectId, Relation] | None = None,
    ) -> None:
        self.sources, self.tables = dict(sources), dict(tables or {})
        self.plans: dict[ObjectId, Node] = {}
        self.store, self.cluster = store, cluster
        self.runs: dict[ArrangementId, list[RunRef]] = {}
        self._names = 0
        self._upper = Timestamp(0)
        self._render()
        self._begin(0)

    # What planning sees.

    def resolve(self, name: tuple[str, ...]) -> CatalogItem | None:
        """Return the object whose id is its name."""
        found = {str(item): item for item in (*self.sources, *self.tables, *self.plans)}
        item = found.get(name[-1])
        if item is None:
            return None
        if item in self.plans:
            plan = self.plans[item]
            keys = plan.unique_keys
            return CatalogItem(item, name[-1], "materialized view", plan.schema, EPOCH_MS, keys)
        if item in self.tables:
            schema = self.tables[item].schema
            return CatalogItem(item, name[-1], "table", schema, EPOCH_MS, frozenset())
        source = self.sources[item]
        unique = source.key and source.envelope != NONE
        keys = frozenset({frozenset(source.key)}) if unique else frozenset()
        return CatalogItem(item, name[-1], "source", source.schema, EPOCH_MS, keys)

    def relation_names(self) -> tuple[str, ...]:
        """Return the names of all objects."""
        return tuple(map(str, (*self.sources, *self.tables, *self.plans)))

    # What happens.

    def create(self, views: Mapping[ObjectId, str], as_of: int) -> None:
        """Make views, and fill them with what they hold as of a complete time."""
        for item, text in views.items():
            plan = plan_query(parse_query(text), self, maintained=True)
            self.plans[item] = rewrite(plan.relation, RewriteContext())
        self._render()
        self._begin(as_of)

    def tick(self, changes: Mapping[ObjectId, pa.RecordBatch], times: range) -> None:
        """Run one tick on records and changes."""
        changes = {item: batch for item, batch in changes.items() if batch.num_rows}
        lower, upper = Timestamp(times[0]), Timestamp(times[-1] + 1)
        self._upper = lower if changes else upper
        if changes:
            self._append(self._step(changes, self._shards(), lower, upper), upper)

    def compact(self, name: ArrangementId, since: int) -> None:
        """Merge all runs of an arrangement into one, with times before ``since`` moved to it."""
        layout = self.graph.arrangements[name].keying.layout
        runs = [process_cache().open(self.store, ref, layout) for ref in self.runs[name]]
        with SegmentWriter(self.store, self._name("merge"), inline_limit=1 << 20) as writer:
            merge(writer, name, layout, runs, at(Timestamp(since)))
            self.runs[name] = list(writer.finish())

    def rows_at(self, item: ObjectId, time: int) -> Rows:
        """Return the rows of an object at a time."""
        return self._at(collection_of(item), time)

    def errors_at(self, item: ObjectId, time: int) -> Rows:
        """Return the errors of a source or view at a time."""
        return self._at(errors_of(item), time)

    def _at(self, name: ArrangementId, time: int) -> Rows:
        found: Rows = Counter()
        keying = self.graph.arrangements[name].keying
        for batch in self._shards()[name].snapshot(Timestamp(time)):
            columns = [column.to_pylist() for column in keying.restore(batch).columns]
            for *values, _time, diff in zip(*columns, strict=True):
                found[canonical(tuple(values))] += diff
        return found

    def _render(self) -> None:
        views = {item: View(plan, key_of(plan)) for item, plan in self.plans.items()}
        self.graph, _ = build_graph(self.tables, views, {}, self.sources)

    def _begin(self, time: int) -> None:
        """Fill what is new."""
        new = frozenset(self.graph.arrangements.keys() - self.runs.keys())
        as_of = Timestamp(time)
        made = self._hydrate(new, self._shards(), as_of)
        empty = {name: self.graph.keying(name).layout.empty() for name in new}
        self._append({**empty, **made}, as_of.step(), since=as_of)

    def _step(
        self,
        changes: Mapping[ObjectId, pa.RecordBatch],
        shards: Mapping[ArrangementId, Shard],
        lower: Timestamp,
        upper: Timestamp,
    ) -> Mapping[ArrangementId, Updates]:
        arrived = {item: Changes((delta,)) for item, delta in changes.items()}
        return self._run(Work.tick(self.graph, arrived, shards, lower=lower, upper=upper))

    def _hydrate(
        self,
        new: frozenset[ArrangementId],
        shards: Mapping[ArrangementId, Shard],
        as_of: Timestamp,
    ) -> Mapping[ArrangementId, Updates]:
        return self._run(Work.load(self.graph, new, shards, as_of))

    def _run(self, work: Work) -> Mapping[ArrangementId, Updates]:
        if self.cluster is None:
            return InProcess(PythonEvaluator()).run(work)
        return Job(self.cluster, self.store).run(work)

    def _append(
        self,
        made: Mapping[ArrangementId, Updates],
        upper: Timestamp,
        since: Timestamp = Timestamp(0),  # noqa: B008 - a constant
    ) -> None:
        with SegmentWriter(self.store, self._name("run"), inline_limit=1 << 20) as writer:
            names = []
            for name, updates in made.items():
                if isinstance(updates, tuple):
                    self.runs.setdefault(name, []).extend(updates)
                    continue
                known = self.runs.get(name)
                lower = known[-1].description.upper if known else at(0)
                assert not isinstance(updates, Stream), "nothing runs beside"
                layout = self.graph.arrangements[name].keying.layout
                description = Description(lower, at(upper), at(since))
                writer.add(name, layout, [updates] if updates.num_rows else [], description)
                names.append(name)
            for name, ref in zip(names, writer.finish(), strict=True):
                self.runs.setdefault(name, []).append(ref)
        self._upper = upper

    def _shards(self) -> dict[ArrangementId, Shard]:
        return {
            name: Shard.open(
                self.graph.arrangements[name].keying.layout,
                refs,
                self.store,
                process_cache(),
                at(self._upper),
            )
            for name, refs in self.runs.items()
        }

    def _name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}-{self._names}"
