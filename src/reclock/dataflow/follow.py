"""What new arrangements missed while they were filled: the changes of what they are made of.

A first load beside ticks (``hydrate``) gives the contents of new arrangements as of a time that is
past when it is done. ``follow`` brings them to a later one: the steps between kept collections and
what is new run as in a tick, whose changes are those that the collections had from ``lower`` to
before ``upper``. So however far behind a load begins, after it every time is what it would be had
the new arrangements been there all along (P3).

``before`` has all state at the times before ``lower``: that of the kept arrangements as it was
then, and that of the new ones; ``after`` has the kept collections up to ``upper``, and tells all
times from ``lower`` on apart.

Cost: that of the changes. Tests: tests/coordinator/test_prepare.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.dataflow import delta as deltas
from reclock.dataflow.given import Given
from reclock.dataflow.graph import Output, collection_of, errors_of
from reclock.dataflow.hydrate import with_errors
from reclock.dataflow.maintain import Tick
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from reclock.arrangement.shard import Shard
    from reclock.dataflow.evaluate import Evaluator
    from reclock.dataflow.graph import ArrangementId, Graph, Limits
    from reclock.time.timestamp import Timestamp


def follow(
    graph: Graph,
    new: frozenset[ArrangementId],
    before: Mapping[ArrangementId, Shard],
    after: Mapping[ArrangementId, Shard],
    *,
    lower: Timestamp,
    upper: Timestamp,
    evaluator: Evaluator,
    limits: Limits | None = None,
) -> dict[ArrangementId, pa.RecordBatch]:
    """Return what ``[lower, upper)`` appends to the ``new`` arrangements."""
    begin = Given.of(graph, new, after)

    def changed(name: ArrangementId) -> pa.RecordBatch:
        keying = graph.arrangements[name].keying
        parts = [keying.restore(batch) for batch in after[name].changes(lower, at(upper))]
        return deltas.union(parts) if parts else deltas.empty(keying.types)

    given = {
        step: Output(changed(collection_of(begin.steps[step])))
        for step in sorted(graph.needed(new, begin.steps) & begin.steps.keys())
    }
    known = {
        name: [rows for item in sorted(items) if (rows := changed(errors_of(item))).num_rows]
        for name, items in begin.errors.items()
    }
    tick = Tick(
        graph, {}, before, range(lower, upper),
        given=given, wanted=new, limits=limits, errors=known,
    )  # fmt: skip
    return with_errors(graph, tick.run(evaluator), known)
