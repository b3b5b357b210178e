"""Closing times: each update once, wherever it lies; what is wrong is found by some task."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.loop_cluster import LoopTasks
from reclock.arrangement.cache import RunCache
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import diff_of, time_of
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.store import LocalStore
from reclock.dataflow import delta as deltas
from reclock.dataflow.closing import Closing, close, hashes_of
from reclock.dataflow.job.errand import Kept
from reclock.dataflow.job.tasks import TasksHere
from reclock.dataflow.keying import Keying
from reclock.dataflow.stated_runs import StatedRuns
from reclock.time.description import Description
from reclock.time.frontier import at

ROW = (pa.int64(), pa.string())
DATA = st.tuples(st.integers(0, 3), st.none() | st.sampled_from("ab"))
UPDATES = st.lists(st.tuples(DATA, st.integers(4, 8), st.sampled_from([-1, 1, 1, 2])), max_size=8)
LOWER, END = 5, 8


def columns_of(rows):
    return [pa.array([row[n] for row in rows], kind) for n, kind in enumerate(ROW)]


def write(store, name, layout, batch, upper=1):
    with SegmentWriter(store, name) as writer:
        writer.add(name, layout, [batch], Description(at(0), at(upper), at(0)))
        return writer.finish()[0]


@settings(max_examples=30, deadline=None)
@given(
    st.tuples(st.lists(UPDATES, max_size=3), UPDATES.filter(len)),
    st.dictionaries(DATA, st.integers(1, 2)),
    st.sampled_from([(0,), (0, 1)]), st.sampled_from([LoopTasks(3), TasksHere()]),
)  # fmt: skip
def test_what_is_found_is_what_was_stated(tmp_path_factory, stated, there, key, tasks):
    parts, memory = stated
    store = LocalStore(tmp_path_factory.mktemp("segments"))
    keying = Keying(ROW, key)
    runs = StatedRuns(keying)

    def staged(some):
        times, diffs = (np.array([u[n] for u in some], np.int64) for n in (1, 2))
        return runs.updates(columns_of([u[0] for u in some]), pa.array(diffs), times)

    rows, ones = [*there], np.zeros(len(there), np.int64)
    before = deltas.build(columns_of(rows), ones + 3, np.array([*there.values()], np.int64))
    stored = consolidate(keying.layout, keying.arrange(before))
    state = Kept((write(store, "state", keying.layout, stored, LOWER),), at(LOWER))
    refs = tuple(write(store, f"p{n}", runs.keying.layout, staged(p)) for n, p in enumerate(parts))
    files = set(store.names())
    found = close(
        tasks, Closing(runs, refs, LOWER, END, state, (5, 6)), staged(memory), store, "out"
    )

    every = {u for part in (*parts, memory) for u in part if LOWER <= u[1] < END}
    assert found.counts == Counter(time for _, time, _ in every)
    for time in (5, 6):
        some = [u for u in every if u[1] == time]
        diffs = pa.array([u[2] for u in some], pa.int64())
        wanted = sorted(hashes_of(columns_of([u[0] for u in some]), diffs).tolist())
        assert found.hashes.get(time, np.empty(0)).tolist() == wanted
    assert 7 not in found.hashes
    two = {u[:2] for u in every if any(o[:2] == u[:2] and o != u for o in every)}
    assert (found.two_diffs is not None) == bool(two)
    if two:
        return
    counts, first = Counter(there), None
    for time in range(LOWER, END):
        counts.update({row: diff for row, when, diff in every if when == time})
        if first is None and min(counts.values(), default=0) < 0:
            first = time
    if first is not None:
        assert found.taken_away is not None
        assert found.taken_away.message.startswith(f"a row is taken away at time {first} ")
        return
    assert found.taken_away is None
    made = set()
    for ref in found.refs:
        for batch in RunCache().open(store, ref, keying.layout):
            columns = [c.to_pylist() for c in keying.columns(batch)]
            data = zip(*columns, strict=True)
            made |= {*zip(data, time_of(batch).tolist(), diff_of(batch).tolist(), strict=True)}
    assert made == every
    assert set(store.names()) - files == found.segments
