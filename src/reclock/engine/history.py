"""History: how far back every object can be read, by windows, holds, and the since that follows.

Definition. Each object that keeps rows has a *since* in the ledger (``time.holds``). After
every step of its timeline it moves to what its window asks for (``RETAIN HISTORY FOR``,
else ``logical_compaction_window``), as far as the holds on it permit::

    since  ←  since ∨ (upper − window  ∧  meet of its holds)

This since is *logical*: reads before it are refused, whether or not a merge has forgotten the times
before it yet, so what can be read does not depend on when merges ran. Merges follow the ledger
(``merging``): the since of an object's runs is never beyond it. An object that does not change
moves like any other. When a database is opened, the ledger begins with the since of the runs, moved
as above: holds of a process that died hold nothing, but for those of sinks, which are made again
before anything moves: what a sink has not written yet is kept until it is, whatever the window and
however the last process ended. Only the since of the runs is durable, and that of a source's
bindings: after a window was made larger a restart may find more history than the ledger had
admitted; what it finds is exact.

Cost: O(objects) per step. Keeps P5; tests: tests/engine/test_history.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.catalog.item import Sink
from reclock.engine.arrangements import FIRST
from reclock.errors import HoldViolation
from reclock.ids import HolderId
from reclock.time.frontier import BEGINNING, CLOSED, at
from reclock.time.holds import Holds
from reclock.time.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.catalog.item import Item
    from reclock.catalog.settings import SystemSettings
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.time.frontier import Frontier
    from reclock.time.holds import Hold
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp


class History:
    """The ledger of a database, kept in step with its worlds."""

    def __init__(self, settings: SystemSettings) -> None:
        self._settings = settings
        self.holds = Holds()
        self._tracked: set[ObjectId] = set()
        self._sinks: dict[tuple[ObjectId, ObjectId], Hold] = {}
        self._joint: dict[Pace, tuple[frozenset[ObjectId], Hold]] = {}

    def followed(self, world: World, before: World | None) -> World:
        """Return ``world`` with the sinces of those timelines that have moved."""
        self._follow_sinks(world)
        self._follow_joint(world)
        same_catalog = (
            before is not None
            and before.catalog is world.catalog
            and before.transients is world.transients
        )
        moved = [
            self._followed(state, world)
            for timeline, state in world.timelines.items()
            if not (same_catalog and before and before.timelines.get(timeline) is state)
        ]
        after = world.with_states(moved)
        if not same_catalog:
            self._forget(after)
        return after

    def committed(self, sink: ObjectId, frontier: Timestamp) -> None:
        """Let a sink hold no more than what it needs when all before ``frontier`` is written."""
        for (holder, _), hold in tuple(self._sinks.items()):
            held = hold.sinces
            if holder == sink and held:
                latest = max(since.element() for since in held.values())
                hold.downgrade(at(latest.join(frontier.back())))

    def _follow_sinks(self, world: World) -> None:
        """Have every sink hold what it is made of, from all that is kept of it now on."""
        there = {
            (sink.id, phase.relation): sink
            for sink in world.catalog.of_kind(Sink)
            for phase in sink.phases
        }
        for gone in self._sinks.keys() - there.keys():
            self._sinks.pop(gone).release()
        for (item, relation), sink in there.items():
            if (item, relation) in self._sinks or sink.timeline is None:
                continue
            state = world.of(sink)
            kept = needed_of(world, state, relation)
            self._track(state, kept)
            self._sinks[item, relation] = self.holds.acquire(holder_of(item), kept)

    def _follow_joint(self, world: World) -> None:
        """Have every joint pace hold its imports at its own last time."""
        joint = {p: s for p, s in world.timelines.items() if s.shape.imports}
        for gone in self._joint.keys() - joint.keys():
            self._joint.pop(gone)[1].release()
        for pace, state in joint.items():
            imports, waits = state.shape.imports, state.upper <= FIRST
            since = None if waits else at(state.upper.back())  # it waits at what there is
            known = self._joint.get(pace)
            if known is not None and known[0] == imports:
                if since is not None:
                    known[1].downgrade(since)
                continue
            for item in imports:
                self._track(world.of(world.items[item]), [item])
            hold = self.holds.acquire(HolderId(f"views/{pace}"), imports, since)
            self._joint[pace] = imports, hold
            if known is not None:
                known[1].release()

    def _track(self, state: TimelineState, items: Iterable[ObjectId]) -> None:
        for item in items:
            if item not in self._tracked:
                since = state.stored_since(item)
                self.holds.track(item, since.join(at(FIRST)) if state.is_own else since)
                self._tracked.add(item)

    def _followed(self, state: TimelineState, world: World) -> TimelineState:
        sinces: dict[ObjectId, Frontier] = {}
        self._track(state, state.kept())
        upper = state.arrangements.upper
        if state.is_own:  # what is ahead of the oracle is read when that is there
            upper = upper.meet(at(world[state.timeline].oracle.read_ts.step()))
        for item in state.kept():
            policy = Policy(self._window(world.catalog.items.get(item)))
            wanted = policy.wanted(BEGINNING, upper)
            if state.is_own:
                wanted = wanted.join(at(FIRST))
            since = self.holds.advance(item, wanted)
            if state.shape.imports:  # it begins where its inputs do, whatever was held of it before
                since = since.join(state.stored_since(item))
            sinces[item] = since
        return replace(state, sinces=sinces)

    def _window(self, item: Item | None) -> int:
        """Return how much history an object keeps; one outside of the catalog, the default."""
        if item is None or item.retain_history_ms is None:
            return self._settings.logical_compaction_window_ms
        return item.retain_history_ms

    def _forget(self, world: World) -> None:
        """End the entries of objects that are gone, unless they are still held."""
        there = {item for state in world.timelines.values() for item in state.sinces}
        for item in self._tracked - there:
            self.holds.advance(item, CLOSED)
            try:
                self.holds.forget(item)
            except HoldViolation:
                continue  # its holder is told that it is gone, and lets go
            self._tracked.discard(item)


def holder_of(sink: ObjectId) -> HolderId:
    """Return the name under which a sink holds history."""
    return HolderId(f"sink/{sink}")


def needed_of(world: World, state: TimelineState, relation: ObjectId) -> list[ObjectId]:
    """Return what a sink of a relation holds: that, and all that it is made of."""
    objects = world.catalog.inputs(relation) | {relation}
    return [item for item in state.kept() if item in objects]
