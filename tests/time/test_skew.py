"""Skew: wrong units and zones are recognised, and what is right is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.time.skew import suspicion

NOW = 1_763_280_000_000
NOWS = st.integers(1_500_000_000_000, 4_000_000_000_000)
NEAR = st.integers(-60_000, 60_000)


@given(NOWS, NEAR)
def test_units_are_told_apart(now, off):
    time = now + off
    assert suspicion(time // 1_000, now) == "timestamps look like seconds"
    assert suspicion(time * 1_000, now) == "timestamps look like microseconds"
    assert suspicion(time * 1_000_000, now) == "timestamps look like nanoseconds"
    assert suspicion(time, now) is None


@pytest.mark.parametrize(
    ("hours", "text"),
    [(1, "1:00:00 ahead"), (-5, "5:00:00 behind"), (5.75, "5:45:00 ahead"), (14, "14:00:00 ahead")],
)
def test_zones_are_recognised(hours, text):
    time = NOW + int(hours * 3_600_000) - 20_000
    assert suspicion(time, NOW) == f"timestamps look like those of another time zone: {text}"


@pytest.mark.parametrize("ms", [-(86_400_000 * 3), 86_400_000 * 400, 400_000, -400_000])
def test_others_are_not_guessed(ms):
    assert suspicion(NOW + ms, NOW) is None


def test_nothing_is_no_unit():
    assert suspicion(0, 1_000) is None
