from __future__ import annotations

import pickle
from itertools import combinations
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reclock.errors import InvalidValue
from reclock.time.antichain import Antichain
from reclock.time.position import AFTER, BEFORE, FilePosition, KafkaPosition, Position, offsets_of
from strategies.times import (
    FILES,
    PARTITIONS,
    TIMES,
    file_offsets,
    kafka_offsets,
)

Offsets = dict[Any, int]

every_position = pytest.mark.parametrize(
    "universe",
    [times.universe for times in TIMES if issubclass(type(times.universe[0]), Position)],
    ids=lambda universe: type(universe[0]).__name__,
)

sources = pytest.mark.parametrize(
    ("cls", "offsets", "parts"),
    [(KafkaPosition, kafka_offsets(), PARTITIONS), (FilePosition, file_offsets(), FILES)],
    ids=["kafka", "files"],
)


def progressed(before: Offsets, after: Offsets) -> bool:
    """Progress by definition: no part vanished and no offset went back."""
    return all(part in after and after[part] >= offset for part, offset in before.items())


@sources
@given(data=st.data())
def test_a_frontier_is_an_antichain_of_its_parts_and_gaps(
    cls: type[Position[Any]], offsets: Any, parts: tuple[Any, ...], data: st.DataObject
) -> None:
    drawn = data.draw(offsets)
    frontier = cls.frontier(drawn)
    assert frontier == Antichain(frontier.elements)
    assert offsets_of(frontier) == drawn
    for part in parts:
        covering = [e for e in frontier if e.covers(part)]
        assert len(covering) == 1
        assert covering[0].offset == drawn.get(part, 0)
        assert (covering[0].part == part) == (part in drawn)


@sources
@given(data=st.data())
def test_a_record_is_beyond_the_frontier_when_its_offset_is_not_yet_passed(
    cls: type[Position[Any]], offsets: Any, parts: tuple[Any, ...], data: st.DataObject
) -> None:
    drawn = data.draw(offsets)
    part, offset = data.draw(st.sampled_from(parts)), data.draw(st.integers(0, 6))
    beyond = cls.frontier(drawn).less_equal(cls.exact(part, offset))
    assert beyond == (offset >= drawn.get(part, 0))


@sources
@given(data=st.data())
def test_the_order_of_frontiers_agrees_with_the_offsets_of_the_parts(
    cls: type[Position[Any]], offsets: Any, parts: tuple[Any, ...], data: st.DataObject
) -> None:
    before, after = data.draw(offsets), data.draw(offsets)
    f, g = cls.frontier(before), cls.frontier(after)
    assert f.precedes(g) == progressed(before, after)
    assert (f == g) == (before == after)


@sources
@given(data=st.data())
def test_advancing_parts_and_new_parts_are_progress_and_vanished_ones_a_regression(
    cls: type[Position[Any]], offsets: Any, parts: tuple[Any, ...], data: st.DataObject
) -> None:
    before = data.draw(offsets)
    steps = data.draw(st.fixed_dictionaries({part: st.integers(0, 3) for part in before}))
    born = data.draw(offsets)
    after = born | {part: offset + steps[part] for part, offset in before.items()}
    f, g = cls.frontier(before), cls.frontier(after)
    assert f.precedes(g)
    assert f.strictly_precedes(g) == (before != after)
    assume(before)
    gone = data.draw(st.sampled_from(sorted(before)))
    fewer = cls.frontier({p: o for p, o in after.items() if p != gone})
    assert not f.precedes(fewer)
    assert fewer.strictly_precedes(g)


@sources
@given(data=st.data())
def test_the_meet_of_frontiers_is_the_least_offset_of_each_part(
    cls: type[Position[Any]], offsets: Any, parts: tuple[Any, ...], data: st.DataObject
) -> None:
    before, after = data.draw(offsets), data.draw(offsets)
    f, g = cls.frontier(before), cls.frontier(after)
    for part in parts:
        for offset in range(6):
            record = cls.exact(part, offset)
            bounds = before.get(part, 0), after.get(part, 0)
            assert f.meet(g).less_equal(record) == (offset >= min(bounds))
            assert f.join(g).less_equal(record) == (offset >= max(bounds))


@sources
def test_the_least_position_covers_every_part_not_yet_born(
    cls: type[Position[Any]], offsets: Any, parts: tuple[Any, ...]
) -> None:
    assert cls.frontier({}) == Antichain.of(cls.everything())
    for part in parts:
        assert cls.everything().less_equal(cls.exact(part, 0))
        assert cls.frontier({}).strictly_precedes(cls.frontier({part: 0}))


def test_kafka_gaps_between_neighbouring_partitions_do_not_exist() -> None:
    assert str(KafkaPosition.frontier({1: 4, 0: 2})) == "{[0] 2, [1] 4, (1, ∞) 0}"
    assert str(KafkaPosition.frontier({3: 4, 1: 2})) == (
        "{(-∞, 1) 0, [1] 2, (1, 3) 0, [3] 4, (3, ∞) 0}"
    )


def test_file_gaps_are_before_between_and_after_names() -> None:
    assert str(FilePosition.frontier({"b": 4, "a": 2})) == (
        "{(-∞, a) 0, [a] 2, (a, b) 0, [b] 4, (b, ∞) 0}"
    )


def test_a_wide_interval_comes_before_what_is_inside_it_and_beside_what_is_not() -> None:
    wide = KafkaPosition((2, BEFORE), (5, AFTER), 3)
    assert str(wide) == "[2, 5] 3"
    assert wide.less_equal(KafkaPosition.exact(5, 3))
    assert not wide.less_equal(KafkaPosition.exact(5, 2))
    assert not wide.less_equal(KafkaPosition.exact(6, 9))
    assert not KafkaPosition.exact(5, 3).less_equal(wide)
    assert wide.join(KafkaPosition.exact(6, 9)) is None
    assert wide.join(KafkaPosition((4, AFTER), None, 9)) == KafkaPosition((4, AFTER), (5, AFTER), 9)
    assert wide.covers(2)
    assert not wide.covers(6)


@pytest.mark.parametrize(
    ("low", "high", "offset", "message"),
    [
        (None, None, -1, "offset must not be negative, got -1"),
        (None, None, 2**63, "offset does not fit 64 bits, got 9223372036854775808"),
        ((3, AFTER), (3, AFTER), 0, "must not be empty"),
        ((3, AFTER), (3, BEFORE), 0, "must not be empty"),
        ((3, AFTER), (4, BEFORE), 0, "must not be empty"),
        ((4, BEFORE), (3, AFTER), 0, "must not be empty"),
        (None, (0, BEFORE), 0, "must not be empty"),
        ((-1, BEFORE), (-1, AFTER), 0, "must not be empty"),
    ],
)
def test_kafka_positions_that_cannot_be_are_refused(
    low: Any, high: Any, offset: int, message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        KafkaPosition(low, high, offset)


def test_bad_offsets_of_a_source_are_refused() -> None:
    with pytest.raises(InvalidValue):
        KafkaPosition.frontier({0: 5, 1: -1})
    with pytest.raises(InvalidValue):
        KafkaPosition.frontier({-1: 5})
    with pytest.raises(InvalidValue):
        FilePosition(("b", BEFORE), ("a", AFTER), 0)


def test_a_thousand_partitions_are_compared_and_built_without_trying_all_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f = KafkaPosition.frontier(dict.fromkeys(range(1000), 10))
    g = KafkaPosition.frontier(dict.fromkeys(range(1000), 11))
    calls = 0
    less_equal = KafkaPosition.less_equal

    def counted(self: KafkaPosition, other: KafkaPosition) -> bool:
        nonlocal calls
        calls += 1
        return less_equal(self, other)

    monkeypatch.setattr(KafkaPosition, "less_equal", counted)
    assert f.precedes(g)
    assert Antichain(g.elements) == g
    assert calls <= 2_000


@every_position
@given(data=st.data())
def test_positions_are_apart_exactly_when_no_part_is_in_two(
    universe: tuple[Position[Any], ...], data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(st.sampled_from(universe), max_size=4))
    disjoint = all(a.join(b) is None for a, b in combinations(drawn, 2))
    assert type(universe[0]).apart(drawn) == disjoint


@given(kafka_offsets())
def test_frontiers_of_positions_pickle(offsets: dict[int, int]) -> None:
    frontier = KafkaPosition.frontier(offsets)
    assert pickle.loads(pickle.dumps(frontier)) == frontier
