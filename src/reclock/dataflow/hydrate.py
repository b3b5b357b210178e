"""The first contents of new arrangements: what they hold as of a time.

A view that is created late equals the one that was there from the beginning (P1), because
both are functions of the same collections: the plan runs once, from nothing, on all rows
as of ``as_of``. It begins from the collections that are kept already: tables, and the views
it refers to (with their errors), never from a second reading of a source.

Tests: tests/dataflow/test_envelope_views.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.stream import sliced
from reclock.dataflow import delta as deltas
from reclock.dataflow.given import Given
from reclock.dataflow.graph import Output, collection_of, errors_of
from reclock.dataflow.maintain import Tick
from reclock.dataflow.steps.linear import FlatMap, Linear
from reclock.dataflow.steps.multiset import Negate, Union
from reclock.dataflow.steps.temporal import Temporal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from reclock.arrangement.precedence import Unhurried
    from reclock.arrangement.shard import Shard
    from reclock.dataflow.evaluate import Evaluator
    from reclock.dataflow.graph import ArrangementId, Graph, Limits
    from reclock.dataflow.keying import Keying
    from reclock.time.timestamp import Timestamp


PIECE_ROWS: Final = 1 << 14
"""How many rows are looked at in one go beside ticks: a few milliseconds of work."""

ROW_BY_ROW: Final = (Linear, FlatMap, Union, Negate, Temporal)
"""Steps of which the image of a sum is the sum of the images."""


def hydrate(
    graph: Graph,
    new: frozenset[ArrangementId],
    traces: Mapping[ArrangementId, Shard],
    as_of: Timestamp,
    evaluator: Evaluator,
    *,
    limits: Limits | None = None,
) -> dict[ArrangementId, pa.RecordBatch]:
    """Return the updates, all at ``as_of``, that fill the ``new`` arrangements."""
    begin = Given.of(graph, new, traces)

    def kept(name: ArrangementId) -> pa.RecordBatch:
        return contents(graph.arrangements[name].keying, traces.get(name), as_of)

    given = {
        step: Output(kept(collection_of(begin.steps[step])))
        for step in sorted(graph.needed(new, begin.steps) & begin.steps.keys())
    }
    times = range(as_of, as_of + 1)
    known = {  # each view's own: they need not be the same
        name: [kept(errors_of(item)) for item in sorted(items)]
        for name, items in begin.errors.items()
    }
    tick = Tick(
        graph, {}, {}, times, hydrating=True, given=given, wanted=new, limits=limits, errors=known
    )
    return with_errors(graph, tick.run(evaluator), known)


def with_errors(
    graph: Graph,
    made: dict[ArrangementId, pa.RecordBatch],
    known: Mapping[ArrangementId, Sequence[pa.RecordBatch]],
) -> dict[ArrangementId, pa.RecordBatch]:
    """Return updates with the error rows that views take over from those they are made of.

    Those that are delayed were given to the step that does.
    """
    found = dict(made)
    for name in known.keys() - graph.delayed.values():
        keying = graph.arrangements[name].keying
        errs = [*known[name], *([keying.restore(made[name])] if name in made else ())]
        if errs:
            found[name] = consolidate(keying.layout, keying.arrange(deltas.union(errs)))
    return found


@dataclass(frozen=True)
class Stream:
    """Updates in consolidated pieces that follow one another, each made when it is asked for."""

    rows: int
    batches: Iterator[pa.RecordBatch]


def hydrate_beside(
    graph: Graph,
    new: frozenset[ArrangementId],
    traces: Mapping[ArrangementId, Shard],
    as_of: Timestamp,
    evaluator: Evaluator,
    *,
    beside: Unhurried,
    limits: Limits | None = None,
) -> Mapping[ArrangementId, pa.RecordBatch | Stream]:
    """Do the same beside ticks, which go first: in small pieces, where that is possible.

    It is where only steps that look at one update at a time lie between one kept collection
    and what is new.
    """
    made: dict[ArrangementId, pa.RecordBatch | Stream] = {}
    rest: set[ArrangementId] = set()
    for name in sorted(new):
        source = _only_source(graph, name, traces)
        if source is None:
            rest.add(name)
            continue
        at, collection = source
        rows = (
            graph.arrangements[collection].keying.restore(block)
            for block in traces[collection].snapshot(as_of, block_rows=PIECE_ROWS)
        )
        found: list[pa.RecordBatch] = []
        for delta in beside.pieces(rows):
            tick = Tick(
                graph, {}, {}, range(as_of, as_of + 1), hydrating=True, given={at: Output(delta)},
                wanted=frozenset({name}), limits=limits,
            )  # fmt: skip
            found += tick.run(evaluator).values()
        if found:
            pieces = sliced(graph.arrangements[name].keying.layout, found, PIECE_ROWS)
            made[name] = Stream(sum(part.num_rows for part in found), beside.pieces(pieces))
    if rest:
        made |= hydrate(graph, frozenset(rest), traces, as_of, evaluator, limits=limits)
    return made


def _only_source(
    graph: Graph, name: ArrangementId, traces: Mapping[ArrangementId, Shard]
) -> tuple[int, ArrangementId] | None:
    """Return the one step that an arrangement is made of update by update, and where it is kept."""
    new = frozenset({name})
    begin = Given.of(graph, new, traces)
    needed = graph.needed(new, begin.steps)
    sources, steps = needed & begin.steps.keys(), needed - begin.steps.keys()
    by_row = all(isinstance(graph.steps[at], ROW_BY_ROW) for at in steps)
    if len(sources) != 1 or not by_row or name in begin.errors:
        return None
    (source,) = sources
    return source, collection_of(begin.steps[source])


def contents(keying: Keying, shard: Shard | None, as_of: Timestamp) -> pa.RecordBatch:
    """Return all rows of an arrangement at ``as_of`` as a delta at that time."""
    parts = [] if shard is None else [keying.restore(b) for b in shard.snapshot(as_of)]
    return deltas.union(parts) if parts else deltas.empty(keying.types)
