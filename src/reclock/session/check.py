"""``db.check()``: verifies that the state is whole.

Read-only, while everything else goes on, from one world:

- memory agrees with the store: the catalog's objects, every frontier, and what is bound of
  every source, read again;
- every run that a manifest or the log of writes names is there, its bytes match their
  checksums, its times lie before its upper, and the runs of an arrangement meet;
- every arrangement that the objects need is there, and no other;
- the frontiers agree: ``U ≤ W``, ``read_ts ≥ U − 1``, ``since < U``, nothing is bound at or
  beyond ``U``, and the runs of an object are readable from its since on;
- no hold is at a forgotten time, or on an object that is gone, but for transactions that still read
  it and subscriptions that will be told when they read on.

Every byte is read, so the cost is the size of the state. A ``Finding`` has an object, a
SQLSTATE and a text, like an error; a state that is whole gives none.

Tests: tests/session/test_check.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reclock.arrangement.cache import RunCache
from reclock.arrangement.layout import time_of
from reclock.arrangement.shard import describe
from reclock.catalog.item import Table
from reclock.errors import Corrupt, Error, HoldViolation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.arrangement.layout import Layout
    from reclock.arrangement.run import RunRef
    from reclock.engine.timeline import TimelineState
    from reclock.engine.world import World
    from reclock.session.system import System


class Finding(NamedTuple):
    """Something that is not as it must be."""

    object: str
    code: str
    message: str
    detail: str | None = None


def check(core: System) -> list[Finding]:
    """Return everything that is wrong with the state; nothing, if it is whole."""
    found = list(_memory(core))
    with core.reading() as world:
        for state in world.timelines.values():
            found += _frontiers(state)
            found += _arrangements(world, state)
            found += _pending(world, state)
        found += _holds(core, world)
    return found


def _memory(core: System) -> Iterator[Finding]:
    with core.writing() as world:
        stored = core.load()
    if stored.catalog.items.keys() != world.catalog.items.keys():
        yield _finding("catalog", "the catalog in memory is not the one that is stored")
    for timeline, state in stored.timelines.items():
        known = world.timelines.get(timeline)
        if known is None or (known.upper, known.table_upper, known.oracle) != (
            state.upper, state.table_upper, state.oracle,
        ):  # fmt: skip
            yield _finding(str(timeline), "the frontiers in memory are not those that are stored")
            continue
        for source, bound in state.bindings.items():
            there = known.bindings.get(source)
            if there is None or there.remap.latest != bound.remap.latest:
                name = stored.items[source].name
                yield _finding(name, "the bindings in memory are not those that are stored")


def _frontiers(state: TimelineState) -> Iterator[Finding]:
    name = str(state.pace)
    if state.is_own:
        return
    if state.upper > state.table_upper:
        yield _finding(name, f"upper {state.upper} is beyond the tables' {state.table_upper}")
    if state.oracle.read_ts < state.upper.back():
        yield _finding(name, f"the oracle reads at {state.oracle.read_ts}, upper is {state.upper}")
    for source, bound in state.bindings.items():
        if not bound.remap.is_sealed and not bound.remap.upper.precedes(state.arrangements.upper):
            upper = bound.remap.upper
            yield _finding(source, f"positions are bound before {upper}, rows before {state.upper}")


def _arrangements(world: World, state: TimelineState) -> Iterator[Finding]:
    cache = RunCache()
    needed = state.shape.graph.arrangements
    names = _names(world, state)
    for arrangement in needed.keys() - state.arrangements.runs.keys():
        yield _finding(names.get(arrangement, arrangement), "an arrangement is missing")
    for arrangement in state.arrangements.runs.keys() - needed.keys():
        yield _finding(arrangement, "an arrangement belongs to no object")
    for arrangement in needed.keys() & state.arrangements.runs.keys():
        name = names.get(arrangement, arrangement)
        refs = state.arrangements.runs[arrangement]
        try:
            whole = describe(refs)
        except Error as error:
            yield _from(name, error)
            continue
        if not whole.upper.precedes(state.arrangements.upper):
            yield _finding(name, f"its runs end at {whole.upper}, beyond {state.upper}")
        for item in state.shape.owners.get(arrangement, ()):
            if not whole.since.precedes(state.sinces[item]):
                detail = f"runs: {whole.since}, object: {state.sinces[item]}"
                yield _finding(name, "its runs have forgotten more than it may", detail)
        layout = needed[arrangement].keying.layout
        for ref in refs:
            yield from _run(cache, state, ref, layout, name)


def _run(
    cache: RunCache, state: TimelineState, ref: RunRef, layout: Layout, name: str
) -> Iterator[Finding]:
    described = ref.description
    try:
        rows = 0
        for batch in cache.open(state.segments, ref, layout):
            rows += batch.num_rows
            latest = int(time_of(batch).max())
            if latest > max(described.since.element(), described.upper.element().back()):
                yield _finding(name, f"{ref} has an update at {latest}")
        if rows != ref.rows:
            yield _finding(name, f"{ref} has {rows} rows, not {ref.rows}")
    except Error as error:
        yield _from(name, error)


def _pending(world: World, state: TimelineState) -> Iterator[Finding]:
    cache = RunCache()
    for entry in state.wal.pending:
        table = world.catalog.items.get(entry.table)
        if table is None:
            yield _finding(entry.table, "a write is pending for an object that does not exist")
        else:
            assert isinstance(table, Table)
            yield from _run(cache, state, entry.run, table.keying.layout, table.name)


def _holds(core: System, world: World) -> Iterator[Finding]:
    sinces = {i: s for state in world.timelines.values() for i, s in state.sinces.items()}
    read, open_ = core.read_objects(), core.subscribers.holders()
    for row in core.holds.rows():
        since = sinces.get(row.object)
        if since is None and (row.object in read or row.holder in open_):
            continue
        if since is None:
            message = f"{row.holder} holds an object that is gone"
            yield _finding(row.object, message, code=HoldViolation.sqlstate)
        elif not since.precedes(row.since):
            message = f"{row.holder} holds {row.since}, which is forgotten"
            detail = f"since is {since}"
            yield _finding(world.items[row.object].name, message, detail, HoldViolation.sqlstate)


def _names(world: World, state: TimelineState) -> dict[str, str]:
    """Return the name of the object whose rows an arrangement holds, for those that do."""
    return {
        arrangement: world.items[item].name
        for item, arrangements in state.shape.kept.items()
        if item in world.items
        for arrangement in arrangements
    }


def _finding(
    name: str, message: str, detail: str | None = None, code: str = Corrupt.sqlstate
) -> Finding:
    return Finding(name, code, message, detail)


def _from(name: str, error: Error) -> Finding:
    return Finding(name, error.code, error.message, error.detail)
