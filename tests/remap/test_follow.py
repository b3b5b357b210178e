"""Reclocking, checked literally against its definition."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.follower import Follower, output_frontier
from reclock.change.update import Update
from reclock.errors import InvalidValue
from reclock.remap.codec import KAFKA
from reclock.remap.follow import time_of
from reclock.remap.trace import Remap
from reclock.time.antichain import Antichain
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Timestamp
from strategies.remaps import PARTITIONS, records, remaps, times_around

K = KafkaPosition


def visible(remap: Remap[K], t: int, positions: list[K]) -> Counter[K]:
    """Return reclocked(t) as the definition says: not (R(t) ≤ s)."""
    frontier = remap.at(Timestamp(t))
    return Counter(s for s in positions if not any(e.less_equal(s) for e in frontier))


@given(remaps(), records())
def test_definition(remap: Remap[K], positions: list[K]) -> None:
    for t in times_around(remap):
        landed = Counter(s for s in positions if (at := time_of(remap, s)) is not None and at <= t)
        assert landed == visible(remap, t, positions)


@given(remaps(), records())
def test_uniqueness(remap: Remap[K], positions: list[K]) -> None:
    """Each update appears at exactly one time, and stays."""
    for s in positions:
        presence = [bool(visible(remap, t, [s])) for t in times_around(remap)]
        assert presence == sorted(presence)
        changes = sum(a != b for a, b in zip([False, *presence], presence, strict=False))
        assert changes == (time_of(remap, s) is not None)


@given(remaps(), records(), st.data())
def test_compaction_commutes(remap: Remap[K], positions: list[K], data: st.DataObject) -> None:
    """compact(reclock(R, S)) = reclock(compact(R), S)."""
    times = times_around(remap)
    if not times:
        return
    since = Timestamp(data.draw(st.sampled_from(times)))
    compacted = remap.compacted(since)
    for s in positions:
        before, after = time_of(remap, s), time_of(compacted, s)
        assert after == (None if before is None else max(before, since))


@given(remaps(), st.dictionaries(PARTITIONS, st.integers(0, 20), max_size=5))
def test_frontier(remap: Remap[K], offsets: dict[int, int]) -> None:
    """Nothing still to come lands before the output frontier, and something may land on it.

    A source that does not know a bound partition yet may hold the frontier for it.
    """
    source = K.frontier(offsets)
    frontier = output_frontier(remap, source)
    still = [
        K.exact(p, o)
        for p in (*range(9), 40, 99)
        for o in range(25)
        if source.less_equal(K.exact(p, o))
    ]
    landings = [t for s in still if (t := time_of(remap, s)) is not None]
    assert all(frontier.less_equal(t) for t in landings)
    knows_all = len(offsets) == 5
    if knows_all and not frontier.is_closed and frontier != remap.upper:
        assert frontier.element() in landings


def test_unrelated_partitions_are_ignored() -> None:
    remap = Remap.unbound(KAFKA.origin)
    for t, offsets in (1000, {0: 50}), (2000, {0: 50, 1: 50}), (3000, {0: 100, 1: 50}):
        remap = remap.bound(Timestamp(t), K.frontier(offsets))
    assert time_of(remap, K.exact(0, 50)) == 3000
    assert time_of(remap, K.exact(1, 49)) == 2000
    assert time_of(remap, K.exact(2, 0)) is None


def test_the_output_frontier_walks_binding_by_binding() -> None:
    remap = Remap.unbound(KAFKA.origin)
    assert output_frontier(remap, KAFKA.origin) == Antichain.of(Timestamp(0))
    remap = remap.bound(Timestamp(1000), K.frontier({0: 50}))
    remap = remap.bound(Timestamp(2000), K.frontier({0: 50, 1: 50}))
    walk = [
        output_frontier(remap, K.frontier(offsets))
        for offsets in ({}, {0: 1}, {0: 49}, {0: 50}, {0: 50, 1: 49}, {0: 50, 1: 50})
    ]
    assert [f.element() for f in walk] == [1000, 1000, 1000, 2000, 2000, 2001]


@given(remaps(), st.lists(st.tuples(PARTITIONS, st.integers(0, 20)), max_size=20), st.randoms())
def test_follower_equals_the_definition_in_any_order_of_events(
    remap: Remap[K], rows: list[tuple[int, int]], random: object
) -> None:
    """Data, frontiers and remap versions may interleave freely."""
    updates = [Update((p, o), K.exact(p, o), 1) for p, o in rows]
    versions = [Remap.unbound(KAFKA.origin)]
    for binding in remap.bindings:
        versions.append(versions[-1].bound(binding.time, binding.frontier))
    random.shuffle(updates)  # type: ignore[attr-defined]
    events = [("data", u) for u in updates] + [("remap", v) for v in versions]
    follower: Follower[K, tuple[int, int]] = Follower(versions[0])
    got: list[Update[tuple[int, int], Timestamp]] = []
    reported = Antichain.of(Timestamp(0))
    pending = list(events)
    newest = 0
    while pending:
        choice = random.randrange(len(pending))  # type: ignore[attr-defined]
        kind, value = pending.pop(choice)
        if kind == "data":
            follower.receive([value])
        elif (index := versions.index(value)) > newest:
            newest = index
            follower.follow(value)
        drained, frontier = follower.drain()
        assert all(reported.less_equal(u.time) for u in drained)
        assert reported.precedes(frontier)
        reported, got = frontier, got + drained
    expected = [
        Update(u.data, t, 1)
        for u in updates
        if (t := time_of(versions[newest], u.time)) is not None
    ]
    assert Counter(got) == Counter(expected)


def test_data_ahead_is_stashed_and_a_remap_ahead_holds_the_frontier() -> None:
    remap = Remap.unbound(KAFKA.origin)
    follower: Follower[K, str] = Follower(remap)
    follower.receive([Update("a", K.exact(0, 0), 1), Update("b", K.exact(0, 1), 1)])
    assert follower.drain() == ([], Antichain.of(Timestamp(0)))
    remap = remap.bound(Timestamp(10), K.frontier({0: 1}))
    follower.follow(remap)
    assert follower.drain() == ([Update("a", Timestamp(10), 1)], Antichain.of(Timestamp(10)))
    follower.advance(K.frontier({0: 2}))
    assert follower.drain() == ([], Antichain.of(Timestamp(11)))
    follower.follow(remap.bound(Timestamp(20), K.frontier({0: 2})))
    assert follower.drain() == ([Update("b", Timestamp(20), 1)], Antichain.of(Timestamp(21)))


def test_a_source_that_breaks_its_own_frontier_is_refused() -> None:
    follower: Follower[K, str] = Follower(Remap.unbound(KAFKA.origin))
    follower.advance(K.frontier({0: 5}))
    with pytest.raises(InvalidValue, match="after its position was complete"):
        follower.receive([Update("late", K.exact(0, 4), 1)])
    with pytest.raises(InvalidValue, match="is behind"):
        follower.advance(K.frontier({0: 4}))
