"""Changes of the catalog: objects come and go, with their state, in one durable append.

1. Each timeline concerned ticks, so that nothing is pending: U = W = {u}.
2. The graph of the catalog after the change says which arrangements are new, and which are no
   longer needed. Arrangements in both versions are kept as they are.
3. New ones are hydrated as of u − 1 from those that exist, and written; or were before, except for
   the last times (``preparation``).
4. What temporal filters do at u is computed, for old and new objects alike.
5. One append: the catalog's records, the new runs, the removal of the old ones; U and W
   move by one step, to u + 1.

Where a tick is under way, or much is pending, objects come and go at no time: 1 and 4 are left out,
what is new is complete before U, and U and W stay (``joining``).

A crash before 5 leaves the catalog as it was, and at most a file that nothing names.

Transient views (``world``) come and go the same way, without a record in the catalog; they
end when something that they are defined by is dropped. A process that dies leaves their
arrangements behind, which ``reconcile`` removes.

``reconcile`` removes what is no longer needed. A database may also be opened by a version of
reclock that divides the same views into other arrangements, so that some are missing: then tables
and sources are kept, and all else is hydrated from them again.

Tests: tests/engine/test_change.py; crashes: test_crash.py.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from reclock.catalog.item import MaterializedView, Source, Table
from reclock.dataflow.changes import Changes
from reclock.dataflow.graph import Limits, collection_of, errors_of
from reclock.engine import multi_pace as joint
from reclock.engine import replacement
from reclock.engine.arrangements import FIRST, beginning, layouts_of, write_runs
from reclock.engine.joining import concerned, joins
from reclock.engine.preparation import scheduled
from reclock.engine.shape import Shape
from reclock.engine.tick import compute, settle, write
from reclock.failpoints import hit
from reclock.time.pace import order

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    import pyarrow as pa

    from reclock.arrangement.run import RunRef
    from reclock.catalog.item import Item
    from reclock.catalog.roles import Roles
    from reclock.dataflow.graph import ArrangementId
    from reclock.durable.keyed import Json
    from reclock.durable.store import Append
    from reclock.engine.arrangements import Runs
    from reclock.engine.core import Core
    from reclock.engine.preparation import Prepared
    from reclock.engine.replacement import Difference
    from reclock.engine.timeline import TimelineState, Untils
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp

INPUTS: Final = (Table, Source)
"""What cannot be computed from anything else."""


def change_catalog(
    core: Core,
    added: Iterable[Item] = (),
    removed: Iterable[ObjectId] = (),
    *,
    roles: Roles | None = None,
    prepared: Prepared | None = None,
    changes: Happening | None = None,
    also: Iterable[Pace] = (),
    least: int = 1,
    late: frozenset[ObjectId] = frozenset(),
) -> None:
    """Make the next version of the catalog, and everything it needs, durable at once.

    ``roles`` are those from then on, if privileges change with the objects; ``prepared`` is what
    the one object that is added needs, if it was filled before; ``changes`` are those of inputs
    at the time of the change, in the paces of the objects and in ``also``. The version is at
    ``least`` so many further. New objects that are ``late`` cannot be read before that time.
    """
    with core.writing():
        made, gone = tuple(added), tuple(removed)
        world = core.world
        paces = {**world.catalog.paces, **world.catalog.changed(made, gone).paces}
        moved = concerned(world, made, gone) | set(also)
        at_time = changes is not None or bool(also or late)
        joined = {p for p in moved if not at_time and joins(core, world, p, made, gone)}
        for pace in sorted(moved - joined, key=order):
            settle(core, pace)
        states = [core.world[pace] for pace in sorted(moved, key=order)]
        uppers = {state.pace: state.upper for state in states}
        if prepared is not None:
            made = tuple(
                prepared.dated(item) if item.id not in world.catalog.items else item
                for item in made
            )
        else:
            made = tuple(
                scheduled(item, uppers[paces[item.id]].back())
                if isinstance(item, MaterializedView) and item.id not in world.catalog.items
                else item
                for item in made
            )
        catalog = world.catalog.changed(made, gone, least)
        records: dict[ObjectId, Json | None] = dict.fromkeys(gone)
        records |= {item.id: item.record() for item in made}
        roles = core.world.roles if roles is None else roles
        records |= roles.records(core.world.roles)
        steps = catalog.version - world.catalog.version
        append, stored = core.catalog_store.change(core.world.stored, records, steps)
        transients = core.world.transients
        if any(view.depends & set(gone) for view in transients.values()):
            transients = {i: t for i, t in transients.items() if not t.depends & set(gone)}
        after = core.world.with_catalog(stored, catalog).with_transients(transients)
        filled = _filled(prepared, made)
        whole = after.with_roles(roles)
        replaced = replacement.roots(world.catalog, catalog)
        known = None if prepared is None else prepared.difference
        _publish(
            core, whole, [append], states, filled,
            joined=joined, changes=changes, late=late, replaced=replaced, difference=known,
        )  # fmt: skip
        if gone or replaced:
            core.collect_garbage()


def change_transients(
    core: Core,
    added: Iterable[MaterializedView] = (),
    removed: Iterable[ObjectId] = (),
    *,
    prepared: Prepared | None = None,
) -> None:
    """Begin to keep some views that are in no catalog, and end others."""
    with core.writing() as world:
        made, gone = {view.id: view for view in added}, set(removed)
        ended = [view for view in world.transients.values() if view.id in gone]
        paces = {world.pace(view) for view in (*made.values(), *ended) if view.timeline}
        states = [settle(core, pace) for pace in sorted(paces, key=order)]
        kept = {i: view for i, view in core.world.transients.items() if i not in gone}
        filled = _filled(prepared, tuple(made.values()))
        _publish(core, core.world.with_transients(kept | made), [], states, filled)
        if gone:
            core.collect_garbage()


Filled: TypeAlias = "Callable[[TimelineState, frozenset[ArrangementId], Untils], Runs | None]"
"""Gives the runs of new arrangements in a state, if they were prepared."""


Happening: TypeAlias = (
    "Callable[[TimelineState, Timestamp], Mapping[ObjectId, pa.RecordBatch | Changes]]"
)
"""Gives what happens to inputs at the time of a change of the catalog, in the state before it."""


def _filled(prepared: Prepared | None, made: tuple[Item, ...]) -> Filled:
    if prepared is None:
        return lambda *_: None
    item = prepared.item.id if len(made) > 1 else made[0].id  # a new one may get another id
    return partial(prepared.finished, item)


def _publish(
    core: Core,
    world: World,
    appends: list[Append],
    states: Iterable[TimelineState],
    filled: Filled,
    *,
    joined: Collection[Pace] = (),
    changes: Happening | None = None,
    late: frozenset[ObjectId] = frozenset(),
    replaced: frozenset[ObjectId] = frozenset(),
    difference: Difference | None = None,
) -> None:
    """Make a world durable in which ``states`` have the shape it asks for.

    They are settled, but for those of paces that are ``joined``.
    """
    moved = []
    for state in states:
        shape = Shape.of(world.catalog, state.pace, world.transients.values())
        if state.pace in joined:
            more, after = _joined(core, state, shape, filled)
        else:
            more, after = _reshape(
                core, state, shape, filled,
                changes=changes, late=late, replaced=replaced, difference=difference,
            )  # fmt: skip
        appends += more
        moved.append(after.with_bindings(core.store, world.catalog))
    hit("ddl.publish.before")
    core.publish(world, appends, *moved)
    for pace in joined:
        core.flights.joined(core.world[pace])
    hit("ddl.publish.after")


def reconcile(core: Core) -> None:
    """Bring every timeline's arrangements into the shape that its objects ask for."""
    with core.writing() as world:
        for timeline, state in world.timelines.items():
            needed, there = state.shape.graph.arrangements.keys(), state.arrangements.runs.keys()
            if needed == there:
                continue
            if needed < there:
                core.publish(
                    core.world,
                    *_reshape(core, settle(core, timeline), state.shape, _filled(None, ())),
                )
                continue
            given = [(i.id, i) for i in world.catalog.items.values() if isinstance(i, INPUTS)]
            only = Shape.of(replace(world.catalog, items=dict(given)), timeline)
            # The tick folds what is pending into tables; what views had is not used again.
            core.publish(core.world, [], replace(state, shape=only))
            appends, moved = _reshape(core, settle(core, timeline), state.shape, _filled(None, ()))
            core.publish(core.world, appends, moved)
        core.collect_garbage()


def _joined(
    core: Core, state: TimelineState, shape: Shape, filled: Filled
) -> tuple[list[Append], TimelineState]:
    """Return the step from a state to another shape that closes no time (``joining``)."""
    there, wanted = state.shape.graph.arrangements.keys(), shape.graph.arrangements.keys()
    new = frozenset(wanted - there)
    gone = frozenset(state.arrangements.runs.keys() - (there & wanted))
    untils: dict[ArrangementId, int | None] = dict.fromkeys(new & shape.filters.keys())
    added = filled(state, new, untils)
    if added is None:
        added = _hydrate(core, state, shape, new, untils)
    return state.joined(shape, added, gone)


def _reshape(
    core: Core,
    state: TimelineState,
    shape: Shape,
    filled: Filled,
    *,
    changes: Happening | None = None,
    late: frozenset[ObjectId] = frozenset(),
    replaced: frozenset[ObjectId] = frozenset(),
    difference: Difference | None = None,
) -> tuple[list[Append], TimelineState]:
    """Return the step from a settled state to another shape; new state is hydrated."""
    there = state.shape.graph.arrangements.keys()
    if shape.imports and not state.arrangements.runs:
        begun = replace(state.arrangements, own=joint.begin(core.world, shape))
        state = replace(state, arrangements=begun)
    wanted = shape.graph.arrangements.keys()
    fresh = replacement.renewed(shape.graph, replaced)
    new = frozenset(wanted - there) | fresh
    decided = core.expirations.untils(state, shape)
    untils = {name: until for name, until in decided.items() if name in new}
    added = filled(state, new, untils)
    if added is None:
        added, difference = _hydrate(core, state, shape, new, untils), None
    gone = frozenset(state.arrangements.runs.keys() - (there & wanted))
    between = state.arranged(shape, added, gone, untils)
    whole = _with_due(core, between, added, changes)
    if fresh:
        whole, exchanged = replacement.swapped(state, between, whole, fresh, difference)
        gone |= exchanged
    names = frozenset(name for item in late for name in (collection_of(item), errors_of(item)))
    whole = {name: _from_now(refs) if name in names else refs for name, refs in whole.items()}
    return state.reshaped(shape, whole, gone, untils)


def _from_now(refs: tuple[RunRef, ...]) -> tuple[RunRef, ...]:
    """Return the runs of an arrangement that can be read from its last run on, not before."""
    *before, last = refs
    described = replace(last.description, since=last.description.lower)
    return (*before, replace(last, description=described)) if before else refs


def _with_due(
    core: Core, between: TimelineState, added: Runs, changes: Happening | None = None
) -> Runs:
    """Return ``added`` and what happens at the time that the step closes, with ``changes``."""
    if between.is_own:
        return added  # it closes none
    time = core.expirations.closing(between, between.table_upper)
    inputs = {} if changes is None else changes(between, time)
    given = {i: c if isinstance(c, Changes) else Changes((c,)) for i, c in inputs.items()}
    due = write(between, compute(core, between, given, time), time)
    return {name: (*added.get(name, ()), *due.get(name, ())) for name in {**added, **due}}


def _hydrate(
    core: Core,
    state: TimelineState,
    shape: Shape,
    new: frozenset[ArrangementId],
    untils: Mapping[ArrangementId, int | None],
) -> Runs:
    """Write the contents of new arrangements as of the last complete time."""
    if not new:
        return {}
    as_of = state.upper.back()
    kept = {name: until for name, until in untils.items() if until is not None}
    limited = replace(shape, limits=Limits(kept, core.expirations.dropped))
    waits = state.upper <= FIRST  # for imports that have no complete time yet
    given = {} if waits else joint.traces_of(core.world, shape.imports)
    if not new.isdisjoint(state.arrangements.runs):
        state = state.arranged(state.shape, {}, new, {})  # what is replaced is not read
    copies = {name for item in shape.imports for name in (collection_of(item), errors_of(item))}
    rest = frozenset(new - copies)
    traces = {**state.traces, **given} if given else state.traces
    updates = dict(core.engine.hydrate(limited, rest, traces, as_of))
    updates |= joint.copied(given, new & copies, as_of)
    stem = state.stem("hydrate", state.upper)
    descriptions = dict.fromkeys(sorted(new), beginning(state.upper))
    return write_runs(state.segments, stem, updates, layouts_of(shape.graph), descriptions)
