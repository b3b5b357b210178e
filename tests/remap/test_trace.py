"""The remap as a value: monotone, definite in [since, upper), bounded under compaction."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.change.update import Update
from reclock.errors import BindingsNotMonotone, Corrupt, InvalidCompaction, Unreadable
from reclock.remap.codec import KAFKA
from reclock.remap.trace import UNBOUND, Binding, Remap
from reclock.time.antichain import Antichain
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Sequence, Timestamp
from strategies.remaps import remaps, times_around


def at(offsets: dict[int, int]) -> Antichain[KafkaPosition]:
    return KafkaPosition.frontier(offsets)


def bind(*steps: tuple[int, dict[int, int]]) -> Remap[KafkaPosition]:
    remap = Remap.unbound(KAFKA.origin)
    for time, offsets in steps:
        remap = remap.bound(Timestamp(time), at(offsets))
    return remap


@given(remaps())
def test_monotone(remap: Remap[KafkaPosition]) -> None:
    frontiers = [remap.at(Timestamp(t)) for t in times_around(remap)]
    for earlier, later in pairwise(frontiers):
        assert earlier.precedes(later)


@given(remaps())
def test_the_stored_collection_accumulates_to_the_map_at_every_time(
    remap: Remap[KafkaPosition],
) -> None:
    updates: list[Update[KafkaPosition, Timestamp]] = []
    built = Remap.unbound(KAFKA.origin)
    for binding in remap.bindings:
        updates += built.changes(binding.time, binding.frontier)
        built = built.bound(binding.time, binding.frontier)
    for t in times_around(remap):
        counts: dict[KafkaPosition, int] = {}
        for element, time, diff in updates:
            if time <= t:
                counts[element] = counts.get(element, 0) + diff
        present = {e: n for e, n in counts.items() if n}
        assert set(present.values()) <= {1}
        assert frozenset(present) == remap.at(Timestamp(t)).elements
    if remap.upper != UNBOUND:
        assert Remap.stored(updates, remap.since, remap.upper, KAFKA.origin) == remap


@given(remaps(), st.data())
def test_compaction_keeps_every_readable_time(
    remap: Remap[KafkaPosition], data: st.DataObject
) -> None:
    times = times_around(remap)
    if not times:
        return
    since = Timestamp(data.draw(st.sampled_from(times)))
    compacted = remap.compacted(since)
    assert compacted.since == since
    assert len(compacted.bindings) <= len(remap.bindings)
    for t in times:
        if t >= since:
            assert compacted.at(Timestamp(t)) == remap.at(Timestamp(t))
    twice = Timestamp(data.draw(st.sampled_from(range(since, times.stop))))
    assert compacted.compacted(twice) == remap.compacted(twice)


@given(remaps(sealed=True))
def test_a_sealed_remap_compacts_to_the_closed_frontier_and_stays_so_when_stored(
    remap: Remap[KafkaPosition],
) -> None:
    last = remap.bindings[-1].time.step(2)
    compacted = remap.compacted(last)
    assert [b.frontier for b in compacted.bindings] == [Antichain()]
    assert Remap.stored([], last, Antichain(), KAFKA.origin) == compacted
    assert compacted.at(Timestamp(10**12)) == Antichain()


def test_idle_time_advances_upper_and_adds_no_binding() -> None:
    remap = bind((1000, {0: 5}))
    idle = remap.bound(Timestamp(9000), at({0: 5}))
    assert idle.bindings == remap.bindings
    assert idle.upper == Antichain.of(Timestamp(9001))


def test_reads_outside_the_interval_are_refused_and_say_the_interval() -> None:
    remap = bind((1000, {0: 5}), (2000, {0: 6})).compacted(Timestamp(1500))
    for t in (1499, 2001):
        with pytest.raises(Unreadable) as caught:
            remap.at(Timestamp(t))
        assert caught.value.detail == "they are definite in [1500, {2001})"


@pytest.mark.parametrize(
    ("time", "offsets"),
    [(2000, {0: 4}), (2000, {1: 9}), (1000, {0: 9})],
    ids=["offset goes back", "partition disappears", "time stands still"],
)
def test_bindings_that_go_back_are_refused(time: int, offsets: dict[int, int]) -> None:
    remap = bind((1000, {0: 5}))
    with pytest.raises(BindingsNotMonotone) as caught:
        remap.bound(Timestamp(time), at(offsets))
    assert "1000 → {[0] 5" in str(caught.value.detail)


@pytest.mark.parametrize("since", [999, 2001])
def test_compaction_stays_inside_the_interval(since: int) -> None:
    remap = bind((1000, {0: 5}), (2000, {0: 6})).compacted(Timestamp(1000))
    with pytest.raises(InvalidCompaction):
        remap.compacted(Timestamp(since))


def test_records_that_are_no_frontier_are_corrupt() -> None:
    one, two = Sequence(1), Sequence(2)
    twice = [Update(one, Timestamp(0), 1), Update(two, Timestamp(0), 1)]
    with pytest.raises(Corrupt, match="do not accumulate to a frontier"):
        Remap.stored(twice, Timestamp(0), Antichain.of(Timestamp(1)), Antichain.of(Sequence(0)))
    double = [Update(one, Timestamp(0), 2)]
    with pytest.raises(Corrupt, match="do not accumulate to a frontier"):
        Remap.stored(double, Timestamp(0), Antichain.of(Timestamp(1)), Antichain.of(Sequence(0)))


def test_a_map_must_cover_its_interval() -> None:
    origin = Antichain.of(Sequence(0))
    late = (Binding(Timestamp(5), Antichain.of(Sequence(1))),)
    with pytest.raises(Corrupt, match="outside of the interval"):
        Remap(origin, Timestamp(0), Antichain.of(Timestamp(9)), late)
    closed = (Binding(Timestamp(0), Antichain[Sequence]()),)
    with pytest.raises(Corrupt, match="must have a sealed remap"):
        Remap(origin, Timestamp(0), Antichain.of(Timestamp(9)), closed)
    with pytest.raises(Corrupt, match="must have a binding"):
        Remap(origin, Timestamp(0), Antichain.of(Timestamp(9)), ())
