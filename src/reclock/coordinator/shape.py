"""The objects of a timeline as an engine sees them: plans, and the graph that keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from reclock.coordinator.item import Index, MaterializedView, Sink, Source, Table
from reclock.dataflow.graph import collection_of, errors_of
from reclock.dataflow.render import build as render

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reclock.coordinator.catalog import Catalog
    from reclock.dataflow.graph import ArrangementId, Graph
    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Node
    from reclock.time.timeline import Timeline


@dataclass(frozen=True)
class Shape:
    """The graph of a timeline's objects; the plans of its views, inputs first.

    ``sources`` has the objects whose records come from outside; ``indexes`` for each object
    that is indexed the arrangements that its indexes are; ``kept`` for each object with rows
    the arrangements that hold them; ``shadows`` for each relation and the columns that a sink
    looks it up by, what it is arranged by these in.
    """

    graph: Graph
    views: Mapping[ObjectId, Node]
    indexes: Mapping[ObjectId, tuple[ArrangementId, ...]]
    kept: Mapping[ObjectId, tuple[ArrangementId, ...]]
    sources: Mapping[ObjectId, render.Source] = field(default_factory=dict)
    shadows: Mapping[render.Index, ArrangementId] = field(default_factory=dict)

    @classmethod
    def of(
        cls, catalog: Catalog, timeline: Timeline, transients: Iterable[MaterializedView] = ()
    ) -> Shape:
        """Return the shape of the objects of a timeline: the catalog's, and transient views."""
        passing = (view for view in transients if view.timeline == timeline)
        items = (*catalog.of_timeline(timeline), *passing)
        views = {i.id: render.View(i.plan, i.key) for i in items if isinstance(i, MaterializedView)}
        sources = {
            i.id: render.Source(i.schema, i.primary_key, i.envelope)
            for i in items
            if isinstance(i, Source)
        }
        indexes = [i for i in items if isinstance(i, Index)]
        looked_up = [
            render.Index(phase.relation, sink.shadow)
            for sink in items
            if isinstance(sink, Sink) and sink.shadow
            for phase in sink.phases
        ]
        wanted = {i.id: render.Index(i.on, i.key) for i in indexes}
        graph, made = render.build_graph(
            {i.id: render.Relation(i.schema, i.key) for i in items if isinstance(i, Table)},
            views,
            {**wanted, **{index: index for index in looked_up}},
            sources,
        )
        arranged = {item: made[item] for item in wanted}
        shadows = {index: made[index] for index in looked_up}
        by: dict[ObjectId, tuple[ArrangementId, ...]] = {}
        for index in indexes:
            by[index.on] = (*by.get(index.on, ()), arranged[index.id])
        for looked, arrangement in shadows.items():
            by[looked.on] = (*by.get(looked.on, ()), arrangement)
        kept = {
            i.id: (collection_of(i.id), errors_of(i.id))
            if i.id in graph.views
            else (collection_of(i.id),)
            for i in items
            if isinstance(i, Table | Source | MaterializedView)
        }
        kept |= {item: (arrangement,) for item, arrangement in arranged.items()}
        plans = {item: view.plan for item, view in views.items()}
        return cls(graph, plans, by, kept, sources, shadows)

    @cached_property
    def owners(self) -> Mapping[ArrangementId, frozenset[ObjectId]]:
        """For each arrangement that is read at past times, the objects whose rows it holds."""
        found: dict[ArrangementId, frozenset[ObjectId]] = {}
        for item, arrangements in self.kept.items():
            for arrangement in arrangements:
                found[arrangement] = found.get(arrangement, frozenset()) | {item}
        return found

    @cached_property
    def readers(self) -> Mapping[ArrangementId, frozenset[ObjectId]]:
        """For each arrangement that is read at past times, the objects whose since it keeps to.

        Those whose rows it holds; for what a sink looks up, the relation, which the sink holds.
        """
        found = dict(self.owners)
        for index, arrangement in self.shadows.items():
            found[arrangement] = found.get(arrangement, frozenset()) | {index.on}
        return found
