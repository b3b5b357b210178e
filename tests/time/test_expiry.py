from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import DataflowExpired, InvalidValue
from reclock.time.antichain import meet_all
from reclock.time.expiry import (
    EXPIRING,
    DataflowKind,
    Decision,
    Dependency,
    Lifetime,
    check,
    decide,
)
from reclock.time.frontier import CLOSED, Frontier, at
from reclock.time.timeline import EPOCH_MS, Timeline, User
from reclock.time.timestamp import INT64_MAX, Timestamp
from strategies.times import frontiers, timelines

VIEW = DataflowKind.MATERIALIZED_VIEW

dependencies = st.lists(
    st.builds(Dependency, st.sampled_from(["orders", "items"]), frontiers(), st.booleans()),
    max_size=3,
)
lifetimes = st.builds(Lifetime, st.integers(0, 20), st.integers(0, 20))


@given(
    st.sampled_from(DataflowKind),
    st.one_of(st.none(), st.just(EPOCH_MS), timelines()),
    dependencies,
    lifetimes,
    frontiers(),
)
def test_the_decision_table(
    kind: DataflowKind,
    timeline: Timeline | None,
    reads: list[Dependency],
    lifetime: Lifetime,
    until: Frontier,
) -> None:
    decision = decide(kind, timeline, reads, lifetime, until)
    upper = meet_all(d.upper for d in reads)
    applies = (
        lifetime.offset_ms > 0
        and kind in EXPIRING
        and timeline == EPOCH_MS
        and not any(d.refreshed for d in reads)
        and not upper.is_closed
    )
    expiration = CLOSED
    if applies:
        expiration = at(max(lifetime.started_ms + lifetime.offset_ms, upper.element() + 1))
        if until.precedes(expiration):
            expiration = CLOSED
    assert decision.expiration == expiration
    assert decision.until == until.meet(expiration)
    assert (decision.reason is None) == (not expiration.is_closed)
    assert pickle.loads(pickle.dumps(decision)) == decision


@given(dependencies, lifetimes, frontiers())
def test_a_new_dataflow_can_always_take_a_step_before_it_expires(
    reads: list[Dependency], lifetime: Lifetime, until: Frontier
) -> None:
    decision = decide(VIEW, EPOCH_MS, reads, lifetime, until)
    if not decision.expiration.is_closed:
        upper = meet_all(d.upper for d in reads)
        assert upper.strictly_precedes(decision.expiration)
        check(upper, decision.expiration)
        check(at(upper.element() + 1), decision.expiration)


@given(frontiers(), frontiers(), st.booleans())
def test_the_guard_lets_nothing_pass_the_expiration(
    frontier: Frontier, expiration: Frontier, dropped: bool
) -> None:
    complete = {t for t in range(40) if not frontier.less_equal(Timestamp(t))}
    exact = {t for t in range(40) if not expiration.less_equal(Timestamp(t))}
    ended_whole = frontier.is_closed and not dropped
    if complete <= exact or ended_whole:
        check(frontier, expiration, dropped=dropped)
    else:
        with pytest.raises(DataflowExpired) as caught:
            check(frontier, expiration, dropped=dropped)
        assert caught.value.code == "57P01"
        assert str(frontier) in (caught.value.detail or "")


def test_an_input_that_finishes_ends_its_view_only_if_nothing_was_dropped() -> None:
    check(CLOSED, at(50), dropped=False)
    with pytest.raises(DataflowExpired):
        check(CLOSED, at(50))
    check(CLOSED.meet(at(50)), at(50))


def test_expiration_beyond_the_end_of_time_is_off() -> None:
    wild = Dependency("cdc", at(INT64_MAX))
    decision = decide(VIEW, EPOCH_MS, [wild], Lifetime(0, 5))
    assert decision == Decision(CLOSED, CLOSED, "it would be beyond the largest timestamp")
    assert decide(VIEW, EPOCH_MS, [Dependency("a", at(1))], Lifetime(1, INT64_MAX)).reason


def test_an_until_in_the_way_is_kept_whatever_the_decision() -> None:
    reads = [Dependency("orders", at(5))]
    ends_first = decide(VIEW, EPOCH_MS, reads, Lifetime(0, 100), until=at(100))
    assert (ends_first.expiration, ends_first.until) == (CLOSED, at(100))
    ends_later = decide(VIEW, EPOCH_MS, reads, Lifetime(0, 100), until=at(101))
    assert (ends_later.expiration, ends_later.until) == (at(100), at(100))
    other = decide(VIEW, User("x"), reads, Lifetime(0, 100), until=at(7))
    assert other.until == at(7)


def test_a_negative_offset_is_refused() -> None:
    with pytest.raises(InvalidValue, match="must not be negative, got -1"):
        Lifetime(0, -1)
