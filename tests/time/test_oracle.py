from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from conformance.oracle import MemoryOracle, check_oracle
from reclock.errors import InvalidValue, TimestampOverflow, WriteTooFarAhead
from reclock.time.oracle import MAX_AHEAD_MS, OracleState, apply_write, peek_write, read, write
from reclock.time.timestamp import INT64_MAX, Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.time.oracle import Oracle

HOUR = 3_600_000


class ClockWalk(RuleBasedStateMachine):
    """Writes, reads and restarts while the clock walks wherever it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000
        self.latest_now = self.now
        self.durable = pickle.dumps(OracleState())
        self.handed_out: list[Timestamp] = []
        self.waiting: list[Timestamp] = []
        self.applied: list[Timestamp] = [Timestamp(0)]
        self.reads: list[Timestamp] = [Timestamp(0)]

    @property
    def state(self) -> OracleState:
        """Every step starts from what a restart would find."""
        state = pickle.loads(self.durable)
        assert isinstance(state, OracleState)
        return state

    @state.setter
    def state(self, state: OracleState) -> None:
        before = self.state
        assert state.read_ts >= before.read_ts
        assert state.write_ts >= before.write_ts
        self.durable = pickle.dumps(state)

    @rule(by=st.one_of(st.integers(-2 * HOUR, 2 * HOUR), st.integers(-3, 3)))
    def the_clock_moves(self, by: int) -> None:
        self.now += by
        self.latest_now = max(self.latest_now, self.now)

    @rule()
    def a_write_gets_its_time(self) -> None:
        greatest = max(*self.handed_out, *self.applied, *self.reads, 0)
        self.state, time = write(self.state, self.now)
        assert time > greatest
        assert time == max(self.now, greatest + 1)
        self.handed_out.append(time)
        self.waiting.append(time)

    @rule(data=st.data())
    def a_handed_out_time_is_applied_whatever_the_clock_shows(self, data: st.DataObject) -> None:
        if self.waiting:
            time = data.draw(st.sampled_from(self.waiting))
            self.waiting.remove(time)
            self.state = apply_write(self.state, time, self.now)
            self.applied.append(time)

    @rule(ahead=st.integers(-HOUR, 2 * MAX_AHEAD_MS))
    def a_foreign_time_is_applied_if_near(self, ahead: int) -> None:
        time = Timestamp(max(0, self.now + ahead))
        before = self.state
        if time <= max(before.write_ts, self.now + MAX_AHEAD_MS):
            self.state = apply_write(before, time, self.now)
            self.applied.append(time)
        else:
            with pytest.raises(WriteTooFarAhead, match=f"{time} is too far ahead"):
                apply_write(before, time, self.now)

    @rule()
    def somebody_reads(self) -> None:
        time = read(self.state)
        assert time == max(self.applied)
        assert time >= max(self.reads)
        self.reads.append(time)

    @invariant()
    def reads_are_not_ahead_of_writes(self) -> None:
        assert read(self.state) <= peek_write(self.state)

    @invariant()
    def the_distance_from_the_clock_is_bounded(self) -> None:
        drift = peek_write(self.state) - (self.latest_now + MAX_AHEAD_MS)
        assert drift <= len(self.handed_out)


TestClockWalk = ClockWalk.TestCase
TestClockWalk.settings = settings(max_examples=60, stateful_step_count=30)


def test_after_a_regression_of_an_hour_it_steps_until_the_clock_has_caught_up() -> None:
    state, _ = write(OracleState(), HOUR)
    times = []
    for now in (0, 1, HOUR - 1, HOUR, HOUR + 1, HOUR + 2, HOUR + 50):
        state, time = write(state, now)
        state = apply_write(state, time, now)
        times.append(time - HOUR)
    assert times == [1, 2, 3, 4, 5, 6, 50]


def test_data_in_the_wrong_unit_cannot_drag_the_timeline() -> None:
    now = 1_700_000_000_000
    state, time = write(OracleState(), now)
    state = apply_write(state, time, now)
    with pytest.raises(WriteTooFarAhead) as caught:
        apply_write(state, Timestamp(now * 1_000), now)
    assert caught.value.code == "22008"
    assert str(now + MAX_AHEAD_MS) in (caught.value.detail or "")
    assert write(state, now)[1] == now + 1


def test_the_bound_is_exact() -> None:
    state = OracleState()
    assert apply_write(state, Timestamp(50 + MAX_AHEAD_MS), 50).read_ts == 50 + MAX_AHEAD_MS
    with pytest.raises(WriteTooFarAhead):
        apply_write(state, Timestamp(51 + MAX_AHEAD_MS), 50)


def test_applying_an_old_time_changes_nothing() -> None:
    state = OracleState(Timestamp(7), Timestamp(9))
    assert apply_write(state, Timestamp(7), 0) == state
    assert apply_write(state, Timestamp(0), 0) == state


def test_the_end_of_time_is_an_error_and_a_clock_before_the_epoch_is_not() -> None:
    with pytest.raises(TimestampOverflow):
        write(OracleState(Timestamp(0), Timestamp(INT64_MAX)), 0)
    assert write(OracleState(), -5_000)[1] == 1
    with pytest.raises(WriteTooFarAhead):
        apply_write(OracleState(), Timestamp(INT64_MAX), 0)


def test_a_state_that_reads_ahead_of_its_writes_is_refused() -> None:
    with pytest.raises(InvalidValue, match="read_ts 5 is beyond write_ts 4"):
        OracleState(Timestamp(5), Timestamp(4))


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 200))
def test_peeking_changes_nothing_and_is_before_the_next_write(a: int, b: int, now: int) -> None:
    state = OracleState(Timestamp(min(a, b)), Timestamp(max(a, b)))
    assert read(state) <= peek_write(state) < write(state, now)[1]


def reopened(kept: MemoryOracle) -> Callable[[], Oracle]:
    return lambda: kept


def test_the_memory_oracle_conforms() -> None:
    check_oracle(reopened(MemoryOracle()))


class Unbounded(MemoryOracle):
    def apply_write(self, time: Timestamp, now_ms: int) -> None:
        self.state = OracleState(self.state.read_ts.join(time), self.state.write_ts.join(time))


class Stuck(MemoryOracle):
    """Refuses its own times after the clock went back."""

    def apply_write(self, time: Timestamp, now_ms: int) -> None:
        if time > now_ms + MAX_AHEAD_MS:
            message = "too far"
            raise WriteTooFarAhead(message)
        super().apply_write(time, now_ms)


class ClockBound(MemoryOracle):
    def write(self, now_ms: int) -> Timestamp:
        time = Timestamp(max(0, now_ms))
        self.state = OracleState(self.state.read_ts, self.state.write_ts.join(time))
        return time


class Repeating(MemoryOracle):
    def write(self, now_ms: int) -> Timestamp:
        return Timestamp(max(self.state.write_ts + 1, now_ms))


class ReadsBehind(MemoryOracle):
    def read(self) -> Timestamp:
        return self.state.read_ts.back()


@pytest.mark.parametrize("broken", [Unbounded, Stuck, ClockBound, Repeating, ReadsBehind])
def test_the_conformance_suite_catches_broken_oracles(broken: type[MemoryOracle]) -> None:
    with pytest.raises((AssertionError, WriteTooFarAhead)):
        check_oracle(reopened(broken()))


def test_the_conformance_suite_catches_an_oracle_that_forgets_on_restart() -> None:
    with pytest.raises(AssertionError):
        check_oracle(MemoryOracle)
