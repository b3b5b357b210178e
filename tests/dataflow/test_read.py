"""Reading in Spark tasks: the same records as here, in order within each part."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.dataflow import read as module
from reclock.dataflow.read import read_in_tasks, slices_of
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
    for part, start, stop, _ in slices_of(ranges):
        assert at[part] == start
        assert 0 < stop - start <= module.SLICE
        at[part] = stop
    assert at == {r.part: r.stop for r in ranges}


@pytest.mark.spark
def test_tasks_read_what_is_read_here(spark, monkeypatch):
    monkeypatch.setattr(module, "SLICE", 40)
    ranges = [Range(0, 5, 300, T), Range(2, 0, 90, T), Range(7, 10, 11, T)]
    seen = defaultdict(list)
    for batch in read_in_tasks(spark, Records(), ranges, SCHEMA):
        assert batch.schema == SCHEMA
        for part, offset in zip(*(batch.column(i).to_pylist() for i in (0, 1)), strict=True):
            seen[part].append(offset)
    assert seen == {0: list(range(6, 300, 3)), 2: list(range(0, 90, 3))}


@pytest.mark.spark
def test_an_error_of_a_source_comes_out_as_it_was(spark):
    with pytest.raises(PositionsLost) as caught:
        list(read_in_tasks(spark, Lost(), [Range(0, 0, 1, T)], SCHEMA))
    assert caught.value.hint == "begin anew"
