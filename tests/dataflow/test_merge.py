"""Merges in tasks give what merges in the driver give: every update, at every time (P3).

On a loop that runs every task twice, for random runs, sinces, floors and numbers of parts; on a
real Spark for some.
"""

from __future__ import annotations

import threading
import time as clock
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.loop_cluster import LoopTasks
from graphs.build import build
from reclock.arrangement import merge as rules
from reclock.arrangement.cache import RunCache
from reclock.arrangement.family import Family
from reclock.arrangement.layout import Layout, kh_of
from reclock.arrangement.segment import SegmentWriter, stem_of
from reclock.arrangement.shard import Shard
from reclock.arrangement.store import LocalStore
from reclock.dataflow.graph import ArrangementId
from reclock.dataflow.merge import (
    Merge,
    Span,
    _Task,
    cut,
    merge_here,
    merge_in_tasks,
    parts_of,
    ranges_of,
    shared,
)
from reclock.engine.interrupt import Interrupt
from reclock.errors import Interrupted, SegmentMissing
from reclock.spark.pool import Pool
from reclock.spark.tasks import SparkTasks
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import INT64_MAX, Timestamp
from strategies.arrangements import (
    changes_in,
    changes_of,
    hashes,
    layouts,
    table_of,
)

LAYOUT = Layout.of({"k": pa.int64()}, {"v": pa.int64()})
NAME = ArrangementId("u1")


def at(time):
    return Antichain.of(Timestamp(time))


def open_all(store, refs, layout=LAYOUT):
    cache = RunCache()
    return [cache.open(store, ref, layout) for ref in refs]


def written(store, layout, changes, lower, upper, *, how, batch_rows=3):
    with SegmentWriter(store, f"t{lower}", inline_limit=600) as writer:
        span = Description(at(lower), at(upper), at(0))
        table = table_of(layout, changes, how)
        build(writer, NAME, layout, table, span)
        (ref,) = writer.finish()
    with SegmentWriter(store, f"b{lower}", inline_limit=600) as writer:
        (run,) = open_all(store, [ref], layout)
        writer.add(NAME, layout, run, span, batch_rows=batch_rows)
        return writer.finish()[0]


@given(st.data())
def test_tasks_merge_as_the_driver_does(tmp_path_factory, data):
    store = LocalStore(tmp_path_factory.mktemp("store"))
    merges = []
    for nth in range(data.draw(st.integers(1, 2))):
        layout = data.draw(layouts())
        how = data.draw(hashes)
        bounds = [0, *sorted(data.draw(st.sets(st.integers(1, 9), max_size=3))), 10]
        refs = [
            written(store, layout, data.draw(changes_of(layout, low, high)), low, high, how=how)
            for low, high in pairwise(bounds)
        ]
        there = [int(kh) for run in open_all(store, refs, layout) for b in run for kh in kh_of(b)]
        floor = data.draw(st.sampled_from([None, *there]))
        since = at(data.draw(st.integers(0, 12)))
        merges.append(Merge(ArrangementId(f"u{nth}"), layout, tuple(refs), since, floor))
    tasks = LoopTasks(data.draw(st.integers(1, 3)))
    expected = merge_here(merges, store, "here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "PART_ROWS", data.draw(st.sampled_from([1, 4, 25])))
        made = merge_in_tasks(tasks, merges, store, "tasks")
        most = [parts_of(one.rows, tasks.parallelism) for one in merges]
    assert all(len(parts) <= count for parts, count in zip(made, most, strict=True))
    for one, whole, parts in zip(merges, expected, made, strict=True):
        assert {part.description for part in parts} == {whole[0].description}
        assert len({(part.name, part.checksum) for part in parts}) == len(parts)
        shard = Shard(one.layout, tuple(open_all(store, parts, one.layout)))
        alone = Shard(one.layout, tuple(open_all(store, whole, one.layout)))
        assert len(shard.sources) == 1, "one table to search"
        assert isinstance(shard.sources[0], Family) == (len(parts) > 1)
        stored, same = (
            [c for source in s.sources for c in changes_in(one.layout, source)]
            for s in (shard, alone)
        )
        assert repr(stored) == repr(same)
        for time in range(int(one.since.element()), 10):
            assert repr(read(shard, time)) == repr(read(alone, time))
    left = {name for name in store.names() if stem_of(name) == "tasks"}
    assert left == {ref.segment for refs in made for ref in refs} - {None}


def read(shard, time):
    return [c for b in shard.snapshot(Timestamp(time)) for c in changes_in(shard.layout, [b])]


def run_of(store, stem, kh, time=0, batch_rows=1_000):
    """Return a run with these hashes."""
    kh = np.sort(np.array(kh, np.int64))
    columns = [kh, kh, kh, np.full(len(kh), time), np.ones(len(kh), np.int64)]
    batch = pa.RecordBatch.from_arrays(list(map(pa.array, columns)), schema=LAYOUT.schema)
    with SegmentWriter(store, stem) as writer:
        span = Description(at(time), at(time + 1), at(0))
        writer.add(NAME, LAYOUT, [batch], span, batch_rows=batch_rows)
        return writer.finish()[0]


def random_hashes(seed, size):
    return np.random.default_rng(seed).integers(-(2**63), 2**63, size, np.int64)


@pytest.mark.parametrize(
    "spread",
    [
        random_hashes,
        lambda seed, size: 1_700_000_000_000 + random_hashes(seed, size) % 86_400_000,
        lambda seed, size: np.sort(random_hashes(seed, size))[: size // 2],
    ],
    ids=["hashes", "times", "half of all hashes"],
)
def test_ranges_have_about_as_many_rows_each(tmp_path, spread):
    store = LocalStore(tmp_path)
    refs = [run_of(store, f"t{n}", spread(n, size), n) for n, size in enumerate((9_000, 500, 70))]
    runs = open_all(store, refs)
    stored = np.concatenate([kh_of(batch) for run in runs for batch in run])
    ranges = list(ranges_of(runs, 7, rules.INT64_MIN))
    assert len(ranges) == 7
    assert ranges[0][0] == rules.INT64_MIN
    assert ranges[-1][1] == INT64_MAX
    assert all(one[1] + 1 == other[0] for one, other in pairwise(ranges))
    counts = [int(((stored >= first) & (stored <= last)).sum()) for first, last in ranges]
    assert sum(counts) == len(stored)
    assert max(counts) < 1.3 * len(stored) / 7


def test_one_hash_is_one_range(tmp_path):
    runs = open_all(LocalStore(tmp_path), [run_of(LocalStore(tmp_path), "t", [5] * 90)])
    ranges = list(ranges_of(runs, 4, rules.INT64_MIN))
    assert ranges == [(rules.INT64_MIN, 4), (5, INT64_MAX)]
    assert list(ranges_of(runs, 4, 5)) == [(5, INT64_MAX)]
    assert list(ranges_of(runs, 4, 6)) == [(6, INT64_MAX)]


def test_a_piece_touches_the_batches_of_its_range_only(tmp_path, monkeypatch):
    monkeypatch.setattr(rules, "PART_ROWS", 1_000)
    store = LocalStore(tmp_path)
    refs = (
        run_of(store, "t0", random_hashes(0, 6_000), 0, batch_rows=500),
        run_of(store, "t1", [7, 8, 9], 1),
    )
    spans = cut(0, Merge(NAME, LAYOUT, refs, at(1)), store, LoopTasks(2))
    assert len(spans) == 6
    assert [len(span.refs) for span in spans].count(2) == 1, "the small run is one task's"
    for span in spans:
        runs = open_all(store, span.refs)
        with SegmentWriter(store, "m") as writer:
            rules.merge_range(
                writer, "m", LAYOUT, runs, span.description, first=span.first, last=span.last
            )
        assert sum(batch is not None for batch in runs[0]._batches) <= 4


def test_small_pieces_share_a_task():
    def span(rows):
        return Span(0, "u1", LAYOUT, (), Description(at(0), at(1), at(0)), 0, 1, rows)

    sizes = [10, 20, rules.PART_ROWS, 5, 240_000, 9_990, 20]
    loads = shared([span(rows) for rows in sizes])
    assert [[p.rows for p in load] for load in loads] == [
        [10, 20], [1_000_000], [5, 240_000, 9_990], [20]
    ]  # fmt: skip


def test_what_cancels_leaves_one_run_without_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(rules, "PART_ROWS", 10)
    store = LocalStore(tmp_path)
    ref = run_of(store, "t", range(50))
    one = Merge(NAME, LAYOUT, (ref,), at(1), floor=1_000)
    for made in (merge_in_tasks(LoopTasks(), [one], store, "m"), merge_here([one], store, "m")):
        ((empty,),) = made
        assert (empty.rows, empty.segment) == (0, None)
        assert empty.description == Description(at(0), at(1), at(1))


def test_a_merge_here_ends_between_two_blocks_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("reclock.arrangement.stream.BLOCK_ROWS", 100)
    store = LocalStore(tmp_path)
    one, seen = large(store), []
    before = store.names()

    class Soon:
        def check(self):
            seen.append(1)
            if len(seen) == 3:
                message = "enough"
                raise Interrupted(message)

    with pytest.raises(Interrupted, match="enough"):
        merge_here([one], store, "m", Soon())
    assert store.names() == before


def large(store, rows=6_000, runs=3):
    refs = [run_of(store, f"t{n}", random_hashes(n, rows), n) for n in range(runs)]
    return Merge(NAME, LAYOUT, tuple(refs), at(runs - 1))


@pytest.mark.spark
def test_spark_writes_the_files_that_a_loop_writes(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(rules, "PART_ROWS", 3_000)
    store = LocalStore(tmp_path)
    one = large(store)
    before = set(store.names())
    made = merge_in_tasks(SparkTasks(spark, "merge · u1", Pool.MERGES), [one], store, "m")
    files = set(store.names()) - before
    assert len(made[0]) == 6
    assert made == merge_in_tasks(LoopTasks(), [one], store, "m")
    assert set(store.names()) - before == files, "and no others"
    job = spark.jobs.sparkContext._jsc.sc().statusStore().jobsList(None).apply(0)
    assert job.description().get() == "merge · u1"


@pytest.mark.spark
def test_an_error_of_a_task_is_that_error_here(spark, tmp_path):
    store = LocalStore(tmp_path)
    one = large(store)
    open_all(store, one.refs)
    spans = cut(0, one, store, LoopTasks())
    for name in store.names():
        store.remove(name)
    with pytest.raises(SegmentMissing):
        SparkTasks(spark, "merge", Pool.MERGES).run(_Task(store, "m"), [tuple(spans)])
    assert store.names() == []


class Slow:
    """A task that would take minutes."""

    def __init__(self, marks):
        self.marks = marks

    def __call__(self, item):
        (self.marks / str(item)).touch()
        clock.sleep(300)
        return str(item)


@pytest.mark.spark
def test_a_job_ends_when_it_is_asked_to(spark, tmp_path):
    interrupt, raised = Interrupt(), []

    def run():
        try:
            SparkTasks(spark, "merge", Pool.MERGES, interrupt).run(Slow(tmp_path), [1, 2])
        except Interrupted as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    end = clock.monotonic() + 60
    while not list(tmp_path.iterdir()):
        assert clock.monotonic() < end, "no task has begun"
        clock.sleep(0.05)
    interrupt.set(Interrupted("enough"))
    thread.join(30)
    assert [str(error) for error in raised] == ["enough"]
