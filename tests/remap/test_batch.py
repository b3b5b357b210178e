"""The vectorised form gives exactly what the definition gives, offset by offset."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import InvalidValue
from reclock.remap import batch
from reclock.remap.batch import END, NOT_BOUND, Range, ranges, steps_of, times_of
from reclock.remap.codec import FILES, KAFKA
from reclock.remap.follow import time_of
from reclock.remap.trace import Remap
from reclock.time.antichain import Antichain
from reclock.time.position import FilePosition, KafkaPosition, offsets_of
from reclock.time.timestamp import Timestamp
from strategies.remaps import PARTITIONS, remaps

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


@given(remaps(), st.sets(PARTITIONS), st.dictionaries(PARTITIONS, st.integers(0, 20)))
def test_ranges_are_the_bound_offsets_from_start_each_at_its_time(
    remap: Remap[K], partitions: set[int], start: dict[int, int]
) -> None:
    found = ranges(remap, partitions, K.frontier(start))
    covered = [(r.part, o, r.time) for r in found for o in range(r.start, min(r.stop, 60))]
    expected = [
        (p, o, t)
        for p in partitions
        for o in range(start.get(p, 0), 60)
        if (t := time_of(remap, K.exact(p, o))) is not None
    ]
    assert sorted(covered) == sorted(expected)
    assert len({(r.part, r.time) for r in found}) == len(found)
    assert all(r.start < r.stop for r in found)


def test_a_complete_reader_has_nothing_to_read() -> None:
    remap = Remap.unbound(KAFKA.origin).bound(Timestamp(5), Antichain())
    assert ranges(remap, [0, 1], Antichain()) == []


def test_a_tick_looks_at_new_bindings_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """P5: what a reader reads next costs what is new, however many bindings are kept."""
    remap = Remap.unbound(KAFKA.origin)
    for t in range(1, 300):
        remap = remap.bound(Timestamp(t), K.frontier({0: t}))
    looked_at: list[Antichain[K]] = []

    def recorded(frontier: Antichain[K]) -> dict[int | str, int]:
        looked_at.append(frontier)
        return offsets_of(frontier)

    monkeypatch.setattr(batch, "offsets_of", recorded)
    (new,) = ranges(remap, [0], K.frontier({0: 298}))
    assert new == Range(0, 298, 299, Timestamp(299))
    assert looked_at == [K.frontier({0: 298}), K.frontier({0: 299})]


def test_a_complete_part_is_bound_to_its_end() -> None:
    remap = Remap.unbound(KAFKA.origin).bound(Timestamp(5), K.frontier({0: 2}))
    remap = remap.bound(Timestamp(9), type(remap.latest)())
    assert ranges(remap, [0], K.frontier({0: 1})) == [
        Range(0, 1, 2, Timestamp(5)),
        Range(0, 2, END, Timestamp(9)),
    ]


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
