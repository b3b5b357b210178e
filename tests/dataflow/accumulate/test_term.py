"""Terms against fractions: every double, any weight; storage keeps numbers and one form."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.dataflow.operators.accumulate.exact import Exact
from reclock.dataflow.operators.accumulate.term import Count, Dyadic, Term, What, Whole
from reclock.errors import InvalidValue

doubles = st.none() | st.floats() | st.sampled_from([5e-324, 1e300, -1e300, 0.1, -0.0])
weights = st.integers(-3, 3) | st.sampled_from([2**40, -(2**62)])
rows = st.lists(st.tuples(doubles, weights, st.booleans()), min_size=1, max_size=10)


def fractions(numbers: Exact) -> list[Fraction]:
    return [Fraction(u) * Fraction(2) ** numbers.exponent for u in numbers.units.tolist()]


def segments(some: list[Any]) -> list[int]:
    return [i for i, row in enumerate(some) if row[2] or i == 0]


def stored_and_back(term: Term, totals: Exact) -> None:
    column = term.store(totals)
    assert column.type == term.storage
    assert fractions(term.load(column)) == fractions(totals)
    finer = Exact(totals.units.astype(object) << 5, totals.exponent - 5)
    if term.storage == pa.binary():
        assert term.store(finer) == column, "equal numbers are equal bytes"


@pytest.mark.parametrize("power", [1, 2])
@given(some=rows, kind=st.sampled_from([pa.float64(), pa.float32()]))
def test_sums_of_floats_are_exact(some: list[Any], power: int, kind: pa.DataType) -> None:
    column = pa.array(np.array([np.nan if x is None else x for x, _, _ in some]), pa.float64())
    with np.errstate(over="ignore"):
        numbers = column.to_numpy().astype(kind.to_pandas_dtype())
    column = pa.array(numbers, kind, mask=np.array([x is None for x, _, _ in some]))
    diff = np.array([w for _, w, _ in some], np.int64)
    starts = segments(some)
    term = Dyadic(0, power)
    totals = term.sums([column], diff, np.array(starts))
    values = [0.0 if x is None or not math.isfinite(x) else x for x in column.to_pylist()]
    ends = [*starts[1:], len(some)]
    expected = [
        sum(
            (Fraction(x) ** power * w for x, (_, w, _) in zip(values[a:b], some[a:b], strict=True)),
            Fraction(0),
        )
        for a, b in zip(starts, ends, strict=True)
    ]
    assert fractions(totals) == expected
    stored_and_back(term, totals)


@given(some=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_ordinary_floats_leave_nothing_when_taken_back(some: list[float]) -> None:
    column = pa.array(some + some[::-1])
    diff = np.repeat([1, -1], len(some))
    assert fractions(Dyadic(0).sums([column], diff, np.array([0]))) == [0]


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize(
    "kind",
    [pa.int16(), pa.int64(), pa.decimal128(9, 2), pa.decimal128(19, 0), pa.decimal128(38, 9)],
)
@given(data=st.data())
def test_sums_of_whole_numbers_are_exact(data: st.DataObject, kind: Any, power: int) -> None:
    scale, size = 0, 2**15 - 1 if kind == pa.int16() else 2**63 - 1
    if pa.types.is_decimal(kind):
        scale, size = kind.scale, 10**kind.precision - 1
    numbers = st.none() | st.integers(-size, size) | st.sampled_from([size, -size, 1])
    some = data.draw(st.lists(st.tuples(numbers, weights, st.booleans()), min_size=1, max_size=8))
    with localcontext(prec=60):
        values = [x if x is None or not scale else Decimal(x).scaleb(-scale) for x, _, _ in some]
    starts = segments(some)
    term = Whole(0, kind, power)
    diff = np.array([w for _, w, _ in some], np.int64)
    totals = term.sums([pa.array(values, kind)], diff, np.array(starts))
    ends = [*starts[1:], len(some)]
    assert totals.units.tolist() == [
        sum((x or 0) ** power * w for x, w, _ in some[a:b])
        for a, b in zip(starts, ends, strict=True)
    ]
    stored_and_back(term, totals)


@given(st.lists(st.tuples(doubles, weights, st.sampled_from([True, False, None])), min_size=1))
def test_counts_count_what_qualifies(some: list[Any]) -> None:
    columns = [pa.array([x for x, _, _ in some], pa.float64()), pa.array([f for *_, f in some])]
    columns[1] = columns[1].cast(pa.bool_())
    diff = np.array([w for _, w, _ in some], np.int64)
    tests: dict[Count, Any] = {
        Count(): lambda _: True,
        Count(What.PRESENT, 0): lambda x: x is not None,
        Count(What.NAN, 0): lambda x: x is not None and math.isnan(x),
        Count(What.POSITIVE_INFINITY, 0): lambda x: x == math.inf,
        Count(What.NEGATIVE_INFINITY, 0): lambda x: x == -math.inf,
    }
    for term, holds in tests.items():
        made = term.sums(columns, diff, np.array([0]))
        assert made.units.tolist() == [sum(w for x, w, _ in some if holds(x))]
        filtered = Count(term.what, term.column, 1).sums(columns, diff, np.array([0]))
        assert filtered.units.tolist() == [sum(w for x, w, f in some if f and holds(x))]
    true = Count(What.TRUE, 1).sums(columns, diff, np.array([0]))
    assert true.units.tolist() == [sum(w for _, w, f in some if f)]


def test_a_count_beyond_int64_is_refused() -> None:
    assert Count().store(Exact(np.array([2**63 - 1], object))).to_pylist() == [2**63 - 1]
    with pytest.raises(InvalidValue, match="out of range"):
        Count().store(Exact(np.array([2**63], object)))
