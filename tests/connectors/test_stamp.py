"""Stamping equals follow, record by record."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.stamp import stamp
from reclock.remap.batch import NOT_BOUND, Range, ranges
from reclock.remap.follow import time_of
from reclock.remap.trace import Remap
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Timestamp

growth = st.lists(
    st.tuples(st.integers(1, 5), st.lists(st.integers(0, 4), min_size=3, max_size=3)), max_size=6
)


@given(growth, st.integers(0, 6))
def test_a_stamp_is_the_time_that_follow_gives(
    steps: list[tuple[int, list[int]]], begun: int
) -> None:
    remap = Remap.unbound(KafkaPosition.frontier({}))
    offsets = {0: 0, 1: 0, 2: 0}
    time, start = 0, KafkaPosition.frontier({})
    for n, (later, more) in enumerate(steps):
        time += later
        offsets = {part: offset + more[part] for part, offset in offsets.items()}
        remap = remap.bound(Timestamp(time), KafkaPosition.frontier(offsets))
        if n < begun:
            start = KafkaPosition.frontier(offsets)
    bound = ranges(remap, [0, 1, 2], start)
    records = [(r.part, o) for r in bound for o in range(r.start, r.stop)]
    parts = np.array([part for part, _ in records], np.int32)
    found = stamp(bound, parts, np.array([offset for _, offset in records], np.int64))
    assert found.tolist() == [time_of(remap, KafkaPosition.exact(p, o)) for p, o in records]


def test_parts_may_have_names() -> None:
    bound = [Range("a", 0, 5, Timestamp(1)), Range("b", 0, 5, Timestamp(2))]
    parts = np.array(["b", "a", "c"], object)
    assert stamp(bound, parts, np.zeros(3, np.int64)).tolist() == [2, 1, NOT_BOUND]
