"""What Arrow reads is what is read one by one, and what it does not is left to that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.dataflow.values import from_python
from reclock.errors import Error
from reclock.rows.plain_values import plain_values
from reclock.sql import types as t
from reclock.sql.zone import in_zone

if TYPE_CHECKING:
    from reclock.sql.types import Type

KINDS = [
    t.SMALLINT, t.INTEGER, t.BIGINT, t.DOUBLE, t.Numeric(12, 2), t.Numeric(38, 0), t.Numeric(5, 5),
    t.BOOLEAN, t.DATE, t.TIMESTAMP, t.TIMESTAMPTZ,
]  # fmt: skip
ODD = [
    "", " 1", "1 ", "+1", "1_000", "0x10", "1e3", "nan", "NaN", "inf", "-0", "00012", "32768",
    "-32768", "9223372036854775807", "9223372036854775808", "1.005", "1.999", "-0.00", ".5", "5.",
    "12345678901.23", "12345678901234567890123456789012345678", "t", "TRUE", "on", "oui", "1",
    "0", "2", "2026-01-31", "2026-02-30", "2026-13-01", "0000-01-01", "0001-01-01", "9999-12-31",
    "20260131", "2026-1-3", "2026-01-31 12:00", "2026-01-31 12:00:00", "2026-01-31T12:00:00.5",
    "2026-01-31 24:00:00", "2026-01-31 12:00:60", "2026-01-31 12:00:00.1234567",
    "2026-01-31 12:00:00+02", "2026-01-31 12:00:00.25-05:30", "2026-01-31 12:00:00Z",
    "2026-01-31 12:00:00 Europe/Berlin", "0001-01-01 00:00:00+14", "9999-12-31 23:59:59-14",
    "2026-01-31 12:00:00+2500",
]  # fmt: skip
TEXTS = st.sampled_from(ODD) | st.integers(-(2**63), 2**63).map(str) | st.datetimes().map(str)


def one_by_one(texts: list[str | None], kind: Type) -> pa.Array:
    return from_python(texts, kind)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(texts=st.lists(st.none() | TEXTS, max_size=4))
def test_they_agree(kind: Type, texts: list[str | None]) -> None:
    found = plain_values(pa.array(texts, pa.string()), kind)
    if found is not None:
        assert found.equals(one_by_one(texts, kind))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_each_agrees(kind: Type) -> None:
    for text in ODD:
        found = plain_values(pa.array([text], pa.string()), kind)
        if found is not None:
            assert found.equals(one_by_one([text], kind)), text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (t.BIGINT, "-12"), (t.DOUBLE, "0.25"), (t.Numeric(12, 2), "12.3"), (t.BOOLEAN, "t"),
        (t.DATE, "2026-01-31"), (t.TIMESTAMP, "2026-01-31 12:00:00.5"),
        (t.TIMESTAMPTZ, "2026-01-31 12:00:00"), (t.TIMESTAMPTZ, "2026-01-31 12:00:00+02"),
    ],
)  # fmt: skip
def test_plain_ones_are_read_by_arrow(kind: Type, text: str) -> None:
    assert plain_values(pa.array([text, None]), kind) is not None


def test_a_moment_without_an_offset_is_one_of_the_zone() -> None:
    with in_zone("Europe/Berlin"):
        assert plain_values(pa.array(["2026-01-31 12:00:00"]), t.TIMESTAMPTZ) is None


def test_what_is_nothing_is_an_error() -> None:
    with pytest.raises(Error):
        one_by_one(["2026-02-30"], t.DATE)
