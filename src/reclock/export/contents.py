"""The rows of a relation by a sink's key: a look-up that costs what the keys cost.

For a sink whose key may repeat (``sinks.encode.shadow``) its relation is arranged by that key: made
and dropped with the sink, shared with every index and operator that asks for the same
(``engine.shape``). It is compacted no further than the relation, which the sink holds as far
back as it has written.

The arrangement may be younger than what is asked for: it is made as of the latest time, while
the sink may have to begin, or go on, before that. Then what changed between is taken off again,
which the sink is about to write anyway.

Cost: O(n log S) for n keys and S rows; never a scan of the contents. Tests:
tests/export/test_shadow_keys.py; on Spark: test_sinks_spark.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reclock.arrangement.column import canonical
from reclock.arrangement.layout import diff_of
from reclock.dataflow import delta as deltas
from reclock.dataflow.graph import collection_of
from reclock.dataflow.trace import DeltaTrace
from reclock.time.frontier import at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.dataflow.keying import Keying
    from reclock.dataflow.render.build import Index
    from reclock.engine.timeline import TimelineState
    from reclock.time.timestamp import Timestamp


def contents(
    state: TimelineState, by: Index, time: Timestamp, keys: Sequence[pa.Array]
) -> pa.RecordBatch:
    """Return the rows that a relation had at a time with these keys, as updates at that time."""
    arrangement = state.shape.graph.arrangements[state.shape.shadows[by]]
    keying, shard = arrangement.keying, state.traces[arrangement.id]
    wanted = _wanted(keying, keys)
    known = time.join(shard.description.since.element())
    found = [keying.restore(shard.lookup_at(wanted, known).updates)]
    if known > time:
        collection = state.shape.graph.arrangements[collection_of(by.on)]
        for batch in state.traces[collection.id].changes(time.step(), at(known.step())):
            trace = DeltaTrace(keying.layout, keying.arrange(collection.keying.restore(batch)))
            found.append(deltas.negate(keying.restore(trace.lookup(wanted).updates)))
    whole = deltas.union(found)
    times = np.full(whole.num_rows, time, np.int64)
    return deltas.consolidated(deltas.build(deltas.rows_of(whole), times, diff_of(whole)))


def _wanted(keying: Keying, keys: Sequence[pa.Array]) -> pa.RecordBatch:
    """Return ``kh, <key…>``: what to look up."""
    columns = [canonical(column) for column in keys]
    hashes = pa.array(deltas.key_hash(columns, len(columns[0])))
    return pa.RecordBatch.from_arrays([hashes, *columns], schema=keying.layout.key_schema)
