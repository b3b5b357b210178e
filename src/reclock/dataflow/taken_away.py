"""Updates that take away what is not there: told before they are published, with the row.

Definition. The rows of a source that brings its updates are a multiset at every time: with n(t) how
often a row is there after the updates up to t, n(t) ≥ 0. A sender whose updates say otherwise
contradicts itself; nothing of what it says at that time is published, so no view ever has to make
something of a row that is there less often than not at all (P9).

Cost: a look-up of each row that is taken away.
Tests: tests/ingest/test_taken_away.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reclock.arrangement.layout import diff_of, kh_of, time_of
from reclock.dataflow import delta as deltas
from reclock.dataflow.grouping import group, running
from reclock.dataflow.keying import Keying
from reclock.errors import ConflictingStatements

if TYPE_CHECKING:
    from reclock.arrangement.shard import Shard


def check_taken_away(keying: Keying, stored: Shard, changes: pa.RecordBatch) -> None:
    """Refuse changes, of rows and of errors, that leave a row less often than not at all."""
    width = len(keying.types)
    good = changes.column(width).is_null()
    delta = deltas.build(changes.columns[:width], *changes.columns[-2:]).filter(good)
    found = first_taken_away(keying, stored, keying.arrange(delta))
    if found is not None:
        raise found[1]


def first_taken_away(
    keying: Keying, stored: Shard, updates: pa.RecordBatch
) -> tuple[int, ConflictingStatements] | None:
    """Return what is wrong with updates first, and when: a row is there too seldom.

    Of a range of hashes they are enough, and what is stored of it.
    """
    taken = np.isin(kh_of(updates), np.unique(kh_of(updates)[diff_of(updates) < 0]))
    if not taken.any():
        return None
    some = updates.filter(pa.array(taken))
    keys = keying.layout.keys(some)
    first = group(kh_of(some), keys, np.zeros(some.num_rows, np.int64)).first_rows
    known = keying.restore(stored.lookup(keying.keys(some, first)).updates)
    before = deltas.build(
        deltas.rows_of(known), np.full(known.num_rows, -1, np.int64), diff_of(known)
    )
    whole = Keying.whole_row(keying.types)
    every = whole.arrange(deltas.union([before, keying.restore(some)]))
    groups = group(kh_of(every), whole.layout.keys(every), time_of(every))
    sums = np.add.reduceat(diff_of(every)[groups.order], groups.segments)
    base = np.zeros(len(groups.groups), np.int64)
    counts = running(sums, groups.groups, base)
    wrong = np.flatnonzero((counts < 0) & (time_of(every)[groups.segment_rows] >= 0))
    if not len(wrong):
        return None
    at = int(wrong[np.argmin(time_of(every)[groups.segment_rows[wrong]])])
    place = int(groups.segment_rows[at])
    row = tuple(column[place].as_py() for column in whole.columns(every))
    message = f"a row is taken away at time {time_of(every)[place]} that is not there"
    detail = f"the row is {row!r:.200}; it would be there {counts[at]} times"
    return int(time_of(every)[place]), ConflictingStatements(message, detail=detail)
