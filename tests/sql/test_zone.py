"""Names of zones, and local times that are there twice or not at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import InvalidValue
from reclock.sql.zone import here, in_zone, local_text, moment, named, spark_name, tzinfo_of, zone

NAMES = st.sampled_from(
    ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC", "<-07>+07"]
)
MINUTES = st.datetimes(datetime(1970, 1, 1), datetime(2037, 12, 31)).map(  # noqa: DTZ001
    lambda at: at.replace(second=0, microsecond=0)
)


@given(NAMES, MINUTES)
def test_a_moment_is_shown_and_read_back(name: str, at: datetime) -> None:
    """A text has its offset, so it is the same moment again."""
    at = at.replace(tzinfo=UTC)
    text = local_text(at, name)
    assert datetime.fromisoformat(text) == at


@given(NAMES, MINUTES)
def test_a_local_time_is_the_last_moment_that_shows_it(name: str, local: datetime) -> None:
    """If none does, it is counted by the offset before the jump, so it shows something later."""
    at = moment(local, name)
    shown = at.astimezone(tzinfo_of(name)).replace(tzinfo=None)
    assert shown >= local
    if shown == local:
        for minutes in (30, 60, 120):
            later = (at + timedelta(minutes=minutes)).astimezone(tzinfo_of(name))
            assert later.replace(tzinfo=None) != local


@pytest.mark.parametrize(
    ("given", "shown", "java"),
    [
        ("utc", "UTC", "UTC"),
        ("EUROPE/berlin", "Europe/Berlin", "Europe/Berlin"),
        ("2", "<+02>-02", "+02:00"),
        ("-3.5", "<-03:30>+03:30", "-03:30"),
        ("+05:45", "<+05:45>-05:45", "+05:45"),
        ("UTC+3", "UTC+3", "-03:00"),
        ("<+05:30>-05:30", "<+05:30>-05:30", "+05:30"),
    ],
)
def test_names(given: str, shown: str, java: str) -> None:
    assert named(given) == shown
    assert spark_name(shown) == java


@pytest.mark.parametrize("given", ["", "nowhere", "Factory", "localtime", "25", "UTC+24", "../x"])
def test_what_is_no_name(given: str) -> None:
    with pytest.raises(InvalidValue):
        named(given)


def test_work_that_is_done_later_is_done_in_the_zone_of_its_time() -> None:
    with in_zone("Europe/Berlin"):
        later = here(zone)
    assert (zone(), later(), zone()) == ("UTC", "Europe/Berlin", "UTC")
