from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import InvalidValue
from reclock.time.antichain import Antichain
from reclock.time.counted import CountedAntichain
from reclock.time.timestamp import Timestamp
from strategies.times import TIMES, TimeType


@pytest.mark.parametrize("times", TIMES, ids=lambda t: t.name)
@given(data=st.data())
def test_the_frontier_is_that_of_the_positive_counts(times: TimeType, data: st.DataObject) -> None:
    change = st.tuples(st.sampled_from(times.universe[:8]), st.integers(-2, 2))
    counted: CountedAntichain[Any] = CountedAntichain()
    model: Counter[Any] = Counter()
    for batch in data.draw(st.lists(st.lists(change, max_size=4), max_size=10)):
        after = model.copy()
        for time, diff in batch:
            after[time] += diff
        before = counted.frontier
        if any(count < 0 for count in after.values()):
            with pytest.raises(InvalidValue, match="would become -"):
                counted.update(batch)
            assert counted.frontier == before
        else:
            moved = counted.update(batch)
            model = after
            assert moved.added == counted.frontier.elements - before.elements
            assert moved.removed == before.elements - counted.frontier.elements
        assert counted.frontier == Antichain(t for t, n in model.items() if n > 0)
        assert all(counted.count(t) == model[t] for t in times.universe[:8])


def test_changes_of_one_update_cancel_before_they_count() -> None:
    counted = CountedAntichain([(Timestamp(4), 1)])
    moved = counted.update([(Timestamp(1), -1), (Timestamp(1), 1), (Timestamp(4), 0)])
    assert moved.added == moved.removed == frozenset()
    assert counted.frontier == Antichain.of(Timestamp(4))


def test_an_empty_multiset_is_closed() -> None:
    counted = CountedAntichain([(Timestamp(4), 2)])
    counted.update([(Timestamp(4), -1)])
    assert not counted.frontier.is_closed
    assert counted.update([(Timestamp(4), -1)]).removed == {Timestamp(4)}
    assert counted.frontier.is_closed
