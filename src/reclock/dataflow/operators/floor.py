"""Changes without a key that take away what is not there: errors, and never less than none.

Rule. For each row, with n(t) what the changes up to t come to::

    n(t) = max(0, n(t−) + change at t)

and each time that a row would be there less often than not at all is a lasting error row. So
what comes out is a multiset whatever comes in: a log that begins in the middle, or repeats
itself, is an error of its source, and not of every view over it.

State: the result's own trace, arranged by the whole row. Cost: a look-up per changed row.
Keeps P3 and P9.

Tests: tests/dataflow/test_envelopes.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.arrangement.layout import diff_of, kh_of, time_of
from reclock.dataflow import delta as deltas
from reclock.dataflow.grouping import check_sum, counted, group, running
from reclock.dataflow.keying import Keying

if TYPE_CHECKING:
    from reclock.arrangement.layout import Int64s
    from reclock.dataflow.grouping import Groups
    from reclock.dataflow.trace import Trace

ABSENT: Final = ("22000", "a row was taken away that was not there")


def floored(delta: pa.RecordBatch, trace: Trace) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Return the change of the rows, and the error rows if there are any."""
    keying = Keying.whole_row(deltas.types_of(delta))
    updates = keying.arrange(delta)
    groups = group(kh_of(updates), keying.layout.keys(updates), time_of(updates))
    if not len(groups.segments):
        return deltas.empty(keying.types), None
    found, stored = trace.lookup(keying.keys(updates, groups.first_rows))
    base = counted(found, diff_of(stored), len(groups.groups))
    diff = diff_of(updates)[groups.order]
    check_sum(base, diff)
    sums = np.add.reduceat(diff, groups.segments)
    missing = _missing(running(sums, groups.groups, base), groups)
    change = sums + missing
    changed, failed = np.flatnonzero(change), np.flatnonzero(missing)
    rows = updates.take(pa.array(groups.segment_rows[changed]))
    made = deltas.build(keying.columns(rows), time_of(rows), change[changed])
    if not len(failed):
        return made, None
    texts = [pa.array([text] * len(failed), pa.string()) for text in ABSENT]
    time = time_of(updates)[groups.segment_rows[failed]]
    return made, deltas.build(texts, time, missing[failed])


def _missing(count: Int64s, groups: Groups) -> Int64s:
    """Return how often each segment takes a row away that is not there."""
    made = np.zeros(len(count), np.int64)
    for number in np.unique(groups.group_of[count < 0]).tolist():  # only those with an error
        mine = slice(groups.groups[number], groups.last_segments[number] + 1)
        owed = np.maximum.accumulate(np.maximum(-count[mine], 0))
        made[mine] = np.diff(owed, prepend=0)
    return made
