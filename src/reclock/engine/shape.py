"""The objects of a timeline as an engine sees them: plans, and the graph that keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeGuard

import pyarrow as pa

from reclock.catalog.item import Index, MaterializedView, Sink, Source, Table
from reclock.dataflow.envelope import NONE, OWN_TIMES, envelope_fields
from reclock.dataflow.graph import Limits, collection_of, errors_of, letters_of, temp_of
from reclock.dataflow.render import build as render
from reclock.dataflow.render.source import Source as RenderedSource
from reclock.dataflow.types import arrow_types
from reclock.engine import letter_columns as letters
from reclock.sql.plan.relation import Get, walk
from reclock.sql.schema import Column, Schema
from reclock.sql.types import BIGINT, BOOLEAN, INTEGER, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Item
    from reclock.dataflow.graph import ArrangementId, Graph
    from reclock.ids import ObjectId
    from reclock.sql.plan.node import Node
    from reclock.time.pace import Pace


_KINDS: Final = {
    pa.int64(): BIGINT, pa.int32(): INTEGER, pa.string(): TEXT, pa.bool_(): BOOLEAN,
}  # fmt: skip
"""The types of what an envelope says in addition to the columns of rows."""


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
    sources: Mapping[ObjectId, RenderedSource] = field(default_factory=dict)
    shadows: Mapping[render.Index, ArrangementId] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    """From when on pending arrangements keep nothing (``TimelineState.limited``)."""
    imports: frozenset[ObjectId] = frozenset()
    """The objects of other paces that a joint one reads, and has copies of."""
    defined: Mapping[ObjectId, MaterializedView | Index] = field(default_factory=dict)
    """The views themselves: materialized ones, and indexes that keep a view."""
    letters: frozenset[ObjectId] = frozenset()
    """The sources that keep the records that they skip."""

    @classmethod
    def of(cls, catalog: Catalog, pace: Pace, transients: Iterable[MaterializedView] = ()) -> Shape:
        """Return the shape of the objects of a pace: the catalog's, and transient views."""
        passing = (
            view
            for view in transients
            if view.timeline is not None and catalog.pace(view.timeline, view.depends) == pace
        )
        items = (*catalog.of_pace(pace), *passing)
        defined = {i.id: i for i in items if is_computed(i)}
        views = {i: _view(item) for i, item in defined.items()}
        sources = {
            i.id: RenderedSource(i.schema, i.primary_key, _taken_in(i), len(i.statement.include))
            for i in items
            if isinstance(i, Source)
        }
        imports = _imports(catalog, pace, views.values())
        for i in imports:
            assert isinstance(i, Table | Source | MaterializedView)
            sources[i.id] = RenderedSource(i.schema, i.key, NONE)
        tables = {i.id: render.Relation(i.schema, i.key) for i in items if isinstance(i, Table)}
        for i in items:
            if isinstance(i, Source) and i.states:
                waiting = temp_schema(i)
                tables[temp_of(i.id)] = render.Relation(waiting, tuple(range(len(waiting))))
        skipping = frozenset(i.id for i in items if isinstance(i, Source) and i.keeps_letters)
        for item in skipping:
            tables[letters_of(item)] = render.Relation(letters.SCHEMA, letters.KEY)
        indexes = [i for i in items if isinstance(i, Index) and i.plan is None]
        looked_up = [
            render.Index(phase.relation, sink.shadow)
            for sink in items
            if isinstance(sink, Sink) and sink.shadow
            for phase in sink.phases
        ]
        wanted = {i.id: render.Index(i.arranged, i.key) for i in indexes}
        graph, made = render.build_graph(
            tables,
            views,
            {**wanted, **{index: index for index in looked_up}},
            sources,
        )
        arranged = {item: made[item] for item in wanted}
        shadows = {index: made[index] for index in looked_up}
        by: dict[ObjectId, tuple[ArrangementId, ...]] = {}
        for index in indexes:
            by[index.arranged] = (*by.get(index.arranged, ()), arranged[index.id])
        by |= _alternatives(defined.values())
        for looked, arrangement in shadows.items():
            by[looked.on] = (*by.get(looked.on, ()), arrangement)
        kept = {
            i.id: (collection_of(i.id), errors_of(i.id))
            if i.id in graph.views
            else (collection_of(i.id),)
            for i in items
            if isinstance(i, Table | Source) or i.id in defined
        }
        kept |= {item: (arrangement,) for item, arrangement in arranged.items()}
        plans = {item: view.plan for item, view in views.items()}
        others = frozenset(i.id for i in imports)
        return cls(
            graph, plans, by, kept, sources, shadows,
            imports=others, defined=defined, letters=skipping,
        )  # fmt: skip

    def reading(self, of: Mapping[ObjectId, Shape]) -> Shape:
        """Return a shape with what one query reads: of each object what its own shape has."""
        indexes = {item: shape.indexes.get(item, ()) for item, shape in of.items()}
        arrangements = {
            name: shape.graph.arrangements[name]
            for item, shape in of.items()
            for name in (collection_of(item), *indexes[item])
        }
        return replace(self, graph=replace(self.graph, arrangements=arrangements), indexes=indexes)

    def changed_by(self, items: Iterable[ObjectId]) -> list[str]:
        """Return the names of the views that depend on these objects; of none, if it is none."""
        inputs = {self.graph.entry(item)[0] for item in items}
        return [
            view.name
            for item, view in self.defined.items()
            if not inputs.isdisjoint(self.graph.cones[item])
        ]

    def made_of(self, arrangements: Iterable[ArrangementId]) -> list[str]:
        """Return the names of the views whose rows these arrangements hold."""
        new = frozenset(arrangements)
        return [v.name for item, v in self.defined.items() if not new.isdisjoint(self.kept[item])]

    @cached_property
    def filters(self) -> Mapping[ArrangementId, frozenset[ObjectId]]:
        """For each pending arrangement, the views whose own plan has its temporal filter."""
        own = {item: self.graph.own(item) for item in self.graph.views}
        return {
            name: frozenset(item for item, steps in own.items() if at in steps)
            for at, name in self.graph.waiting.items()
        }

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

        Those whose rows it holds; for what a sink looks up, the relation, which the sink holds;
        for letters, their source.
        """
        found = dict(self.owners)
        for index, arrangement in self.shadows.items():
            found[arrangement] = found.get(arrangement, frozenset()) | {index.on}
        for item in self.letters:
            found[collection_of(letters_of(item))] = frozenset({item})
        return found


def is_computed(item: Item) -> TypeGuard[MaterializedView | Index]:
    """Return whether the rows of an object are kept and are those of a query."""
    return isinstance(item, MaterializedView) or (isinstance(item, Index) and item.plan is not None)


def _view(item: MaterializedView | Index) -> render.View:
    assert item.plan is not None
    return render.View(item.plan, item.key, item.schedule)


def _alternatives(
    computed: Iterable[MaterializedView | Index],
) -> dict[ObjectId, tuple[ArrangementId, ...]]:
    """Return for each index that keeps a view what the other ones of that view are."""
    found: dict[ObjectId, list[ObjectId]] = {}
    for item in computed:
        if isinstance(item, Index):
            found.setdefault(item.on, []).append(item.id)
    return {
        one: tuple(collection_of(other) for other in same if other != one)
        for same in found.values()
        for one in same
    }


def _imports(catalog: Catalog, pace: Pace, views: Iterable[render.View]) -> list[Item]:
    """Return the objects that views read and that do not move with them, each once."""
    read = {n.item for view in views for n in walk(view.plan) if isinstance(n, Get)}
    return [i for i in catalog.items.values() if i.id in read and catalog.paces[i.id] != pace]


def temp_schema(source: Source) -> Schema:
    """Return the columns of what a source has read and not published yet."""
    row = [Column(f"c{i}", column.type) for i, column in enumerate(source.schema)]
    fields = envelope_fields(source.records, arrow_types(source.schema))
    images = [Column(f"b{i}", column.type) for i, column in enumerate(row)]
    before = images if source.is_transactional else []
    stated = (Column(f.name, _KINDS[f.type]) for f in fields[len(before) :])
    return Schema((*row, *before, *stated))


def _taken_in(source: Source) -> str:
    """Return the envelope of what of a source comes into the graph."""
    return NONE if source.envelope in OWN_TIMES else source.envelope
