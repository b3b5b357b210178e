"""Interval literals: every form of PostgreSQL's manual, and what is none."""

from __future__ import annotations

import pytest

from reclock.errors import Error, InvalidValue
from reclock.interval import Interval
from reclock.sql.interval import Qualifier, parse_interval
from reclock.sql.parse import parse_query, parse_statement

YEARS = 14
CLOCK = 14_706_000_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 mon 3 days", Interval(1, 3)),
        ("1-2 3 4:5:6.7", Interval(14, 3, CLOCK - 6_000_000 + 6_700_000)),
        ("1-2", Interval(14)),
        ("-1-2 +3 -4:05:06", Interval(-14, 3, -CLOCK)),
        ("3 4:05:06", Interval(0, 3, CLOCK)),
        ("1 year 2 months 3 days 4 hours 5 minutes 6 seconds", Interval(14, 3, CLOCK)),
        ("P1Y2M3DT4H5M6S", Interval(14, 3, CLOCK)),
        ("P0001-02-03T04:05:06", Interval(14, 3, CLOCK)),
        ("P00010203T040506", Interval(14, 3, CLOCK)),
        ("P-1Y2W", Interval(-12, 14)),
        ("@ 1 minute ago", Interval(0, 0, -60_000_000)),
        ("1 day 2 hours ago", Interval(0, -1, -7_200_000_000)),
        ("1.5 years", Interval(18)),
        ("1.5 mons", Interval(1, 15)),
        ("1.5 weeks", Interval(0, 10, 43_200_000_000)),
        ("1.5 days", Interval(0, 1, 43_200_000_000)),
        ("1 millennium 1 century 1 decade", Interval(13_320)),
        ("250 milliseconds 3 us", Interval(0, 0, 250_003)),
        ("90", Interval(0, 0, 90_000_000)),
        ("1:2.5", Interval(0, 0, 62_500_000)),
    ],
)
def test_forms(text, value):
    assert parse_interval(text) == value


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("interval '1' year", Interval(12)),
        ("interval '3' hour to minute", Interval(0, 0, 180_000_000)),
        ("interval '1:30' minute to second", Interval(0, 0, 90_000_000)),
        ("interval '1 2:03:04.5' day to hour", Interval(0, 1, 7_200_000_000)),
        ("interval '3 years 5 mons 7 days' year to month", Interval(41)),
        ("interval(3) '1.23456 s'", Interval(0, 0, 1_235_000)),
        ("interval '-1.23456' second(2)", Interval(0, 0, -1_230_000)),
        ("interval '1 day' second", Interval(0, 1)),
        ("cast('4:5:6.78' as interval hour to second(1))", Interval(0, 0, 14_706_800_000)),
        ("'1 mon 1 day'::interval month", Interval(1)),
        ("interval '1' || 'x'", Interval(0, 0, 1_000_000)),
    ],
)
def test_what_may_follow_the_word(written, value):
    expression = parse_query(f"SELECT {written}").body.items[0].expression
    literal = expression.operands[0] if hasattr(expression, "operands") else expression
    assert parse_interval(literal.text, literal.qualifier) == value


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "22007"),
        ("1 parsec", "22007"),
        ("1 quarter", "22007"),
        ("1 day 1 day", "22007"),
        ("ago 1 day", "22007"),
        ("P", "22007"),
        ("P1S", "22007"),
        ("1 day -", "22007"),
        ("99999999999 years", "22015"),
        ("1-12", "22015"),
        ("1:60", "22015"),
        ("178956970 years 8 mons", "22008"),
        ("infinity", "0A000"),
        ("-Infinity", "0A000"),
        ("\N{SUPERSCRIPT ONE} day", "22007"),
    ],
)
def test_what_is_none(text, code):
    with pytest.raises(Error) as raised:
        parse_interval(text)
    assert raised.value.code == code


def test_fields_have_an_order():
    with pytest.raises(Error, match="no fields"):
        Qualifier("hour", "day")
    with pytest.raises(InvalidValue, match="between 0 and 6"):
        Qualifier(digits=7)


def test_a_column_has_no_fields():
    with pytest.raises(Error) as raised:
        parse_statement("CREATE TABLE t (i interval year to month)")
    assert raised.value.code == "0A000"
