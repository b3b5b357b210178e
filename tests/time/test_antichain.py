from __future__ import annotations

import pickle
from functools import reduce
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import InvalidValue
from reclock.time.antichain import Antichain, join_all, meet_all
from reclock.time.timestamp import Timestamp
from strategies.times import TIMES, TimeType, antichains

every_time = pytest.mark.parametrize("times", TIMES, ids=lambda t: t.name)

CLOSED: Antichain[Any] = Antichain.closed()


def beyond(frontier: Antichain[Any], times: TimeType) -> set[Any]:
    """The definition: the times that may still change."""
    return {t for t in times.universe if any(f.less_equal(t) for f in frontier.elements)}


def drawn(times: TimeType, data: st.DataObject, count: int) -> list[Antichain[Any]]:
    element = st.sampled_from(times.universe)
    return [data.draw(antichains(element)) for _ in range(count)]


@every_time
@given(data=st.data())
def test_elements_are_the_minimal_ones(times: TimeType, data: st.DataObject) -> None:
    elements = data.draw(st.lists(times.strategy, max_size=6))
    frontier = Antichain(elements)
    assert frontier.elements <= set(elements)
    for a, b in product(frontier.elements, repeat=2):
        assert a == b or not a.less_equal(b)
    assert all(frontier.less_equal(e) for e in elements)
    shuffled = Antichain(data.draw(st.permutations(elements)))
    assert shuffled == frontier
    assert hash(shuffled) == hash(frontier)
    assert repr(shuffled) == repr(frontier)


@every_time
@given(data=st.data())
def test_membership_is_by_definition(times: TimeType, data: st.DataObject) -> None:
    (f,) = drawn(times, data, 1)
    for t in times.universe:
        assert f.less_equal(t) == (t in beyond(f, times))
        assert f.less_than(t) == (t in beyond(f, times) - f.elements)


@every_time
@given(data=st.data())
def test_the_order_is_inclusion_of_upper_sets(times: TimeType, data: st.DataObject) -> None:
    f, g = drawn(times, data, 2)
    assert f.precedes(g) == (beyond(g, times) <= beyond(f, times))
    assert f.strictly_precedes(g) == (beyond(g, times) < beyond(f, times))
    assert f.precedes(f)
    assert (f.precedes(g) and g.precedes(f)) == (f == g)
    assert f.precedes(CLOSED)
    assert CLOSED.precedes(f) == f.is_closed


@every_time
@given(data=st.data())
def test_meet_is_the_union_and_join_the_intersection(times: TimeType, data: st.DataObject) -> None:
    f, g, h = drawn(times, data, 3)
    assert beyond(f.meet(g), times) == beyond(f, times) | beyond(g, times)
    assert beyond(f.join(g), times) == beyond(f, times) & beyond(g, times)
    assert f.meet(g) == g.meet(f)
    assert f.join(g) == g.join(f)
    assert f.meet(f) == f == f.join(f)
    assert f.meet(g).meet(h) == f.meet(g.meet(h)) == meet_all([f, g, h])
    assert f.join(g).join(h) == f.join(g.join(h))
    assert f.meet(f.join(g)) == f == f.join(f.meet(g))
    assert f.join(g.meet(h)) == f.join(g).meet(f.join(h))
    assert f.meet(CLOSED) == f
    assert f.join(CLOSED) == CLOSED


@every_time
@given(data=st.data())
def test_the_meet_and_join_of_many(times: TimeType, data: st.DataObject) -> None:
    frontiers = data.draw(st.lists(antichains(st.sampled_from(times.universe)), max_size=4))
    bottom = reduce(lambda a, b: a.meet(b), times.universe)
    minimum = Antichain.of(bottom)
    assert meet_all(frontiers) == reduce(Antichain.meet, frontiers, CLOSED)
    assert join_all(frontiers, minimum) == reduce(Antichain.join, frontiers, minimum)
    assert meet_all([]) == CLOSED


@every_time
@given(data=st.data())
def test_frontiers_pickle_and_iterate_in_one_order(times: TimeType, data: st.DataObject) -> None:
    (f,) = drawn(times, data, 1)
    copy = pickle.loads(pickle.dumps(f))
    assert copy == f
    assert list(copy) == list(f) == sorted(f.elements)
    assert len(f) == len(list(f))


def test_frontiers_do_not_change() -> None:
    frontier = Antichain.of(Timestamp(3))
    with pytest.raises(AttributeError, match="immutable"):
        frontier._elements = frozenset()
    with pytest.raises(AttributeError):
        frontier.other = 1
    assert frontier != 3
    assert frontier == Antichain.of(Timestamp(9), Timestamp(3))


def test_the_only_element_of_a_frontier() -> None:
    assert Antichain.of(Timestamp(3)).element() == Timestamp(3)
    with pytest.raises(InvalidValue, match=r"frontier \{\} has 0 elements"):
        CLOSED.element()
