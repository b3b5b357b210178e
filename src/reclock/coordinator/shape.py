"""The objects of a timeline as an engine sees them: plans, and the graph that keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.coordinator.item import Index, MaterializedView, Table
from reclock.dataflow.render import build as render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.coordinator.catalog import Catalog
    from reclock.dataflow.graph import ArrangementId, Graph
    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Node
    from reclock.time.timeline import Timeline


@dataclass(frozen=True)
class Shape:
    """The graph of a timeline's objects; the plans of its views, inputs first.

    ``indexes`` has for each object that is indexed the arrangements that its indexes are.
    """

    graph: Graph
    views: Mapping[ObjectId, Node]
    indexes: Mapping[ObjectId, tuple[ArrangementId, ...]]

    @classmethod
    def of(cls, catalog: Catalog, timeline: Timeline) -> Shape:
        """Return the shape of the objects that a catalog has in a timeline."""
        items = catalog.of_timeline(timeline)
        views = {i.id: render.View(i.plan, i.key) for i in items if isinstance(i, MaterializedView)}
        indexes = [i for i in items if isinstance(i, Index)]
        graph, arranged = render.build_graph(
            {i.id: render.Relation(i.schema, i.key) for i in items if isinstance(i, Table)},
            views,
            {i.id: render.Index(i.on, i.key) for i in indexes},
        )
        by: dict[ObjectId, tuple[ArrangementId, ...]] = {}
        for index in indexes:
            by[index.on] = (*by.get(index.on, ()), arranged[index.id])
        return cls(graph, {item: view.plan for item, view in views.items()}, by)

    def has_history(self, arrangement: ArrangementId) -> bool:
        """Return whether an arrangement is read at past times."""
        indexed = any(arrangement in some for some in self.indexes.values())
        return indexed or self.graph.arrangements[arrangement].history
