"""The world: catalog, timelines and settings at one moment, as one frozen value that readers use.

A world is the catalog, the state of every timeline, and the system's settings; and the *transient*
views, which are kept like others but only while they have subscribers: they are in no catalog, and
a process that opens the database does not know them. A world is replaced whole after each durable
append, so a reader of one sees objects, runs and frontiers that belong together, however long it
reads and whatever happens meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from reclock.catalog.roles import Roles
from reclock.catalog.settings import Values
from reclock.engine.arrangements import FIRST
from reclock.engine.first_time import Loading
from reclock.time.pace import Own

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reclock.catalog.catalog import Catalog
    from reclock.catalog.item import Index, Item, MaterializedView, RelationItem
    from reclock.durable import catalog_store
    from reclock.engine.source_bindings import Bindings
    from reclock.engine.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.time.frontier import Bounds
    from reclock.time.pace import Pace
    from reclock.time.timeline import Timeline
    from reclock.time.timestamp import Timestamp


@dataclass(frozen=True, eq=False)
class World:
    """The catalog, as planning knows it and as it is stored; all timelines; the settings."""

    stored: catalog_store.Catalog = field(repr=False)  # the records of sources have secrets
    catalog: Catalog
    timelines: Mapping[Pace, TimelineState] = field(default_factory=dict)
    """By pace: that of a timeline itself, and those that move apart from it."""
    settings: Values = field(default_factory=Values)
    roles: Roles = field(default_factory=Roles)
    transients: Mapping[ObjectId, MaterializedView] = field(default_factory=dict)
    drafted: Mapping[ObjectId, TimelineState] = field(default_factory=dict)
    """Tables that a transaction has written: what it alone reads of them (``draft``)."""

    @cached_property
    def items(self) -> Mapping[ObjectId, Item]:
        """All that is kept: the catalog's objects, and the transient views."""
        return {**self.catalog.items, **self.transients}

    def __getitem__(self, pace: Pace) -> TimelineState:
        return self.timelines[pace]

    def pace(self, item: Item) -> Pace:
        """Return with whom an object moves, one that has a timeline."""
        if (found := self.catalog.paces.get(item.id)) is not None:
            return found
        assert item.timeline is not None
        return self.catalog.pace(item.timeline, item.depends)

    def paces(self, items: Iterable[Item]) -> set[Pace]:
        """Return the paces of those objects that are kept, or, if they are new, will be."""
        return {self.pace(item) for item in items if item.arranges and item.timeline is not None}

    def of(self, item: Item) -> TimelineState:
        """Return the state that an object is part of."""
        found = self.drafted.get(item.id)
        return self.timelines[self.pace(item)] if found is None else found

    def bounds(self, item: RelationItem | Index) -> Bounds:
        """Return the times at which an object can be read.

        Not before the sources of its rows can be (``source.first``); while one of them cannot at
        all, from the first time on that is not complete.
        """
        state = self.of(item)
        bounds = state.bounds(item)
        since = bounds.since
        for source in self.sources_of(item):
            begun = self._bindings(source).readable_from
            since = since.join(state.arrangements.upper if begun is None else begun)
        return replace(bounds, since=since)

    def sources_of(self, item: RelationItem | Index) -> frozenset[ObjectId]:
        """Return the sources that the rows of an object come from."""
        known = self.catalog.origins
        found = known.get(item.id)
        return self.catalog.origins_of(item, known) if found is None else found

    def loading(self, items: Iterable[RelationItem | Index]) -> list[Loading]:
        """Return how far those sources of the rows of some objects are that cannot be read yet."""
        sources = frozenset().union(*(self.sources_of(item) for item in items))
        found = []
        for source in sorted(sources):
            bound = self._bindings(source)
            if bound.readable_from is None:
                assert bound.first is not None
                found.append(Loading(source, self.catalog[source].name, bound.remap, bound.first))
        return found

    def _bindings(self, source: ObjectId) -> Bindings:
        return self.of(self.catalog[source]).bindings[source]

    def own(self, timeline: Timeline) -> Timestamp | None:
        """Return the last time that is complete in all sources that bring times of a timeline.

        Those that have not begun say nothing yet. Those that have ended are complete at every
        time: they count if there are no others.
        """
        states = [
            state
            for pace, state in self.timelines.items()
            if isinstance(pace, Own)
            and pace.timeline == timeline
            and state.bindings
            and state.upper > FIRST
        ]
        going = [state for state in states if not state.is_complete]
        times = [state.upper.back() for state in going or states]
        return (min if going else max)(times, default=None)

    def with_states(self, states: Iterable[TimelineState]) -> World:
        """Return the world in which some timelines have moved."""
        moved = {state.pace: state for state in states}
        return replace(self, timelines={**self.timelines, **moved})

    def with_catalog(self, stored: catalog_store.Catalog, catalog: Catalog) -> World:
        """Return the world with another version of the catalog."""
        return replace(self, stored=stored, catalog=catalog)

    def with_transients(self, transients: Mapping[ObjectId, MaterializedView]) -> World:
        """Return the world with other transient views."""
        return replace(self, transients=transients)

    def with_settings(self, settings: Values) -> World:
        """Return the world with other settings of the system."""
        return replace(self, settings=settings)

    def with_roles(self, roles: Roles) -> World:
        """Return the world with other roles."""
        return replace(self, roles=roles)

    def named_segments(self) -> set[str]:
        """Return every segment that some timeline needs."""
        return {name for state in self.timelines.values() for name in state.named_segments()}
