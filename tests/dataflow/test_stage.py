"""Reading in Spark tasks: the same records as here, in runs that are sorted by hash."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.arrangement.cache import RunCache
from reclock.arrangement.store import LocalStore
from reclock.dataflow import stage as module
from reclock.dataflow.changes import Changes, Stamped
from reclock.dataflow.keying import Keying
from reclock.dataflow.stage import Stager, cut, stage
from reclock.errors import PositionsLost
from reclock.remap.batch import Range
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


@given(
    st.dictionaries(
        st.integers(0, 3), st.tuples(st.integers(0, 200_000), st.integers(1, 200_000)), max_size=4
    )
)
def test_slices_cover_ranges_in_order(spans):
    ranges = [Range(part, start, start + size, T) for part, (start, size) in spans.items()]
    at = {r.part: r.start for r in ranges}
    for part, start, stop, _ in cut(ranges):
        assert at[part] == start
        assert 0 < stop - start <= module.SLICE
        at[part] = stop
    assert at == {r.part: r.stop for r in ranges}


KEYING = Keying((pa.decimal128(12, 2),), (0,))


def stager(read, path) -> Stager:
    return Stager(read, KEYING, LocalStore(path), "staged-u1", (2,))


@pytest.mark.spark
def test_tasks_stage_what_is_read_here(spark, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "SLICE", 40)
    ranges = [Range(0, 5, 300, T), Range(2, 0, 90, T), Range(7, 10, 11, T)]
    found = stage(spark, stager(Records(), tmp_path), ranges, "reading")
    expected = [row["x"] for batch in Records()(ranges) for row in batch.to_pylist()]
    assert found.rows == found.errors == len(expected)
    store = LocalStore(tmp_path)
    assert {run.segment for run in found.runs} == set(store.names())
    time = Timestamp(7)
    delta = Changes((), tuple(Stamped(run, time) for run in found.runs), store).delta(KEYING)
    assert Counter(delta.column(0).to_pylist()) == Counter(expected)
    assert set(delta.column(1).to_pylist()) == {7}
    for run in found.runs:
        hashes = [h for b in RunCache().open(store, run, KEYING.layout) for h in b[0].to_pylist()]
        assert hashes == sorted(hashes)
    again = stage(spark, stager(Records(), tmp_path), ranges, "reading")
    assert again == found


@pytest.mark.spark
def test_an_error_of_a_task_is_that_error_here(spark, tmp_path):
    with pytest.raises(PositionsLost, match="gone") as lost:
        stage(spark, stager(Lost(), tmp_path), [Range(0, 0, 1, T)], "reading")
    assert lost.value.detail == "offsets 1 to 2"
    assert lost.value.hint == "begin anew"
