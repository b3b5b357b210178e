"""The group operator: any function of whole groups, recomputed for the groups that changed.

Rule. For a function f of the rows of a group, the result is the union of f(group) over all
groups. A changed group has *versions*: the one before the tick, and one after each of its
changed times. The change of the result is, for each version and its predecessor::

    − f(predecessor) + f(version)     at the version's time

``snapshots`` lays out the rows of all versions of all changed groups, each tagged with the
number of its version; the caller applies f to each version at once (an Arrow function, or
a Spark query grouped by the tag); ``differences`` takes the tagged results and returns the
change, consolidated: rows of the result that stay come to nothing.

A snapshot is a multiset: a row with a negative count is ``NegativeCount``. A version may
have no rows; then f of it is nothing, and no group of the result exists.

State: the input's own trace, arranged by the group key; no other. Cost: the sizes of the
changed groups, times their versions. Keeps P3.

Tests: tests/dataflow/test_groups.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import diff_of, kh_of, time_of
from reclock.arrangement.row import rows_equal
from reclock.arrangement.stream import concat
from reclock.dataflow import delta as deltas
from reclock.dataflow.grouping import check_sum, group, running
from reclock.errors import NegativeCount

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from reclock.arrangement.layout import Int64s, Layout
    from reclock.dataflow.grouping import Groups
    from reclock.dataflow.keying import Keying
    from reclock.dataflow.trace import Trace

BEFORE: Final = -1
"""The predecessor, and the time, of a group's first version: the one before the tick."""


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The versions of the changed groups, and the rows of each.

    Per version: ``group`` (numbered from 0), ``time`` and ``predecessor``; the versions of
    a group are consecutive. Per tagged row: ``version``, ``row`` (an index into the columns
    ``rows``) and ``count`` (at least 1).
    """

    rows: tuple[pa.Array, ...]
    row: Int64s
    version: Int64s
    count: Int64s
    group: Int64s
    time: Int64s
    predecessor: Int64s

    def tagged(self) -> pa.RecordBatch:
        """Return ``version, c0, …, count``: each distinct row of a version once."""
        return self.select(np.arange(len(self.row)), self.count)

    def expanded(self) -> pa.RecordBatch:
        """Return ``version, c0, …, count``: each row as often as it occurs, with count 1.

        What SQL wants, which knows no counts.
        """
        entries = np.repeat(np.arange(len(self.row)), self.count)
        return self.select(entries, np.ones(len(entries), np.int64))

    def select(self, entries: Int64s, count: Int64s) -> pa.RecordBatch:
        """Return some of the tagged rows, with counts of their own."""
        at = pa.array(self.row[entries])
        return tag(self.version[entries], [column.take(at) for column in self.rows], count)


def tag(version: Int64s, columns: Sequence[pa.Array], count: Int64s) -> pa.RecordBatch:
    """Return ``version, c0, …, count``: the form of snapshots and of results."""
    names = ["version", *(f"c{i}" for i in range(len(columns))), "count"]
    return pa.RecordBatch.from_arrays([pa.array(version), *columns, pa.array(count)], names)


def snapshots(delta: pa.RecordBatch, trace: Trace, keying: Keying) -> Snapshots:
    """Return the versions of the groups, by the key of ``keying``, that ``delta`` changes."""
    updates = keying.arrange(delta)
    layout = keying.layout
    groups = group(kh_of(updates), layout.keys(updates), time_of(updates))
    found, stored = trace.lookup(keying.keys(updates, groups.first_rows))
    history = consolidate(layout, _by_version(layout, groups, updates, found, stored))
    # With the number of the group in the place of kh, and that of the version in the group
    # in the place of time, the history of each row of each group is in one place.
    owner, start, count = kh_of(history), time_of(history), diff_of(history)
    check_sum(count)
    new_row = _new_rows(layout, history)
    rows = np.flatnonzero(new_row)
    count = running(count, rows, np.zeros(len(rows), np.int64))
    versions = 1 + np.bincount(groups.group_of, minlength=len(groups.groups)).astype(np.int64)
    first = np.cumsum(versions) - versions
    end = versions[owner]
    end[:-1] = np.where(new_row[1:], end[:-1], start[1:])
    _check_multiset(keying, history, count)
    there = np.flatnonzero(count)
    owner, start, end, count = owner[there], start[there], end[there], count[there]
    life = end - start
    entry = np.repeat(np.arange(len(there)), life)
    nth = np.arange(len(entry)) - np.repeat(np.cumsum(life) - life - start, life)
    members = np.repeat(np.arange(len(versions)), versions)
    predecessor = np.arange(len(members)) - 1
    time = np.empty(len(members), np.int64)
    time[np.arange(len(groups.segments)) + groups.group_of + 1] = time_of(updates)[
        groups.segment_rows
    ]
    time[first] = predecessor[first] = BEFORE
    return Snapshots(
        tuple(keying.columns(history)),
        there[entry],
        first[owner[entry]] + nth,
        count[entry],
        members,
        time,
        predecessor,
    )


def differences(snaps: Snapshots, results: pa.RecordBatch) -> pa.RecordBatch:
    """Return the change of the result: ``results`` are ``version, c0, …, count``."""
    version, columns = results.column(0).to_numpy(), results.columns[1:-1]
    count = results.column(results.num_columns - 1).to_numpy()
    successor = np.full(len(snaps.group), BEFORE)
    later = np.flatnonzero(snaps.predecessor != BEFORE)
    successor[snaps.predecessor[later]] = later
    added = np.flatnonzero(snaps.predecessor[version] != BEFORE)
    taken = np.flatnonzero(successor[version] != BEFORE)
    time = np.concatenate((snaps.time[version[added]], snaps.time[successor[version[taken]]]))
    diff = np.concatenate((count[added], -count[taken]))
    at = pa.array(np.concatenate((added, taken)))
    return deltas.consolidated(deltas.build([c.take(at) for c in columns], time, diff))


def _by_version(
    layout: Layout,
    groups: Groups,
    updates: pa.RecordBatch,
    found: Int64s,
    stored: pa.RecordBatch,
) -> pa.RecordBatch:
    """Return all updates with (group, version in the group) for (kh, time)."""
    sizes = np.diff(np.append(groups.segments, len(groups.order)))
    nth = np.arange(len(groups.segments)) - groups.groups[groups.group_of] + 1
    changed = updates.take(pa.array(groups.order))
    new = layout.batch(
        np.repeat(groups.group_of, sizes),
        layout.rows(changed),
        np.repeat(nth, sizes),
        diff_of(changed),
    )
    old = layout.batch(
        found, layout.rows(stored), np.zeros(stored.num_rows, np.int64), diff_of(stored)
    )
    return concat([old, new])


def _new_rows(layout: Layout, history: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Return where a row differs from the one before it."""
    owner = kh_of(history)
    new = np.ones(len(owner), np.bool_)
    new[1:] = owner[1:] != owner[:-1]
    rows = layout.rows(history)
    if rows and len(owner) > 1:
        new[1:] |= ~rows_equal([c[:-1] for c in rows], [c[1:] for c in rows])
    return new


def _check_multiset(keying: Keying, history: pa.RecordBatch, count: Int64s) -> None:
    negative = np.flatnonzero(count < 0)
    if negative.size:
        at = int(negative[0])
        row = tuple(column[at].as_py() for column in keying.columns(history))
        message = "a group needs every row to occur at least zero times"
        raise NegativeCount(message, detail=f"{row!r} occurs {count[at]} times")
