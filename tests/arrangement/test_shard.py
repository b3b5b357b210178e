"""A shard of random runs, some merged, against a Counter at every time.

The model catches wrong sums, lost and doubled updates; comparing before and after merges
catches wrong compaction; reading at every time catches wrong times.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.build import build
from reclock.arrangement.cache import RunCache
from reclock.arrangement.layout import Layout
from reclock.arrangement.merge import merge
from reclock.arrangement.run import RunRef
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.shard import Shard
from reclock.arrangement.store import LocalStore
from reclock.change.value import canonical
from reclock.errors import InvalidValue, Unreadable
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp
from strategies.arrangements import (
    Change,
    changes_in,
    changes_of,
    hashes,
    keys_of,
    layouts,
    model,
    rows_of,
    table_of,
)


def at(time):
    return Antichain.of(Timestamp(time))


class Made(NamedTuple):
    shard: Shard
    changes: list[Change]
    how: str
    since: int
    upper: int


def make(data, store):
    """Write runs over consecutive intervals, then merge some neighbours, compacting."""
    layout = data.draw(layouts())
    how = data.draw(hashes)
    bounds = [0, *sorted(data.draw(st.lists(st.integers(1, 10), min_size=1, max_size=5)))]
    cache = RunCache()
    changes: list[Change] = []
    refs: list[RunRef] = []
    for lower, upper in pairwise(bounds):
        some = data.draw(changes_of(layout, lower, upper, 12)) if lower < upper else []
        changes += some
        with SegmentWriter(
            store, f"t{lower}", inline_limit=data.draw(st.sampled_from([0, 9999]))
        ) as w:
            build(
                w,
                "op/0",
                layout,
                table_of(layout, some, how),
                Description(at(lower), at(upper), at(0)),
            )
            refs += w.finish()
    since = 0
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(refs) - 1))
        stop = data.draw(st.integers(start + 1, len(refs)))
        since = data.draw(st.integers(since, 11))
        runs = [cache.open(store, ref, layout) for ref in refs[start:stop]]
        with SegmentWriter(store, f"m{since}") as writer:
            merge(writer, "op/0", layout, runs, at(since))
            refs[start:stop] = writer.finish()
    since = max(ref.description.since.element() for ref in refs)
    return Made(Shard.open(layout, refs, store, cache), changes, how, since, bounds[-1])


@given(st.data())
def test_snapshots_are_the_models_at_every_time(tmp_path_factory, data):
    shard, changes, _, since, upper = make(data, LocalStore(tmp_path_factory.mktemp("s")))
    assert shard.description == Description(at(0), at(upper), at(since))
    for time in range(12):
        if since <= time < upper:
            read = changes_in(shard.layout, shard.snapshot(Timestamp(time)))
            expected = model(changes, lambda t, now=time: now if t <= now else None)
            assert model(read) == expected
            assert len(read) == len(expected)
        else:
            with pytest.raises(Unreadable, match=f"a read at {time} is not possible"):
                shard.snapshot(Timestamp(time))


@given(st.data())
def test_ranges_of_hashes_give_the_snapshot_in_parts(tmp_path_factory, data):
    shard, _, _, since, upper = make(data, LocalStore(tmp_path_factory.mktemp("s")))
    if since >= upper:
        return
    time = Timestamp(data.draw(st.integers(since, upper - 1)))
    whole = list(shard.snapshot(time))
    stored = sorted({kh for batch in whole for kh in batch.column(0).to_pylist()})
    cuts = st.sampled_from(stored) if stored else st.integers(-5, 5)
    ends = sorted(data.draw(st.sets(cuts, max_size=3)) - {2**63 - 1})
    firsts, lasts = [-(2**63), *(e + 1 for e in ends)], [*ends, 2**63 - 1]
    parts = []
    for first, last in zip(firsts, lasts, strict=True):
        part = list(shard.snapshot_range(time, first, last))
        assert all(first <= kh <= last for batch in part for kh in batch.column(0).to_pylist())
        parts += part
    read, expected = (changes_in(shard.layout, some) for some in (parts, whole))
    assert model(read) == model(expected)
    assert len(read) == len(expected)
    with pytest.raises(Unreadable, match="is not possible"):
        shard.snapshot_range(Timestamp(upper), 0, 1)


@given(st.data())
def test_look_ups_are_the_models_at_every_time(tmp_path_factory, data):
    shard, changes, how, since, upper = make(data, LocalStore(tmp_path_factory.mktemp("s")))
    layout = shard.layout
    keys = data.draw(st.lists(rows_of(layout.key), max_size=6))
    asked = keys_of(layout, keys, how)
    for time in range(since, upper):
        index, updates = shard.lookup_at(asked, Timestamp(time))
        found = list(zip(index.tolist(), changes_in(layout, [updates]), strict=True))
        expected = Counter(
            {
                (i, row): count
                for i, key in enumerate(keys)
                for row, count in model(
                    (c for c in changes if canonical(c.key) == canonical(key)),
                    lambda t, now=time: now if t <= now else None,
                ).items()
            }
        )
        read = {(i, (canonical(c.key), canonical(c.value), c.time)): c.diff for i, c in found}
        assert read == expected
        assert len(found) == len(expected)
        assert index.tolist() == sorted(index.tolist())
        hashes_asked = asked.column(0).to_pylist()
        assert updates.column(0).to_pylist() == [hashes_asked[i] for i in index.tolist()]
        raw = shard.lookup(asked)
        assert Counter(raw.probe.tolist()).keys() >= Counter(index.tolist()).keys()


@given(st.data(), st.integers(0, 10), st.integers(0, 10))
def test_changes_are_the_models_or_refused(tmp_path_factory, data, lower, upper):
    made = make(data, LocalStore(tmp_path_factory.mktemp("s")))
    if (made.since == 0 or lower > made.since) and upper <= made.upper:
        read = changes_in(made.shard.layout, made.shard.changes(Timestamp(lower), at(upper)))
        assert model(read) == model(made.changes, lambda t: t if lower <= t < upper else None)
        pieces = list(made.shard.changes_by_run(Timestamp(lower), at(upper)))
        parts = [changes_in(made.shard.layout, piece) for piece in pieces]
        assert all(parts)
        assert model(c for part in parts for c in part) == model(read)
        assert sum(map(len, parts)) == len(read), "an update twice"
        ranges = [(-(1 << 63), -1), (0, (1 << 63) - 1)]
        halves = [
            changes_in(made.shard.layout, made.shard.changes_range(Timestamp(lower), at(upper), *r))
            for r in ranges
        ]
        assert model(c for half in halves for c in half) == model(read)
        for one, other in pairwise(parts):
            assert max(c.time for c in one) < min(c.time for c in other)
    else:
        with pytest.raises(Unreadable, match="changes"):
            made.shard.changes(Timestamp(lower), at(upper))
        with pytest.raises(Unreadable, match="changes"):
            next(made.shard.changes_by_run(Timestamp(lower), at(upper)))


def test_rows_from_a_time_on_are_a_share_of_the_runs_that_reach_beyond_it(tmp_path):
    layout = Layout.of({"k": pa.int64()}, {})
    store = LocalStore(tmp_path)
    refs = []
    for lower, upper in ((0, 100), (100, 110)):
        with SegmentWriter(store, f"s{lower}") as writer:
            span = Description(at(lower), at(upper), at(0))
            changes = [Change((n,), (), lower, 1) for n in range(50)]
            build(writer, "r", layout, table_of(layout, changes), span)
            refs += writer.finish()
    shard = Shard.open(layout, refs, store, RunCache())
    assert [shard.rows_from(Timestamp(t)) for t in (0, 50, 100, 105, 110)] == [100, 75, 50, 25, 0]


def test_siblings_are_one_piece(tmp_path):
    layout = Layout.of({"k": pa.int64()}, {})
    store = LocalStore(tmp_path)
    refs = []
    for name, key, lower in (("a", 1, 0), ("b", 2, 0), ("c", 1, 5)):
        with SegmentWriter(store, name) as writer:
            span = Description(at(lower), at(lower + 5), at(0))
            changes = [Change((key,), (), lower + 1, 1)]
            build(writer, name, layout, table_of(layout, changes), span)
            refs += writer.finish()
    shard = Shard.open(layout, refs, store, RunCache())
    pieces = shard.changes_by_run(Timestamp(1), at(10))
    times = [[c.time for c in changes_in(layout, piece)] for piece in pieces]
    assert times == [[1, 1], [6]]


def test_siblings_that_share_a_row_are_merged(tmp_path):
    layout = Layout.of({"k": pa.int64()}, {})
    store = LocalStore(tmp_path)
    refs = []
    for name, keys, diff in (("a", (1, 2), 1), ("b", (2, 3), 1), ("c", (1,), -1)):
        with SegmentWriter(store, name) as writer:
            span = Description(at(0), at(5), at(0))
            changes = [Change((key,), (), 1, diff) for key in keys]
            build(writer, name, layout, table_of(layout, changes), span)
            refs += writer.finish()
    shard = Shard.open(layout, refs, store, RunCache())
    (piece,) = shard.changes_by_run(Timestamp(1), at(5))
    assert sorted(changes_in(layout, piece)) == [((2,), (), 1, 2), ((3,), (), 1, 1)]


def test_a_closed_shard_is_read_to_its_end(tmp_path):
    layout = Layout.of({"k": pa.int64()}, {})
    store = LocalStore(tmp_path)
    changes = [Change((1,), (), 5, 1)]
    with SegmentWriter(store, "t") as writer:
        span = Description(at(0), Antichain.closed(), at(0))
        build(writer, "op/0", layout, table_of(layout, changes), span)
        refs = writer.finish()
    shard = Shard.open(layout, refs, store, RunCache())
    assert shard.rows == 1
    assert changes_in(layout, shard.changes(Timestamp(1), Antichain.closed())) == changes
    assert len(list(shard.snapshot(Timestamp(10**12)))) == 1


def test_runs_that_do_not_meet_are_refused(tmp_path):
    layout = Layout.of({"k": pa.int64()}, {})
    refs = [RunRef("op/0", Description(at(t), at(t + 1), at(0)), 0, 0, 0) for t in (0, 2)]
    with pytest.raises(InvalidValue, match="batches do not meet"):
        Shard.open(layout, refs, LocalStore(tmp_path), RunCache())


def test_siblings_hold_parts_of_one_interval(tmp_path):
    """A large tick writes several runs with disjoint hashes and the same interval."""
    store, layout = LocalStore(tmp_path), Layout.of({"k": pa.int64()}, {})
    refs = []
    for part, (lower, upper) in enumerate([(0, 3), (0, 3), (3, 5), (3, 5)]):
        rows = {"kh": [part], "k": [part], "time": [lower], "diff": [1]}
        description = Description(at(lower), at(upper), at(part % 2))
        with SegmentWriter(store, f"t{part}") as writer:
            build(writer, "op/0", layout, pa.table(rows), description)
            refs += writer.finish()
    shard = Shard.open(layout, refs, store, RunCache())
    assert shard.description == Description(at(0), at(5), at(1))
    for time, count in ((2, 2), (3, 4)):
        assert sum(b.num_rows for b in shard.snapshot(Timestamp(time))) == count
    with pytest.raises(InvalidValue, match="do not meet"):
        Shard.open(layout, [refs[0], refs[2], refs[1]], store, RunCache())


def test_an_upper_that_the_owner_knows_is_read_up_to(tmp_path):
    store, layout = LocalStore(tmp_path), Layout.of({"k": pa.int64()}, {})
    rows = {"kh": [1], "k": [1], "time": [2], "diff": [1]}
    with SegmentWriter(store, "t", inline_limit=9_999) as writer:
        build(writer, "op/0", layout, pa.table(rows), Description(at(0), at(3), at(0)))
        refs = writer.finish()
    shard = Shard.open(layout, refs, store, RunCache(), at(9))
    assert shard.description == Description(at(0), at(9), at(0))
    assert [b.num_rows for b in shard.snapshot(Timestamp(8))] == [1]
    assert list(shard.changes(Timestamp(3), at(9))) == []
    with pytest.raises(Unreadable):
        shard.snapshot(Timestamp(9))
    with pytest.raises(InvalidValue):
        Shard.open(layout, refs, store, RunCache(), at(2))
