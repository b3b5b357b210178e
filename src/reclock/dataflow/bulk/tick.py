"""A tick of many changes, in parts: what ``maintain.Tick`` computes, by the same operators.

The changes of each table, and the records of each source, are cut into as many slices as
parts run at once, arranged by the key of the table, or that of the source's envelope, and
exchanged like everything else; so a part has all changes of its range
of keys, at all their times. Operators look their state up in the runs that are kept, the
same for all parts; a look-up costs what its keys do, not what the runs hold. Steps and
arrangements that no change reaches are left out of the schedule.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from reclock.arrangement.segment import SegmentWriter, rows_per_batch
from reclock.dataflow.bulk.exchange import Kept, Shelf, by_hash
from reclock.dataflow.bulk.schedule import Schedule
from reclock.dataflow.bulk.stages import Stages, parts_for
from reclock.dataflow.bulk.task import EXCHANGED
from reclock.dataflow.operators.temporal import is_due
from reclock.time.description import Description
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from reclock.arrangement.run import RunRef
    from reclock.arrangement.shard import Shard
    from reclock.arrangement.store import Store
    from reclock.dataflow.bulk.workers import Made, Workers
    from reclock.dataflow.graph import ArrangementId, Graph, Limits
    from reclock.ids import ObjectId
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp


def step(
    workers: Workers,
    store: Store,
    graph: Graph,
    changes: Mapping[ObjectId, pa.RecordBatch],
    traces: Mapping[ArrangementId, Shard],
    *,
    lower: Timestamp,
    upper: Timestamp,
    limits: Limits | None = None,
) -> dict[ArrangementId, tuple[RunRef, ...]]:
    """Return runs, written to ``store``, that the changes in ``[lower, upper)`` append."""
    due = {
        name for name in graph.waiting.values()
        if name in traces and is_due(traces[name], lower, upper.back())
    }  # fmt: skip
    schedule = Schedule.of_tick(graph, changes.keys(), due, ahead=workers.ahead)
    looked_up = set().union(*(graph.reads.get(step, frozenset()) for step in schedule.steps))
    kept = {name: Kept.of(traces[name]) for name in looked_up if name in traces}
    rows = sum(delta.num_rows for delta in changes.values())
    parts = parts_for(rows, workers.parallelism)
    shelf = Shelf(store, parts, lower, upper.back(), hydrating=False, kept=kept)
    shelf.limits = limits or shelf.limits
    descriptions = {
        name: Description(_end(traces.get(name)), at(upper), at(0)) for name in schedule.new
    }
    passing = Description(at(lower), at(upper), at(0))
    names = blake2b(" ".join(sorted(schedule.new)).encode(), digest_size=8)
    stem = f"tick-{names.hexdigest()}-{lower}-{upper}"
    stages = Stages(workers, schedule, shelf, descriptions, passing, stem)
    return stages.run(_changes(shelf, graph, changes, passing, stem, slices=workers.parallelism))


def _end(shard: Shard | None) -> Antichain[Timestamp]:
    """Return where the last run of an arrangement ends."""
    return at(0) if shard is None else shard.runs[-1].ref.description.upper


def _changes(
    shelf: Shelf,
    graph: Graph,
    changes: Mapping[ObjectId, pa.RecordBatch],
    description: Description[Timestamp],
    stem: str,
    *,
    slices: int,
) -> Iterator[Made]:
    """Write the changes of tables and sources where all parts can read their ranges."""
    with SegmentWriter(shelf.store, f"{stem}-changes") as writer:
        names = []
        for item, delta in changes.items():
            _, name = graph.entry(item)
            keying = graph.keying(name)
            size = -(-delta.num_rows // slices)
            for start in range(0, delta.num_rows, max(1, size)):
                updates = by_hash(keying.arrange(delta.slice(start, size)))
                per_batch = rows_per_batch(updates.num_rows, updates.nbytes)
                run = f"{name}.{start}"
                writer.add(run, keying.layout, [updates], description, batch_rows=per_batch)
                names.append(name)
        for name, ref in zip(names, writer.finish(), strict=True):
            yield EXCHANGED, name, ref
