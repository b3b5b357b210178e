"""First loads in small pieces while ticks go on: what renewals of expirations do in the driver.

Those that would take the driver more than a moment are Spark jobs, as all work is.

Tests: tests/dataflow/test_envelope_views.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from reclock.arrangement.stream import sliced
from reclock.dataflow.given import Given
from reclock.dataflow.graph import Output, collection_of
from reclock.dataflow.maintain import Tick
from reclock.dataflow.steps.linear import FlatMap, Linear
from reclock.dataflow.steps.multiset import Negate, Union
from reclock.dataflow.steps.temporal import Temporal
from reclock.dataflow.work import InProcess

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from reclock.arrangement.precedence import Unhurried
    from reclock.arrangement.shard import Shard
    from reclock.dataflow.evaluate import Evaluator
    from reclock.dataflow.graph import ArrangementId, Graph
    from reclock.dataflow.stop import Stop
    from reclock.dataflow.work import Work


PIECE_ROWS: Final = 1 << 14
"""How many rows background work takes at once: a few milliseconds of work."""

ROW_BY_ROW: Final = (Linear, FlatMap, Union, Negate, Temporal)
"""Steps of which the image of a sum is the sum of the images."""


@dataclass(frozen=True)
class Stream:
    """Updates in consolidated pieces that follow one another, each made when it is asked for."""

    rows: int
    batches: Iterator[pa.RecordBatch]


def hydrate_beside(
    work: Work, evaluator: Evaluator, beside: Unhurried, stop: Stop | None = None
) -> Mapping[ArrangementId, pa.RecordBatch | Stream]:
    """Do a first load while ticks go on, which go first: in small pieces, where that is possible.

    It is where only steps that look at one update at a time lie between one kept collection
    and what is new.
    """
    graph, as_of = work.graph, work.lower
    assert work.wanted is not None
    made: dict[ArrangementId, pa.RecordBatch | Stream] = {}
    rest: set[ArrangementId] = set()
    for name in sorted(work.wanted):
        source = _only_source(graph, name, work.kept)
        if source is None:
            rest.add(name)
            continue
        at, collection = source
        rows = (
            graph.arrangements[collection].keying.restore(block)
            for block in work.kept[collection].snapshot(as_of, block_rows=PIECE_ROWS)
        )
        found: list[pa.RecordBatch] = []
        for delta in beside.pieces(rows):
            if stop is not None:
                stop.check()
            tick = Tick(
                graph, {}, {}, range(as_of, as_of + 1), hydrating=True, given={at: Output(delta)},
                wanted=frozenset({name}), limits=work.limits,
            )  # fmt: skip
            found += tick.run(evaluator).values()
        if found:
            pieces = sliced(graph.arrangements[name].keying.layout, found, PIECE_ROWS)
            made[name] = Stream(sum(part.num_rows for part in found), beside.pieces(pieces))
    if rest:
        made |= InProcess(evaluator).run(replace(work, wanted=frozenset(rest)))
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
