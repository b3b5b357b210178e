from __future__ import annotations

import pickle

import pytest
from hypothesis import given

from reclock.errors import Unreadable
from reclock.time.frontier import (
    BEGINNING,
    CLOSED,
    Bounds,
    Frontier,
    at,
    common_upper,
    last_complete,
    readable_since,
)
from reclock.time.timestamp import INT64_MAX, Timestamp
from strategies.times import bounds, frontiers, inputs, timestamps


@given(frontiers())
def test_the_last_complete_time_is_the_largest_that_is_not_beyond(upper: Frontier) -> None:
    last = last_complete(upper)
    complete = [t for t in map(Timestamp, [*range(30), INT64_MAX]) if not upper.less_equal(t)]
    assert last == (complete[-1] if complete else None)


@given(inputs(), timestamps())
def test_all_are_readable_from_the_common_since_to_the_common_upper(
    objects: tuple[Bounds, ...], time: Timestamp
) -> None:
    since, upper = readable_since(objects), common_upper(objects)
    assert (since <= time) == all(b.kept_at(time) for b in objects)
    assert (not upper.less_equal(time)) == all(b.complete_at(time) for b in objects)


def test_no_inputs_are_readable_at_every_time() -> None:
    assert readable_since([]) == 0
    assert common_upper([]) == CLOSED
    assert at(0) == BEGINNING


def test_a_dropped_object_is_readable_at_no_time() -> None:
    objects = [Bounds("orders", CLOSED, at(9)), Bounds("items", at(3), at(9))]
    with pytest.raises(Unreadable, match="orders cannot be read any more") as caught:
        readable_since(objects)
    assert caught.value.detail == "orders has since {}, items has since {3}"


@given(bounds())
def test_bounds_pickle(value: Bounds) -> None:
    assert pickle.loads(pickle.dumps(value)) == value
