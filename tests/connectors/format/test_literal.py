"""Text as values: what PostgreSQL's input functions take, and nothing more."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.format.decoder import Fault
from reclock.connectors.format.literal import reader_of
from reclock.sql import types as t

HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (t.BIGINT, " +0042\n", 42),
        (t.BIGINT, "-" + "0" * 5000 + "7", -7),
        (t.Numeric(4, 1), "2.25", Decimal("2.3")),
        (t.Numeric(4, 1), "-.05", Decimal("-0.1")),
        (t.Numeric(4, 1), "1e2", Decimal("100.0")),
        (t.DOUBLE, "-inf", float("-inf")),
        (t.DOUBLE, "1e-400", 0.0),
        (t.BOOLEAN, " Yes ", True),
        (t.BOOLEAN, "of", False),
        (t.DATE, "1970-01-02", 1),
        (t.TIMESTAMP, "1970-01-01 01:00+05", HOUR),
        (t.TIMESTAMPTZ, "1970-01-01 01:00-0130", 5 * HOUR // 2),
        (t.TIMESTAMPTZ, "1970-01-01T01:00:00.0000005Z", HOUR + 1),
        (t.TIMESTAMPTZ, "1970-01-01T01", HOUR),
        (t.TIMESTAMP, "1969-12-31", -24 * HOUR),
        (t.INTERVAL, "-1 day 02:00", {"days": -1, "micros": 2 * HOUR, "months": 0}),
        (t.INTERVAL, "P1Y2M", {"days": 0, "micros": 0, "months": 14}),
        (t.BYTEA, "\\xDEad", b"\xde\xad"),
        (t.BYTEA, "a\\\\b\\001", b"a\\b\x01"),
        (t.JSON, ' {"a":1} ', '{"a": 1}'),
        (t.TEXT, " a ", " a "),
        (t.Array(t.INTEGER), " { 1 , null,3} ", [1, None, 3]),
        (t.Array(t.INTEGER), "{}", []),
        (t.Array(t.TEXT), '{a b, "NULL", "x\\"y", "", c\\,d}', ["a b", "NULL", 'x"y', "", "c,d"]),
        (t.Array(t.Array(t.TEXT)), '{{"}"},{},NULL}', [["}"], [], None]),
    ],
)
def test_values(kind: t.Type, text: str, expected: object) -> None:
    assert reader_of(kind)(text) == expected


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (t.BIGINT, ["", "+", "1.0", "1e2", "0x10", "1_0", "٣", "1 2", "9223372036854775808"]),
        (t.SMALLINT, ["32768", "-32769"]),
        (t.Numeric(4, 1), ["", ".", "NaN", "999.95", "1000", "1e", "1_0", "0x1", "1e999999999"]),
        (t.DOUBLE, ["", "1e309", "nano", "0x1p3", "1_0", "+nan"]),
        (t.REAL, ["1e39"]),
        (t.BOOLEAN, ["", "2", "o", "yep"]),
        (t.DATE, ["", "2026-1-1", "20260101", "2026-02-29", "0000-01-01", "2026-01-01 00:00"]),
        (t.TIMESTAMP, ["2026-01-01T24:00", "2026-01-01T00:60", "2026-01-01T00:00:60", "now"]),
        (t.TIMESTAMP, ["2026-01-01T00:00:00.", "2026-02-30 00:00", "2026-01-01T00:00+24"]),
        (t.TIMESTAMP, ["9999-12-31T23:59:59.9999995"]),
        (t.TIMESTAMPTZ, ["0001-01-01T00:00+00:01", "9999-12-31T23:59:59-01"]),
        (t.INTERVAL, ["", "x", "1 parsec", "infinity", "9999999999 years", "9" * 400 + " days"]),
        (t.BYTEA, ["\\x0", "\\", "a\\9", "\\400"]),
        (t.JSON, ["", "{", "NaN", '"\\ud800"']),
        (t.Array(t.INTEGER), ["", "1", "{", "{1", "{1,}", "{,1}", "{x}", "{{1}}", '{"1"2}']),
        (t.Array(t.TEXT), ['{"a}', "{a,,b}", "{a{b}"]),
    ],
)
def test_faults(kind: t.Type, texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(Fault):
            reader_of(kind)(text)


@pytest.mark.parametrize("kind", [t.BIGINT, t.Numeric(4, 1), t.DOUBLE, t.Array(t.BIGINT)])
@pytest.mark.parametrize(
    "text", ["9" * 100_000, "1e" + "9" * 1000, "{" * 100_000, "1" + " " * 10_000]
)
def test_hostile_text_is_refused_at_once(kind: t.Type, text: str) -> None:
    start = time.perf_counter()
    with suppress(Fault):
        reader_of(kind)(text)
    assert time.perf_counter() - start < 5


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_bigint(number: int) -> None:
    assert reader_of(t.BIGINT)(str(number)) == number


@given(st.decimals(-(10**29), 10**29, places=9, allow_nan=False).filter(lambda d: abs(d) < 10**29))
def test_every_numeric(number: Decimal) -> None:
    assert reader_of(t.Numeric())(f"{number:f}") == number


@given(st.datetimes())
def test_every_timestamp(moment: datetime) -> None:
    expected = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)  # noqa: DTZ001
    assert reader_of(t.TIMESTAMP)(str(moment)) == expected
