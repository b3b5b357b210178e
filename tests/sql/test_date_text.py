"""Texts of dates and times: what rounds, and what is none."""

from __future__ import annotations

from datetime import timedelta
from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reclock.errors import InvalidValue
from reclock.sql.plan.date_text import read_date, read_timestamp, read_timestamptz


@given(st.text("0123456789", min_size=1, max_size=14))
@example("1234565")
@example("1234575")
@example("12345650")
@example("12345651")
@example("9999999")
def test_a_fraction_is_rounded_to_microseconds(digits: str) -> None:
    exact = Decimal(f"0.{digits}").quantize(Decimal("0.000001"), rounding=ROUND_HALF_EVEN)
    begin = read_timestamp("2026-01-31 23:59:59")
    wanted = begin + timedelta(microseconds=int(exact.scaleb(6)))
    for zone in ("", "+00", "Z"):
        text = f"2026-01-31 23:59:59.{digits}{zone}"
        assert read_timestamp(text) == wanted
        assert read_timestamptz(text).replace(tzinfo=None) == wanted
        assert read_date(text) == begin.date()


@pytest.mark.parametrize(
    "text", ["2024-W01-1", "2024-1-5", "٢٠٢٤-01-01", "2024-01-01x", "2024", ""]
)
def test_what_is_no_date_is_refused(text: str) -> None:
    for read in (read_date, read_timestamp, read_timestamptz):
        with pytest.raises((ValueError, InvalidValue)):
            read(text)
