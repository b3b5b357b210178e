"""Reading in Spark tasks: the same records as here, in runs that are sorted by hash."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from reclock.arrangement.cache import RunCache
from reclock.arrangement.run import Run
from reclock.arrangement.store import LocalStore
from reclock.dataflow.changes import Changes, Stamped
from reclock.dataflow.job.parts import Parts
from reclock.dataflow.keying import Keying
from reclock.dataflow.stage import Stager
from reclock.errors import PositionsLost
from reclock.remap.batch import Range
from reclock.spark.staging import Readings, stage
from reclock.time.timestamp import Timestamp

SCHEMA = pa.schema([("c0", pa.int32()), ("c1", pa.int64()), ("c2", pa.decimal128(12, 2))])
T = Timestamp(0)


class Records:
    """Every third offset has a record."""

    def __call__(self, ranges):
        for part, start, stop, _ in ranges:
            found = [o for o in range(start, stop) if o % 3 == 0]
            columns = [pa.array([part] * len(found), pa.int32()), pa.array(found, pa.int64())]
            value = columns[1].cast(pa.decimal128(21, 2)).cast(SCHEMA[2].type)
            yield pa.record_batch([*columns, value], names=["part", "offset", "x"])


class Lost:
    def __call__(self, ranges):
        message = "gone"
        raise PositionsLost(message, detail="offsets 1 to 2", hint="begin anew")
        yield ranges


KEYING = Keying((pa.decimal128(12, 2),), (0,))


def stager(read, path) -> Stager:
    return Stager(read, KEYING, LocalStore(path), "staged-u1", (2,))


def times_and_rows(found, store, keying=KEYING):
    runs = tuple(Stamped(run) for piece in found for run in piece.runs)
    delta = Changes((), runs, store).delta(keying)
    return Counter(zip(*(delta.column(i).to_pylist() for i in (0, -2)), strict=True))


@pytest.mark.spark
def test_tasks_stage_what_is_read_here(spark, tmp_path):
    ranges = [Range(0, 5, 300, T), Range(2, 0, 90, T), Range(7, 10, 11, T)]
    shares = [[Range(0, 5, 200, T)], [Range(0, 200, 300, T), *ranges[1:]]]
    found = stage(Readings(spark), stager(Records(), tmp_path), shares, "reading")
    expected = [row["x"] for batch in Records()(ranges) for row in batch.to_pylist()]
    assert sum(p.rows for p in found) == sum(p.errors for p in found) == len(expected)
    store = LocalStore(tmp_path)
    assert {name for piece in found for name in piece.segments} == set(store.names())
    time = Timestamp(7)
    runs = [run for piece in found for run in piece.runs]
    delta = Changes((), tuple(Stamped.at(run, time) for run in runs), store).delta(KEYING)
    assert Counter(delta.column(0).to_pylist()) == Counter(expected)
    assert set(delta.column(1).to_pylist()) == {7}
    for run in runs:
        hashes = [h for b in RunCache().open(store, run, KEYING.layout) for h in b[0].to_pylist()]
        assert hashes == sorted(hashes)
    spans = [covered.range for piece in found for covered in piece.covers]
    assert spans == [r for share in shares for r in share]
    again = stage(Readings(spark), stager(Records(), tmp_path), shares, "reading")
    assert again == found


def test_pieces_are_no_larger_than_a_tick_takes(tmp_path):
    made = replace(stager(Records(), tmp_path), most=4)
    found = list(made.staged([Range(0, 0, 30, T), Range(1, 0, 5, T)]))
    assert [piece.rows for piece in found] == [4, 4, 4]
    assert [[c.range[:3] for c in piece.covers] for piece in found] == [
        [(0, 0, 10)], [(0, 10, 22)], [(0, 22, 30), (1, 0, 5)],
    ]  # fmt: skip


def test_a_part_reads_its_range_and_little_more(tmp_path, monkeypatch):
    monkeypatch.setattr("reclock.arrangement.segment.DEALT_ROWS", 100)
    made = stager(Records(), tmp_path)
    (piece,) = made.staged([Range(0, 0, 12_000, T)])
    (ref,) = piece.runs
    read = []
    checked = Run._checked
    monkeypatch.setattr(
        Run,
        "_checked",
        lambda run, *what: read.append(len(checked(run, *what))) or checked(run, *what),
    )
    parts = Parts(8)
    rows = 0
    for part in range(parts.count):
        found = Stamped(ref).within(
            made.store, KEYING.layout, RunCache(), parts.bounds(part), records=True
        )
        rows += sum(map(len, found))
    assert rows == 4_000
    assert sum(read) < 1.5 * ref.length


def test_runs_have_the_times_of_their_ranges(tmp_path):
    ranges = [Range(0, 0, 4, Timestamp(5)), Range(0, 4, 8, Timestamp(9))]
    found = list(stager(Records(), tmp_path).staged(ranges))
    rows = times_and_rows(found, LocalStore(tmp_path))
    assert {(int(x), time): n for (x, time), n in rows.items()} == {(0, 5): 1, (3, 5): 1, (6, 9): 1}


class Constant(Records):
    """The same record at every third offset."""

    def __call__(self, ranges):
        for batch in super().__call__(ranges):
            yield batch.set_column(2, "x", pa.nulls(batch.num_rows, SCHEMA[2].type))


def test_equal_records_of_other_positions_are_another_file(tmp_path):
    made = stager(Constant(), tmp_path)
    first, second = (list(made.staged([Range(0, a, a + 9, T)])) for a in (0, 9))
    assert first[0].segments.isdisjoint(second[0].segments)


@pytest.mark.spark
def test_an_error_of_a_task_is_that_error_here(spark, tmp_path):
    with pytest.raises(PositionsLost, match="gone") as lost:
        stage(Readings(spark), stager(Lost(), tmp_path), [[Range(0, 0, 1, T)]], "reading")
    assert lost.value.detail == "offsets 1 to 2"
    assert lost.value.hint == "begin anew"
