"""Siblings with ranges of their own are read as one run: the same batches, touched as rarely."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.arrangement.cache import RunCache
from reclock.arrangement.family import Family, joined
from reclock.arrangement.layout import Layout, diff_of, kh_of
from reclock.arrangement.run import Run
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.shard import Shard
from reclock.arrangement.store import LocalStore
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp

LAYOUT = Layout.of({"k": pa.int64()}, {})


def at(time):
    return Antichain.of(Timestamp(time))


def batch_of(hashes, time=0):
    kh = np.array(hashes, np.int64)
    ones = np.ones(len(kh), np.int64)
    columns = [kh, kh, np.full(len(kh), time, np.int64), ones]
    return pa.RecordBatch.from_arrays(list(map(pa.array, columns)), schema=LAYOUT.schema)


def runs_of(store, *parts, time=0, batch_rows=2):
    """Return siblings, each with some hashes."""
    with SegmentWriter(store, f"t{time}") as writer:
        for nth, hashes in enumerate(parts):
            some = [batch_of(sorted(hashes), time)] if hashes else []
            span = Description(at(time), at(time + 1), at(0))
            writer.add(f"op/0.{nth}", LAYOUT, some, span, batch_rows=batch_rows)
        refs = writer.finish()
    cache = RunCache()
    return [cache.open(store, ref, LAYOUT) for ref in refs]


@given(st.sets(st.integers(-50, 50)), st.sets(st.integers(-50, 50), max_size=4), st.randoms())
def test_a_family_is_one_run(tmp_path_factory, hashes, cuts, random):
    store = LocalStore(tmp_path_factory.mktemp("store"))
    bounds = sorted(cuts)
    parts = [[] for _ in range(len(bounds) + 1)]
    for kh in hashes:
        parts[bisect_left(bounds, kh)].append(kh)
    random.shuffle(parts)
    found = joined(runs_of(store, *parts))
    if len(parts) == 1 or not hashes:
        assert all(isinstance(run, Run) for run in found)
        return
    (family,) = found
    assert isinstance(family, Family)
    assert family.rows == len(hashes)
    assert [int(kh) for batch in family for kh in kh_of(batch)] == sorted(hashes)
    assert [batch.num_rows for batch in family] == family.sizes.tolist()
    for index in range(family.batch_count):
        kh = kh_of(family.batch(index))
        assert (kh[0], kh[-1]) == (family.first[index], family.last[index])
        assert family.hashes(index).span(int(kh[0])) == (0, 1)
    for kh in range(-51, 52):
        there = [b for b, low, high in family.of_hash(kh) if kh in kh_of(b)[low:high]]
        assert len(there) == (kh in hashes)
        assert family.is_read(kh)


def test_a_hash_is_searched_in_one_run_of_a_family(tmp_path, monkeypatch):
    monkeypatch.setattr("reclock.arrangement.probe.SMALL_RUN", 0)
    runs = runs_of(LocalStore(tmp_path), range(10), range(10, 20), range(20, 30))
    shard = Shard(LAYOUT, tuple(runs))
    keys = pa.RecordBatch.from_arrays([pa.array([13, 99])] * 2, names=["kh", "k"])
    assert not any(run.is_read(13) for run in shard.sources)
    assert list(shard.lookup(keys).updates.column(1).to_pylist()) == [13]
    touched = [[run._batches[n] is not None for n in range(5)] for run in runs]
    none = [False] * 5
    assert touched == [none, [False, True, False, False, False], none]
    assert all(run.is_read(13) for run in shard.sources)


@pytest.mark.parametrize("parts", [([1, 5], [5, 9]), ([1, 9], [5])])
def test_siblings_that_overlap_stay_runs(tmp_path, parts):
    runs = runs_of(LocalStore(tmp_path), *parts)
    assert joined(runs) == tuple(runs)


def test_runs_of_other_intervals_stay_runs(tmp_path):
    store = LocalStore(tmp_path)
    runs = [
        *runs_of(store, [1], [2], time=0),
        *runs_of(store, [3], time=1),
        *runs_of(store, [], [4], [6, 7], time=2),
    ]
    first, second, third = joined(runs)
    assert isinstance(first, Family)
    assert first.runs == tuple(runs[:2])
    assert second is runs[2]
    assert isinstance(third, Family)
    assert third.runs == tuple(runs[4:])
    shard = Shard(LAYOUT, tuple(runs))
    snapshot = list(shard.snapshot(Timestamp(2)))
    assert [int(kh) for batch in snapshot for kh in kh_of(batch)] == [1, 2, 3, 4, 6, 7]
    assert {int(diff) for batch in snapshot for diff in diff_of(batch)} == {1}
