"""A first load in parts: the contents of new arrangements as of a time."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from reclock.dataflow.bulk.exchange import Kept, Shelf
from reclock.dataflow.bulk.schedule import Keyed, Schedule, keyed_inputs
from reclock.dataflow.bulk.stages import Stages, parts_for
from reclock.dataflow.given import Given
from reclock.dataflow.graph import ArrangementId, errors_of
from reclock.time.description import Description
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.arrangement.run import RunRef
    from reclock.arrangement.shard import Shard
    from reclock.arrangement.store import Store
    from reclock.dataflow.bulk.workers import Workers
    from reclock.dataflow.graph import Graph, Limits
    from reclock.time.timestamp import Timestamp


def hydrate(
    workers: Workers,
    store: Store,
    graph: Graph,
    new: frozenset[ArrangementId],
    traces: Mapping[ArrangementId, Shard],
    *,
    as_of: Timestamp,
    limits: Limits | None = None,
) -> dict[ArrangementId, tuple[RunRef, ...]]:
    """Return runs, written to ``store``, that fill the ``new`` arrangements."""
    given = Given.of(graph, new, traces)
    schedule = Schedule.of_load(graph, new, given, ahead=workers.ahead)
    sources = given.sources(graph, new)
    rows = sum(traces[name].rows for name in sources)
    kept = {name: Kept.of(traces[name]) for name in _read(schedule, sources) if name in traces}
    parts = parts_for(rows, workers.parallelism)
    workers.load.begin(len(schedule.stages) * parts.count)
    shelf = Shelf(store, parts, as_of, as_of, hydrating=True, kept=kept)
    shelf.limits = limits or shelf.limits
    description = Description(at(0), at(as_of.step()), at(as_of))
    names = blake2b(" ".join(sorted(new)).encode(), digest_size=8)
    stem = f"load-{names.hexdigest()}-{as_of}"
    descriptions = dict.fromkeys(new, description)
    return Stages(workers, schedule, shelf, descriptions, description, stem).run()


def _read(schedule: Schedule, sources: frozenset[ArrangementId]) -> frozenset[ArrangementId]:
    """Return the kept arrangements that workers read."""
    graph = schedule.graph
    found = set(sources)
    for plan in schedule.stages:
        for step in map(graph.steps.__getitem__, plan.steps):
            if isinstance(step, Keyed):
                found |= {name for _, name in keyed_inputs(step)}
        found |= {errors_of(item) for items in plan.kept_errors.values() for item in items}
    return frozenset(found - schedule.new)
