from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import InvalidValue
from reclock.time.description import Description
from reclock.time.frontier import CLOSED, at
from reclock.time.timestamp import Timestamp
from strategies.times import TIMES, TimeType, antichains

if TYPE_CHECKING:
    from reclock.time.antichain import Antichain

every_time = pytest.mark.parametrize("times", TIMES, ids=lambda t: t.name)


def chain(times: TimeType, data: st.DataObject, length: int) -> list[Antichain[Any]]:
    """Frontiers of which each is at or before the next."""
    frontiers = [data.draw(antichains(st.sampled_from(times.universe))) for _ in range(length)]
    for i in range(1, length):
        frontiers[i] = frontiers[i].join(frontiers[i - 1])
    return frontiers


@every_time
@given(data=st.data())
def test_batches_that_meet_partition_their_interval(times: TimeType, data: st.DataObject) -> None:
    a, b, c = chain(times, data, 3)
    since, later = (data.draw(antichains(st.sampled_from(times.universe))) for _ in range(2))
    first, second = Description(a, b, since), Description(b, c, later)
    both = first.followed_by(second)
    for t in times.universe:
        assert first.contains(t) + second.contains(t) == both.contains(t)
        assert both.contains(t) == (a.less_equal(t) and not c.less_equal(t))
        readable = since.less_equal(t) and later.less_equal(t) and not c.less_equal(t)
        assert both.definite_at(t) == readable
    assert first.is_empty == (not any(first.contains(t) for t in times.universe))


@every_time
@given(data=st.data())
def test_an_interval_that_ends_before_it_begins_is_refused(
    times: TimeType, data: st.DataObject
) -> None:
    lower, upper = (data.draw(antichains(st.sampled_from(times.universe))) for _ in range(2))
    if lower.precedes(upper):
        description = Description(lower, upper, lower)
        assert pickle.loads(pickle.dumps(description)) == description
    else:
        with pytest.raises(InvalidValue, match="is not at or before upper"):
            Description(lower, upper, lower)


def test_batches_that_do_not_meet_are_refused() -> None:
    with pytest.raises(InvalidValue, match="batches do not meet"):
        Description(at(0), at(3), at(0)).followed_by(Description(at(4), at(5), at(0)))


def test_a_closed_batch_holds_everything_from_lower_on() -> None:
    description = Description(at(3), CLOSED, at(5))
    assert repr(description) == "[{3}, {}) since {5}"
    assert description.contains(Timestamp(10**18))
    assert not description.contains(Timestamp(2))
    assert not description.definite_at(Timestamp(4))
    assert description.definite_at(Timestamp(5))
