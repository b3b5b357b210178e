from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import InvalidValue, TimestampOverflow
from reclock.time.timestamp import INT64_MAX, Lsn, Sequence, Timestamp, TotalTime, round_up

every_class = pytest.mark.parametrize("cls", [Timestamp, Sequence, Lsn])


@every_class
def test_the_range_is_checked_at_both_ends(cls: type[TotalTime]) -> None:
    assert cls(0) == cls.minimum() == 0
    assert cls(cls.greatest) == cls.greatest
    with pytest.raises(InvalidValue, match="is out of range") as below:
        cls(-1)
    assert not isinstance(below.value, TimestampOverflow)
    with pytest.raises(TimestampOverflow, match="is out of range") as above:
        cls(cls.greatest + 1)
    assert above.value.code == "22008"


@every_class
def test_a_step_past_the_end_is_an_error_not_a_wrap(cls: type[TotalTime]) -> None:
    assert cls(cls.greatest - 1).step() == cls.greatest
    with pytest.raises(TimestampOverflow):
        cls(cls.greatest).step()
    with pytest.raises(TimestampOverflow):
        cls(1).step(cls.greatest)
    with pytest.raises(InvalidValue):
        cls(1).step(-2)


@every_class
@given(value=st.integers(0, INT64_MAX), by=st.integers(0, INT64_MAX))
def test_going_back_stops_at_the_minimum(cls: type[TotalTime], value: int, by: int) -> None:
    assert cls(value).back(by) == max(0, value - by)
    assert type(cls(value).back(by)) is cls


@given(st.integers(-(10**6), 10**15), st.integers(1, 10**6))
def test_rounding_up_gives_the_first_multiple_at_or_after(ms: int, interval: int) -> None:
    ms = max(ms, 1 - interval)
    rounded = round_up(ms, interval)
    assert rounded % interval == 0
    assert ms <= rounded < ms + interval


def test_rounding_refuses_what_has_no_answer() -> None:
    for interval in (0, -1):
        with pytest.raises(InvalidValue, match="must be positive"):
            round_up(5, interval)
    with pytest.raises(TimestampOverflow):
        round_up(INT64_MAX, 1_000)
    with pytest.raises(InvalidValue):
        round_up(-5_000, 1_000)


@given(st.integers(0, Lsn.greatest))
def test_log_sequence_numbers_round_trip_through_their_text(value: int) -> None:
    assert Lsn.parse(str(Lsn(value))) == value
    assert Lsn.parse(str(Lsn(value)).lower()) == value


@pytest.mark.parametrize(
    "text",
    ["", "16", "16/", "/16", "-1/0", "1/-1", "0/1FFFFFFFF", "123456789/0", "1_0/2", "0x1/2",
     " 1/2", "1/2 ", "1/2/3", "g/0", "١/0"],
)  # fmt: skip
def test_text_that_postgresql_would_not_write_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="invalid log sequence number"):
        Lsn.parse(text)


def test_timestamps_are_integers_that_know_their_name() -> None:
    assert repr(Timestamp(5)) == "Timestamp(5)"
    assert str(Timestamp(5)) == f"{Timestamp(5)}" == "5"
    assert Timestamp(5) + 1 == 6
    assert str(Lsn(2**32 + 255)) == "1/FF"
