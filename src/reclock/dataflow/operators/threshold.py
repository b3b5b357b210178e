"""distinct and threshold: counts per row, clamped.

Rule. With n(r, t) the count of row r at time t, the result holds f(n(r, t)) of it::

    distinct    f(n) = 1 if n > 0 else 0
    threshold   f(n) = max(n, 0)

so a change of r at t changes the result by f(n after) − f(n before). What a row does never
depends on another; a negative count counts as absent. EXCEPT and INTERSECT are these over
unions and negations.

State: the input's own trace, arranged by the whole row. Cost: a look-up per changed row.
Keeps P3 and P5.

Tests: tests/dataflow/test_threshold.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reclock.arrangement.layout import diff_of, kh_of, time_of
from reclock.dataflow import delta as deltas
from reclock.dataflow.grouping import check_sum, counted, group, running
from reclock.dataflow.keying import Keying

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.arrangement.layout import Int64s
    from reclock.dataflow.trace import Trace


def distinct(delta: pa.RecordBatch, trace: Trace) -> pa.RecordBatch:
    """Return the change of the rows present, each once."""
    return _clamped(delta, trace, lambda count: (count > 0).astype(np.int64))


def threshold(delta: pa.RecordBatch, trace: Trace) -> pa.RecordBatch:
    """Return the change of the rows present, each as often as it is."""
    return _clamped(delta, trace, lambda count: np.maximum(count, 0))


def _clamped(
    delta: pa.RecordBatch, trace: Trace, clamp: Callable[[Int64s], Int64s]
) -> pa.RecordBatch:
    keying = Keying.whole_row(deltas.types_of(delta))
    updates = keying.arrange(delta)
    groups = group(kh_of(updates), keying.layout.keys(updates), time_of(updates))
    if not len(groups.segments):
        return deltas.empty(keying.types)
    found, stored = trace.lookup(keying.keys(updates, groups.first_rows))
    base = counted(found, diff_of(stored), len(groups.groups))
    diff = diff_of(updates)[groups.order]
    check_sum(base, diff)
    sums = np.add.reduceat(diff, groups.segments)
    after = running(sums, groups.groups, base)
    change = clamp(after) - clamp(after - sums)
    changed = np.flatnonzero(change)
    rows = updates.take(pa.array(groups.segment_rows[changed]))
    return deltas.build(keying.columns(rows), time_of(rows), change[changed])
