"""Refresh schedules: updates wait for the next time at which their view is refreshed.

Rule. An update of the query at t is one of the view at ``round_up(t)`` (``time.refresh``), so at a
refresh the view becomes what its query is then, and between two it does not change. Updates after
the last refresh are never seen, and not kept. Those of later times than the tick's wait, like
those of temporal filters (``operators.temporal``), in an arrangement by the time they are due.

Error rows are delayed like rows, in the same collection: a record is the columns of a row, and a
code and message, which are NULL for rows. They part when they come due (``steps.faults``).

Cost: the change and what is due. Keeps P3, of the times of the schedule; tests:
tests/dataflow/test_refresh.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reclock.dataflow import delta as deltas
from reclock.dataflow.error_rows import ERROR_TYPES
from reclock.dataflow.operators.temporal import FOREVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.arrangement.layout import Int64s
    from reclock.dataflow.delta import Types
    from reclock.time.refresh import Schedule


def round_up(schedule: Schedule, time: Int64s) -> Int64s:
    """Return the next refresh of every time; ``FOREVER`` if there is none."""
    asked = np.maximum(time, schedule.created)
    singles = np.array([*schedule.times, FOREVER], np.int64)
    due = singles[np.searchsorted(singles, asked)]
    for every in schedule.every:
        origin = schedule.created if every.aligned_to is None else every.aligned_to
        ahead = (origin - asked) % every.interval_ms
        np.minimum(due, np.where(ahead < FOREVER - asked, asked + ahead, FOREVER), out=due)
    return due


def records(rows: pa.RecordBatch, errors: Sequence[pa.RecordBatch], types: Types) -> pa.RecordBatch:
    """Return rows and error rows as one delta: the columns of both, NULL where they have none."""
    nothing = [pa.nulls(rows.num_rows, kind) for kind in ERROR_TYPES]
    parts = [deltas.build([*deltas.rows_of(rows), *nothing], *rows.columns[-2:])]
    for some in errors:
        empty = [pa.nulls(some.num_rows, kind) for kind in types]
        parts.append(deltas.build([*empty, *deltas.rows_of(some)], *some.columns[-2:]))
    return deltas.union(parts)
