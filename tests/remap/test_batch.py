"""The vectorised form gives exactly what the definition gives, offset by offset."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import InvalidValue
from reclock.remap.batch import END, NOT_BOUND, Range, ranges, steps_of, times_of
from reclock.remap.codec import FILES, KAFKA
from reclock.remap.follow import time_of
from reclock.remap.trace import Remap
from reclock.testing.strategies.remaps import PARTITIONS, remaps
from reclock.time.position import FilePosition, KafkaPosition
from reclock.time.timestamp import Timestamp

K = KafkaPosition


@given(remaps(), PARTITIONS, st.lists(st.integers(0, 30), max_size=40), st.data())
def test_equal_to_follow(
    remap: Remap[K], partition: int, offsets: list[int], data: st.DataObject
) -> None:
    if remap.bindings and data.draw(st.booleans()):
        last = remap.bindings[-1].time
        remap = remap.compacted(Timestamp(data.draw(st.integers(remap.since, last))))
    times = times_of(steps_of(remap, partition), np.array(offsets, np.int64)).tolist()
    expected = [time_of(remap, K.exact(partition, o)) for o in offsets]
    assert times == [NOT_BOUND if t is None else t for t in expected]


@given(remaps(), PARTITIONS, st.integers(0, 20))
def test_ranges_are_the_bound_offsets_from_start_each_at_its_time(
    remap: Remap[K], partition: int, start: int
) -> None:
    found = ranges(remap, partition, start)
    covered = [(offset, r.time) for r in found for offset in range(r.start, min(r.stop, 60))]
    expected = [
        (o, t) for o in range(start, 60) if (t := time_of(remap, K.exact(partition, o))) is not None
    ]
    assert covered == expected
    assert len({r.time for r in found}) == len(found)


def test_a_complete_part_is_bound_to_its_end() -> None:
    remap = Remap.unbound(KAFKA.origin).bound(Timestamp(5), K.frontier({0: 2}))
    remap = remap.bound(Timestamp(9), type(remap.latest)())
    assert ranges(remap, 0, 1) == [Range(0, 1, 2, Timestamp(5)), Range(0, 2, END, Timestamp(9))]


def test_files_are_parts_too() -> None:
    at = FilePosition.frontier
    remap = Remap.unbound(FILES.origin).bound(Timestamp(1), at({"b.csv": 10}))
    remap = remap.bound(Timestamp(2), at({"a.csv": 7, "b.csv": 10}))
    assert times_of(steps_of(remap, "a.csv"), np.array([0, 6, 7])).tolist() == [2, 2, -1]
    assert times_of(steps_of(remap, "b.csv"), np.array([0, 9])).tolist() == [1, 1]
    assert steps_of(remap, "c.csv").times.size == 0


def test_negative_offsets_are_refused() -> None:
    remap = Remap.unbound(KAFKA.origin).bound(Timestamp(5), K.frontier({0: 2}))
    with pytest.raises(InvalidValue, match="must not be negative, got -3"):
        times_of(steps_of(remap, 0), np.array([1, -3]))
