"""Views over objects that do not become complete together: they follow the one that is last.

Definition. The views of a *joint* pace (``time.pace``) read objects of other paces: its *imports*.
Its upper is as far as all of them are complete; each tick takes from their runs what changed since
the last, so that at every time t the views equal their queries over the imports at t (P3), however
far apart these are. No other pace waits for a joint pace, and it waits only for its imports.

It keeps a copy of every import, as of its own upper, because its operators look rows up there,
while the import itself is ahead; and it holds the imports back to that time, so that what
changed since then can still be told (``history``).

A joint view begins at the last time that is complete in all imports, and kept by all: where
there is none, because a source is further behind than the others remember, it is refused. While
some import has no complete time at all, the view waits: it has no time either, and holds the
others where they are. Its first tick closes a time at which all are complete and kept; it takes
them as they are at the first such time, from which on the view can be read.

Cost: the changes of the imports, and their copies. Tests: tests/engine/test_multi_pace.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from reclock.arrangement.stream import concat
from reclock.catalog.item import RelationItem
from reclock.dataflow import delta as deltas
from reclock.dataflow.error_rows import ERROR_TYPES
from reclock.dataflow.graph import collection_of, errors_of
from reclock.engine.arrangements import FIRST
from reclock.errors import Unreadable
from reclock.time.antichain import meet_all
from reclock.time.frontier import at, last_complete, readable_since
from reclock.time.pace import parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reclock.arrangement.shard import Shard
    from reclock.dataflow.graph import ArrangementId
    from reclock.engine.shape import Shape
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.ids import ObjectId
    from reclock.time.frontier import Bounds
    from reclock.time.pace import Pace
    from reclock.time.timestamp import Timestamp


def complete(world: World, state: TimelineState) -> Timestamp | None:
    """Return the last time that is complete in all imports; None if that is no news."""
    last = _last(world, state.shape.imports)
    if last is None or last < state.upper:
        return None
    return last if last >= first(world, state) else None


def first(world: World, state: TimelineState) -> Timestamp:
    """Return the first time that the next tick of a joint pace is right at.

    That is where it stands; if it has not begun, where all imports can be read.
    """
    if state.upper > FIRST:
        return state.upper
    return state.upper.join(readable_since([*_bounds(world, state.shape.imports)]))


def _bounds(world: World, imports: Iterable[ObjectId]) -> Iterator[Bounds]:
    for item in imports:
        relation = world.items[item]
        assert isinstance(relation, RelationItem)
        yield world.of(relation).bounds(relation)


def _last(world: World, imports: Iterable[ObjectId]) -> Timestamp | None:
    return _last_of([world.of(world.items[item]) for item in imports])


def _last_of(states: Sequence[TimelineState]) -> Timestamp | None:
    going = [state for state in states if not state.frontier.is_closed]
    if going:
        return last_complete(meet_all(state.frontier for state in going))
    return max((state.upper.back() for state in states), default=None)


def changes(world: World, state: TimelineState, time: Timestamp) -> dict[ObjectId, pa.RecordBatch]:
    """Return what changed in each import from the upper of a joint pace to ``time``."""
    found = {}
    for item in state.shape.imports:
        parts = [*_changed(world, state, item, time)]
        if parts:
            found[item] = deltas.union(parts)
    return found


def _changed(
    world: World, state: TimelineState, item: ObjectId, time: Timestamp
) -> Iterator[pa.RecordBatch]:
    """Yield rows, then errors, as the input of a source of which every record is a row."""
    origin = world.of(world.items[item])
    graph = origin.shape.graph
    row = graph.arrangements[collection_of(item)].keying.types
    for name in (collection_of(item), errors_of(item)):
        if name not in graph.arrangements:
            continue
        keying, trace = graph.arrangements[name].keying, origin.traces[name]
        for batch in _since(trace, state.upper, first(world, state), time):
            delta = keying.restore(batch)
            size, columns = delta.num_rows, deltas.rows_of(delta)
            if name == collection_of(item):
                columns += [pa.nulls(size, kind) for kind in ERROR_TYPES]
            else:
                columns = [*(pa.nulls(size, kind) for kind in row), *columns]
            yield deltas.build(columns, *delta.columns[-2:])


def _since(
    trace: Shard, upper: Timestamp, begin: Timestamp, time: Timestamp
) -> Iterator[pa.RecordBatch]:
    """Yield what changed from ``upper`` to ``time``; what is there at ``begin``, if that is first.

    It is if ``upper`` is earlier, or if what was before has been moved there: nothing was read yet.
    """
    moved = upper <= FIRST and not trace.description.since.less_than(upper)
    if begin > upper or moved:
        yield from trace.snapshot(begin)
        upper = begin.step()
    yield from trace.changes(upper, at(time.step()))


def has_begun(world: World, pace: Pace) -> bool:
    """Return whether there is a time that is complete in all that a joint pace follows."""
    states = [world.timelines[part] for part in parts_of(pace) if part != pace]
    return _last_of(states) is not None


def begin(world: World, shape: Shape) -> Timestamp:
    """Return the upper that a new joint pace has: all imports are complete before it.

    If some have no complete time yet, it has none either.
    """
    last = _last(world, shape.imports)
    if last is None:
        return FIRST
    bounds = [*_bounds(world, shape.imports)]
    since = readable_since(bounds)
    if last < since:
        message = "there is no time at which all that is read is complete and still kept"
        detail = ", ".join(f"{b.object} is readable in [{b.since}, {b.upper})" for b in bounds)
        hint = "wait until the last one is further, or let the others RETAIN HISTORY FOR longer"
        raise Unreadable(message, detail=detail, hint=hint)
    return last.step()


def traces_of(world: World, imports: Iterable[ObjectId]) -> dict[ArrangementId, Shard]:
    """Return the imports themselves: their rows and errors, where they are kept."""
    found: dict[ArrangementId, Shard] = {}
    for item in imports:
        origin = world.of(world.items[item])
        for name in (collection_of(item), errors_of(item)):
            if name in origin.arrangements.runs:
                found[name] = origin.traces[name]
    return found


def copied(
    traces: Mapping[ArrangementId, Shard], new: Iterable[ArrangementId], as_of: Timestamp
) -> dict[ArrangementId, pa.RecordBatch]:
    """Return the rows of imports at ``as_of``, as they lie in their copies."""
    found = {}
    for name in new:
        batches = [*traces[name].snapshot(as_of)] if name in traces else []
        if batches:
            found[name] = concat(batches)
    return found


def followed(
    traces: Mapping[ArrangementId, Shard],
    new: Iterable[ArrangementId],
    lower: Timestamp,
    upper: Timestamp,
) -> dict[ArrangementId, pa.RecordBatch]:
    """Return what changed in imports in ``[lower, upper)``, as it lies in their copies."""
    found = {}
    for name in new:
        batches = [*traces[name].changes(lower, at(upper))] if name in traces else []
        if batches:
            found[name] = concat(batches)
    return found
