from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from model.product import Product
from reclock.time.antichain import Antichain
from reclock.time.order import comparable
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Sequence

pairs = st.tuples(st.integers(0, 5), st.integers(0, 5))


def pair(a: int, b: int) -> Product[Sequence, Sequence]:
    return Product(Sequence(a), Sequence(b))


@given(pairs, pairs)
def test_pairs_are_ordered_when_both_coordinates_agree(
    a: tuple[int, int], b: tuple[int, int]
) -> None:
    below = a[0] <= b[0] and a[1] <= b[1]
    above = b[0] <= a[0] and b[1] <= a[1]
    assert pair(*a).less_equal(pair(*b)) == below
    assert comparable(pair(*a), pair(*b)) == (below or above)
    assert pair(*a).join(pair(*b)) == pair(max(a[0], b[0]), max(a[1], b[1]))
    assert pair(*a).meet(pair(*b)) == pair(min(a[0], b[0]), min(a[1], b[1]))


def test_a_pair_has_no_join_where_a_coordinate_has_none() -> None:
    zero = Product(KafkaPosition.exact(0, 1), Sequence(3))
    one = Product(KafkaPosition.exact(1, 1), Sequence(5))
    assert zero.join(one) is None
    assert Antichain.of(zero).join(Antichain.of(one)).is_closed


def test_progress_of_two_logs_is_a_frontier_with_several_elements() -> None:
    frontier = Antichain.of(pair(1, 4), pair(2, 2), pair(2, 5))
    assert str(frontier) == "{(1, 4), (2, 2)}"
    assert frontier.less_equal(pair(2, 3))
    assert not frontier.less_equal(pair(1, 3))
