"""Refresh schedules: which time an update waits for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reclock.errors import InvalidValue
from reclock.time.refresh import Every, Schedule
from reclock.time.timestamp import INT64_MAX, Timestamp

everies = st.builds(Every, st.integers(1, 9), st.none() | st.integers(0, 60))
schedules = st.builds(
    Schedule,
    st.lists(everies, max_size=2).map(tuple),
    st.lists(st.integers(0, 40), max_size=3).map(tuple),
    st.booleans(),
    st.integers(0, 30),
)


def is_refresh(schedule: Schedule, time: int) -> bool:
    """Say it as the definition does."""
    return time >= schedule.created and (
        time in schedule.at
        or (schedule.at_creation and time == schedule.created)
        or any(
            (time - (schedule.created if e.aligned_to is None else e.aligned_to)) % e.interval_ms
            == 0
            for e in schedule.every
        )
    )


@settings(max_examples=60)
@given(schedules, st.integers(0, 50))
def test_an_update_waits_for_the_first_refresh_that_is_not_before_it(schedule, time):
    due = schedule.round_up(time)
    expected = next((t for t in range(time, 80) if is_refresh(schedule, t)), None)
    assert due == expected
    if due is not None:
        assert schedule.round_up(due) == due
    assert schedule.first == schedule.round_up(schedule.created) == schedule.round_up(0)


@settings(max_examples=60)
@given(schedules, st.integers(0, 50))
def test_what_is_shown_is_of_the_last_refresh_that_is_not_after_it(schedule, time):
    last = schedule.round_down(time)
    assert last == next((t for t in range(time, -1, -1) if is_refresh(schedule, t)), None)
    if last is not None:
        assert schedule.round_down(last) == last


def test_there_is_nothing_after_the_last_time_there_is():
    every = Schedule((Every(10, 5),))
    assert every.round_up(INT64_MAX - 1) is None
    assert Schedule(at=(7,)).round_up(8) is None


def test_an_interval_leads_somewhere():
    with pytest.raises(InvalidValue, match="must be positive"):
        Every(0)


def test_a_schedule_says_what_it_is():
    made = Schedule((Every(3_600_000),), (5_000,), at_creation=True)
    assert str(made) == (
        "every 1h from its creation, at 5000 (1970-01-01 00:00:05), at its creation"
    )
    assert str(made.begun(Timestamp(2_000))) == (
        "every 1h from 2000 (1970-01-01 00:00:02), at 5000 (1970-01-01 00:00:05), "
        "at 2000 (1970-01-01 00:00:02)"
    )
