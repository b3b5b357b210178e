from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import InvalidValue
from reclock.time.frontier import BEGINNING, CLOSED, Frontier, at
from reclock.time.policy import Policy
from strategies.times import frontiers

policies = st.integers(0, 12).map(Policy)


@given(policies, frontiers(), frontiers(), frontiers())
def test_since_never_goes_back_nor_passes_a_hold(
    policy: Policy, since: Frontier, upper: Frontier, permitted: Frontier
) -> None:
    after = policy.next_since(since, upper, permitted=permitted)
    assert since.precedes(after)
    if since.precedes(permitted):
        assert after.precedes(permitted)
    assert policy.next_since(after, upper, permitted=permitted) == after


@given(policies, frontiers(), frontiers(), frontiers())
def test_a_policy_never_ends_an_object(
    policy: Policy, since: Frontier, upper: Frontier, permitted: Frontier
) -> None:
    after = policy.next_since(since, upper, permitted=permitted)
    assert after.is_closed == since.is_closed
    if upper.is_closed:
        assert after == since


@given(policies, st.integers(0, 20), st.integers(1, 20))
def test_the_last_complete_time_and_the_window_stay_readable(
    policy: Policy, since: int, upper: int
) -> None:
    after = policy.next_since(at(since), at(upper)).element()
    assert after == max(since, upper - max(policy.window, 1), 0)
    if since < upper:
        assert after <= upper - 1


@given(policies, st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_a_hold_is_met_exactly_when_it_is_in_the_way(
    policy: Policy, since: int, upper: int, hold: int
) -> None:
    free = policy.next_since(at(since), at(upper)).element()
    held = policy.next_since(at(since), at(upper), permitted=at(hold)).element()
    assert held == max(since, min(free, hold))


@given(policies, st.lists(st.integers(0, 5), max_size=30))
def test_while_time_passes_the_kept_history_is_bounded_by_the_window(
    policy: Policy, steps: list[int]
) -> None:
    since, upper = BEGINNING, 0
    for step in steps:
        upper += step
        since = policy.next_since(since, at(upper))
        assert upper - since.element() <= max(policy.window, 1)


def test_a_finished_object_keeps_what_it_has() -> None:
    assert Policy(5).next_since(at(3), CLOSED) == at(3)
    assert Policy(5).next_since(CLOSED, at(9)) == CLOSED


def test_a_negative_window_is_refused() -> None:
    with pytest.raises(InvalidValue, match="must not be negative, got -1"):
        Policy(-1)
