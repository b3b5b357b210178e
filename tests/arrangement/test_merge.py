from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.build import build
from reclock.arrangement.cache import RunCache
from reclock.arrangement.family import joined
from reclock.arrangement.layout import Layout, kh_of
from reclock.arrangement.merge import (
    INT64_MIN,
    PART_ROWS,
    UNITED_ROWS,
    compacted,
    merge,
    merge_range,
    plan_compaction,
    plan_merge,
    plan_union,
)
from reclock.arrangement.run import RunRef
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.store import LocalStore
from reclock.errors import InvalidCompaction
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import INT64_MAX, Timestamp
from strategies.arrangements import (
    Change,
    changes_in,
    changes_of,
    hashes,
    layouts,
    model,
    table_of,
)


def at(time):
    return Antichain.of(Timestamp(time))


def refs_of(sizes):
    return [
        RunRef("op/0", Description(at(n), at(n + 1), at(0)), rows, 0, 0)
        for n, rows in enumerate(sizes)
    ]


@given(st.lists(st.integers(0, 1_000), max_size=30))
def test_after_the_planned_merge_sizes_double(sizes):
    plan = plan_merge(refs_of(sizes))
    if plan is not None:
        assert len(sizes[plan]) >= 2
        sizes[plan] = [sum(sizes[plan])]
    counted = [max(1, rows) for index, rows in enumerate(sizes) if index or rows]
    for index in range(len(counted) - 1):
        assert counted[index] >= 2 * sum(counted[index + 1 :])
    assert plan_merge(refs_of(sizes)) is None
    assert len(sizes) <= math.log(max(1, sum(counted)), 3) + 2


def test_a_beginning_without_rows_does_not_ask_for_all_that_came_after_it():
    assert plan_merge(refs_of([0, 1_000_000])) is None
    assert plan_merge(refs_of([0, 1_000_000, 10, 10])) == slice(2, 4)
    assert plan_merge(refs_of([0, 10, 10])) == slice(0, 3)


@given(st.lists(st.lists(st.integers(0, 1_000), min_size=1, max_size=4), max_size=12))
def test_siblings_are_planned_as_one_run(families):
    """A large tick writes several runs of one interval: together or not at all."""
    siblings = [
        RunRef("op/0", Description(at(n), at(n + 1), at(0)), rows, 0, 0)
        for n, sizes in enumerate(families)
        for rows in sizes
    ]
    plan = plan_merge(siblings)
    counted = [sum(max(1, rows) for rows in sizes) for sizes in families]
    if families and not any(families[0]):
        counted[0] = 0
    whole = plan_merge(refs_of(counted))
    assert (plan is None) == (whole is None)
    if plan is not None and whole is not None:
        assert plan.start == sum(len(sizes) for sizes in families[: whole.start])
        assert plan.stop == len(siblings)


def test_runs_that_only_add_are_not_rewritten_for_their_times():
    refs = refs_of([1_000, 1_000, 1_000])
    assert plan_compaction(refs, at(5)) == slice(1, 3)
    adding = [replace(ref, adds=True) for ref in refs]
    assert plan_compaction(adding, at(5)) is None
    assert plan_compaction([*adding[:2], refs[2]], at(5)) == slice(1, 3)


def run(time, rows, first=0, last=9):
    """Return as much of a run as planning looks at."""
    ref = RunRef("op/0", Description(at(time), at(time + 1), at(0)), rows, 0, 0)
    return SimpleNamespace(ref=ref, rows=rows, first=np.array([first]), last=np.array([last]))


def test_siblings_that_overlap_are_united():
    many = 2 * PART_ROWS
    assert plan_union([]) is None
    assert plan_union([run(0, many), run(1, many)]) is None
    overlapping = [run(0, many), run(1, many, 0, 5), run(1, many, 5, 9), run(2, 1)]
    assert plan_union(overlapping) == slice(1, 3)
    assert plan_union([run(0, UNITED_ROWS), run(0, 1)]) is None


def test_siblings_with_ranges_of_their_own_are_united_if_they_are_small():
    parts = [run(0, PART_ROWS, 10 * n, 10 * n + 9) for n in range(30)]
    assert plan_union(parts) is None
    assert plan_union([run(0, 100, 0, 4), run(0, 100, 5, 9)]) == slice(0, 2)
    assert plan_union([run(0, 0), run(0, 0)]) == slice(0, 2)
    assert plan_union([run(0, 0), run(0, PART_ROWS)]) is None


@given(st.integers(2, 300), st.integers(0, 30 * PART_ROWS), st.floats(0, 1))
def test_uniting_comes_to_an_end(parts, rows, share):
    """Each time so many of the rows are left."""
    for _ in range(12):
        each = [rows // parts + (n < rows % parts) for n in range(parts)]
        if plan_union([run(0, some, n, n) for n, some in enumerate(each)]) is None:
            return
        assert parts > max(1, rows // PART_ROWS), "no fewer than there were"
        parts = max(1, rows // PART_ROWS)
        rows = int(rows * share)
    raise AssertionError


@given(st.integers(1, 50), st.integers(50, 400))
def test_a_row_is_rewritten_a_logarithmic_number_of_times(rows, ticks):
    sizes: list[int] = []
    written = 0
    for _ in range(ticks):
        sizes.append(rows)
        plan = plan_merge(refs_of(sizes))
        if plan is not None:
            written += sum(sizes[plan])
            sizes[plan] = [sum(sizes[plan])]
    assert written <= rows * ticks * math.log(ticks, 1.5)


def write(store, layout, changes, lower, upper, *, how):
    with SegmentWriter(store, f"t{lower}") as writer:
        span = Description(at(lower), at(upper), at(0))
        build(writer, "op/0", layout, table_of(layout, changes, how), span)
        return writer.finish()[0]


@given(st.data(), st.integers(0, 12))
def test_compaction_keeps_every_accumulation_from_since_on(tmp_path_factory, data, since):
    store = LocalStore(tmp_path_factory.mktemp("store"))
    layout = data.draw(layouts())
    how = data.draw(hashes)
    older = data.draw(changes_of(layout, 0, 5))
    newer = data.draw(changes_of(layout, 5, 10))
    refs = [write(store, layout, older, 0, 5, how=how), write(store, layout, newer, 5, 10, how=how)]
    cache = RunCache()
    with SegmentWriter(store, "m") as writer:
        merge(writer, "op/0", layout, [cache.open(store, r, layout) for r in refs], at(since))
        (made,) = writer.finish()
    read = changes_in(layout, cache.open(store, made, layout))
    assert made.description == Description(at(0), at(10), at(since))
    assert model(read) == model(older + newer, lambda t: max(t, since))
    assert len(read) == made.rows == len(model(read))
    for time in range(since, 13):
        before = model(older + newer, lambda t, now=time: now if t <= now else None)
        assert model(read, lambda t, now=time: now if t <= now else None) == before


@given(st.data(), st.integers(0, 12))
def test_ranges_of_a_merge_are_together_the_merge(tmp_path_factory, data, since):
    store = LocalStore(tmp_path_factory.mktemp("store"))
    layout = data.draw(layouts())
    how = data.draw(hashes)
    changes = [data.draw(changes_of(layout, 3 * n, 3 * n + 3)) for n in range(4)]
    refs = [write(store, layout, some, 3 * n, 3 * n + 3, how=how) for n, some in enumerate(changes)]
    cache = RunCache()
    runs = [cache.open(store, ref, layout) for ref in refs]
    there = sorted({int(kh) for run in runs for batch in run for kh in kh_of(batch)})
    cuts = data.draw(st.sets(st.sampled_from(there), max_size=3)) if there else set()
    bounds = [INT64_MIN, *sorted(cuts - {INT64_MIN}), INT64_MAX + 1]
    description = compacted(refs, at(since))
    with SegmentWriter(store, "m") as writer:
        merge(writer, "op/0", layout, runs, at(since))
        for first, end in pairwise(bounds):
            merge_range(
                writer, f"op/0.{first}", layout, runs, description, first=first, last=end - 1
            )
        whole, *parts = writer.finish()
    assert {part.description for part in parts} == {whole.description}
    expected = changes_in(layout, cache.open(store, whole, layout))
    family = joined([cache.open(store, part, layout) for part in parts])
    assert len(family) == 1 or not expected
    found = [change for some in family for change in changes_in(layout, some)]
    assert repr(found) == repr(expected), "the same, NaN too"


def test_merging_again_writes_the_same_file(tmp_path):
    store = LocalStore(tmp_path)
    layout = Layout.of({"k": pa.int64()}, {})
    refs = [
        write(store, layout, [Change((k,), (), t, 1) for k in range(9)], t, t + 1, how="good")
        for t in (0, 1)
    ]
    made = set()
    for _ in range(2):
        cache = RunCache()
        with SegmentWriter(store, "m") as writer:
            merge(writer, "op/0", layout, [cache.open(store, r, layout) for r in refs], at(1))
            made.add(writer.finish())
    assert len(made) == 1
    assert len(store.names()) == 3


@pytest.mark.parametrize("since", [Antichain.closed(), at(3)])
def test_since_neither_moves_back_nor_closes(tmp_path, since):
    store = LocalStore(tmp_path)
    layout = Layout.of({"k": pa.int64()}, {})
    run = RunCache().open(store, RunRef("op/0", Description(at(0), at(9), at(4)), 0, 0, 0), layout)
    with (
        SegmentWriter(store, "m") as writer,
        pytest.raises(InvalidCompaction, match="cannot compact to since"),
    ):
        merge(writer, "op/0", layout, [run], since)


def test_a_large_merge_streams(tmp_path, monkeypatch):
    monkeypatch.setattr("reclock.arrangement.stream.BLOCK_ROWS", 1_000)
    monkeypatch.setattr("reclock.arrangement.segment.BATCH_ROWS", 2_000)
    layout = Layout.of({"k": pa.int64()}, {"v": pa.int64()})
    store = LocalStore(tmp_path)
    cache = RunCache()
    size = 30_000
    runs = []
    for time in range(3):
        keys = np.random.default_rng(time).integers(0, 2**62, size)
        columns = [keys, keys, keys, np.full(size, time), np.ones(size, np.int64)]
        with SegmentWriter(store, f"t{time}") as writer:
            span = Description(at(time), at(time + 1), at(0))
            build(writer, "op/0", layout, pa.table(columns, names=list("abcde")), span)
            runs += [cache.open(store, r, layout) for r in writer.finish()]
    assert all(run.batch_count == 15 for run in runs)
    before = pa.total_allocated_bytes()
    peak = 0
    with SegmentWriter(store, "m") as writer:
        really = writer._write

        def counting(pieces):
            nonlocal peak
            peak = max(peak, pa.total_allocated_bytes() - before)
            really(pieces)

        monkeypatch.setattr(writer, "_write", counting)
        merge(writer, "op/0", layout, runs, at(3))
        (made,) = writer.finish()
    assert made.rows == 3 * size
    assert peak < made.length / 4, "not the whole run in memory"
