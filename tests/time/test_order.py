from __future__ import annotations

import pickle
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.time.order import Lattice, PartialOrder, comparable, less_than
from strategies.times import TIMES, TimeType

every_time = pytest.mark.parametrize("times", TIMES, ids=lambda t: t.name)


@every_time
def test_the_order_is_reflexive_and_antisymmetric(times: TimeType) -> None:
    for a, b in product(times.universe, repeat=2):
        assert a.less_equal(a)
        assert (a.less_equal(b) and b.less_equal(a)) == (a == b)


@every_time
@given(data=st.data())
def test_the_order_is_transitive(times: TimeType, data: st.DataObject) -> None:
    a, b, c = (data.draw(times.strategy) for _ in range(3))
    if a.less_equal(b) and b.less_equal(c):
        assert a.less_equal(c)


@every_time
def test_join_is_the_least_upper_bound_or_none_where_there_is_no_bound(times: TimeType) -> None:
    for a, b in product(times.universe, repeat=2):
        above = [t for t in times.universe if a.less_equal(t) and b.less_equal(t)]
        joined = a.join(b)
        assert (joined is None) == (not above)
        if joined is not None:
            assert joined in above
            assert all(joined.less_equal(t) for t in above)
        assert joined == b.join(a)


@every_time
def test_meet_is_the_greatest_lower_bound(times: TimeType) -> None:
    for a, b in product(times.universe, repeat=2):
        below = [t for t in times.universe if t.less_equal(a) and t.less_equal(b)]
        met = a.meet(b)
        assert met in below
        assert all(t.less_equal(met) for t in below)
        assert met == b.meet(a)


@every_time
def test_sorting_is_a_total_linear_extension_of_the_order(times: TimeType) -> None:
    for a, b in product(times.universe, repeat=2):
        assert (a < b) + (b < a) + (a == b) == 1
        if less_than(a, b):
            assert a < b
    for a, b, c in product(times.universe[:12], repeat=3):
        if a < b < c:
            assert a < c


@every_time
def test_partially_ordered_times_have_no_comparison_that_could_pass_for_progress(
    times: TimeType,
) -> None:
    universe = times.universe
    if all(comparable(a, b) for a, b in product(universe, repeat=2)):
        return
    with pytest.raises(TypeError):
        universe[0] <= universe[1]  # noqa: B015 - the comparison itself must fail


@every_time
def test_times_are_lattices_that_hash_and_pickle(times: TimeType) -> None:
    for time in times.universe:
        assert isinstance(time, PartialOrder)
        assert isinstance(time, Lattice)
        copy = pickle.loads(pickle.dumps(time))
        assert copy == time
        assert type(copy) is type(time)
        assert hash(copy) == hash(time)
        assert str(copy) == str(time)
