"""The text of floats, against PostgreSQL's own and against itself."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.errors import StatementError
from reclock.sql.float_text import float_text, nearest, read_float
from reclock.sql.types import DOUBLE, REAL

WRITTEN = [
    (DOUBLE, 0.0, "0"),
    (DOUBLE, -0.0, "-0"),
    (DOUBLE, 0.1, "0.1"),
    (DOUBLE, 1e14, "100000000000000"),
    (DOUBLE, 1e15, "1e+15"),
    (DOUBLE, 123456789012345.6, "123456789012345.6"),
    (DOUBLE, 0.0001, "0.0001"),
    (DOUBLE, 0.00001, "1e-05"),
    (DOUBLE, 1.2345678901234567e-4, "0.00012345678901234567"),
    (DOUBLE, 1.2e22, "1.2e+22"),
    (DOUBLE, 1e23, "9.999999999999999e+22"),
    (DOUBLE, 18014398509481990.0, "1.8014398509481992e+16"),
    (DOUBLE, 5e-324, "5e-324"),
    (DOUBLE, 1.7976931348623157e308, "1.7976931348623157e+308"),
    (DOUBLE, 1e100, "1e+100"),
    (DOUBLE, math.inf, "Infinity"),
    (DOUBLE, -math.inf, "-Infinity"),
    (DOUBLE, math.nan, "NaN"),
    (REAL, 0.1, "0.1"),
    (REAL, 123456.0, "123456"),
    (REAL, 1234567.0, "1.234567e+06"),
    (REAL, 1e-45, "1e-45"),
    (REAL, 33554430.0, "3.355443e+07"),
    (REAL, 16777216.0, "1.6777216e+07"),
    (REAL, 0.000244140625, "0.00024414062"),
    (REAL, 3.4028235e38, "3.4028235e+38"),
]


@pytest.mark.parametrize(("kind", "value", "text"), WRITTEN, ids=[w[2] for w in WRITTEN])
def test_text_is_postgresql_s(kind: object, value: float, text: str) -> None:
    assert float_text(value, kind) == text  # type: ignore[arg-type]


@given(st.floats())
def test_a_double_reads_back(value: float) -> None:
    read = read_float(float_text(value, DOUBLE), DOUBLE)
    assert repr(read) == repr(value)


@given(st.floats(width=32))
def test_a_real_reads_back(value: float) -> None:
    read = read_float(float_text(value, REAL), REAL)
    assert repr(read) == repr(value)


@pytest.mark.parametrize("text", ["1e400", "-1e400", "1e-400", "1e999999999999", "2e-324"])
def test_what_no_double_is_is_out_of_range(text: str) -> None:
    with pytest.raises(StatementError, match="is out of range for type double precision") as raised:
        read_float(text, DOUBLE)
    assert raised.value.code == "22003"


@pytest.mark.parametrize("text", ["1e39", "3.4028236e38", "7e-46"])
def test_what_no_real_is_is_out_of_range(text: str) -> None:
    with pytest.raises(StatementError, match="is out of range for type real") as raised:
        read_float(text, REAL)
    assert raised.value.code == "22003"


@pytest.mark.parametrize(
    "text", ["", "1e", "1_0", "\uff11", "1d", "0x", "infinit", "+-1", "\u00a01"]
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(StatementError) as raised:
        read_float(text, DOUBLE)
    assert raised.value.code == "22P02"


def test_a_real_is_rounded_once() -> None:
    assert read_float("16777217.0000000000000001", REAL) == 16777218.0
    assert read_float("3.4028235677973366e38", REAL) == pytest.approx(3.4028235e38)
    assert nearest(Decimal("0.1"), REAL) != 0.1
