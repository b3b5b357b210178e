"""Strict casts: what fits is cast as a whole would be, what does not is a fault of its own."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.files.cast import cast


@given(st.lists(st.none() | st.integers(-(2**40), 2**40) | st.integers(-100, 100), max_size=40))
def test_integers_that_fit(values: list[int | None]) -> None:
    made = cast(pa.array(values, pa.int64()), pa.int16())
    assert made is not None
    fits = [value is None or -(2**15) <= value < 2**15 for value in values]
    assert made.values.type == pa.int16()
    assert made.values.to_pylist() == [
        value if fit else None for value, fit in zip(values, fits, strict=True)
    ]
    assert sorted(made.faults) == [at for at, fit in enumerate(fits) if not fit]


@pytest.mark.parametrize(
    ("given_values", "kind", "expected", "bad"),
    [
        (pa.array([1.0, 1.5]), pa.int64(), [1, None], [1]),
        (pa.array(["1", "x", None]), pa.int32(), [1, None, None], [1]),
        (pa.array([b"ok", b"\xff"]), pa.string(), ["ok", None], [1]),
        (pa.array([2**53, 2**53 + 1]), pa.float64(), [2.0**53, None], [1]),
        (pa.array([Decimal("1.5"), Decimal("1.25")]), pa.decimal128(5, 1), [Decimal("1.5"), None],
         [1]),
        (pa.array(["a", "b"]).dictionary_encode(), pa.string(), ["a", "b"], []),
        (pa.array(["a"], pa.large_string()), pa.string(), ["a"], []),
        (pa.array([[1], [None, 2], None], pa.list_(pa.int32())),
         pa.list_(pa.field("element", pa.int64())), [[1], [None, 2], None], []),
        (pa.array([{"a": 1}], pa.struct([("a", pa.int32())])), pa.struct([("a", pa.int64())]),
         [{"a": 1}], []),
        (pa.array([], pa.int32()), pa.int64(), [], []),
    ],
)  # fmt: skip
def test_casts(
    given_values: pa.Array, kind: pa.DataType, expected: list[object], bad: list[int]
) -> None:
    made = cast(given_values, kind)
    assert made is not None
    assert made.values.type == kind
    assert made.values.to_pylist() == expected
    assert sorted(made.faults) == bad


def test_timestamps_keep_their_digits() -> None:
    made = cast(pa.array([1_000, 1_001], pa.timestamp("ns")), pa.timestamp("us"))
    assert made is not None
    assert list(made.faults) == [1]
    made = cast(pa.array([5], pa.timestamp("us", "UTC")), pa.timestamp("us"))
    assert made is not None
    assert made.values.cast(pa.int64()).to_pylist() == [5]


def test_there_is_no_such_cast() -> None:
    assert cast(pa.array([[1]]), pa.int64()) is None


def test_long_values_are_cut() -> None:
    made = cast(pa.array(["x" * 1000]), pa.int64())
    assert made is not None
    assert len(made.faults[0]) < 100
