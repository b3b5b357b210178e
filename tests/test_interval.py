"""The value of an interval: three numbers, PostgreSQL's text, an order that refines SQL's."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reclock
from reclock.errors import InvalidValue
from reclock.interval import Interval
from reclock.sql.interval import parse_interval
from strategies.values import intervals


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Interval(), "00:00:00"),
        (Interval(1), "1 mon"),
        (Interval(-1), "-1 mons"),
        (Interval(14, 3, 14_706_700_000), "1 year 2 mons 3 days 04:05:06.7"),
        (Interval(-14, 3, -1), "-1 years -2 mons +3 days -00:00:00.000001"),
        (Interval(0, -1, 7_200_000_000), "-1 days +02:00:00"),
        (Interval(-1, 0, 1_000_000), "-1 mons +00:00:01"),
        (Interval(0, 0, 360_000_000_000), "100:00:00"),
        (Interval(-(2**31), -(2**31), -(2**63)),
         "-178956970 years -8 mons -2147483648 days -2562047788:00:54.775808"),
    ],
)  # fmt: skip
def test_the_text_is_postgresqls(value, text):
    assert str(value) == text


@given(intervals().filter(lambda value: value.microseconds > -(2**63)))  # PostgreSQL's does not
def test_the_text_reads_back(value):
    assert parse_interval(str(value)) == value


@given(intervals(), intervals())
def test_the_order_refines_that_of_sql(a, b):
    assert (a < b) + (a == b) + (a > b) == 1
    if a.span < b.span:
        assert a < b
    assert hash(a) == hash(Interval(a.months, a.days, a.microseconds))
    assert pickle.loads(pickle.dumps(a)) == a


@given(st.timedeltas(-timedelta(10**8), timedelta(10**8)))
def test_a_timedelta_has_days_and_time(value):
    found = Interval.of(value)
    assert found.timedelta() == value
    assert found.months == 0
    assert found.days * found.microseconds >= 0


def test_months_are_no_days():
    assert reclock.Interval is Interval
    with pytest.raises(InvalidValue, match="no fixed number of days"):
        Interval(months=2).timedelta()
    assert -Interval(1, -2, 3) == Interval(-1, 2, -3)
    assert not Interval()


@pytest.mark.parametrize("wrong", [(2**31, 0, 0), (0, -(2**31) - 1, 0), (0, 0, 2**63)])
def test_numbers_have_a_range(wrong):
    with pytest.raises(InvalidValue) as raised:
        Interval(*wrong)
    assert raised.value.code == "22008"
    with pytest.raises(InvalidValue, match="must be an int"):
        Interval(1.5)
