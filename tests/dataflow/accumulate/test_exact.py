"""Exact arrays against Python's integers and fractions."""

from __future__ import annotations

from decimal import localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from reclock.dataflow.operators.accumulate.exact import (
    Exact,
    decimal_array,
    decimal_units,
    joined,
    running_totals,
    segment_sums,
    to_floats,
)

integers = st.integers(-3, 3) | st.sampled_from([2**61, 2**62, -(2**62), 2**63 - 1, -(2**63)])
longs = integers | st.integers(-(2**126), 2**126)
exponents = st.integers(-70, 70)


def units(values: list[int]) -> Any:
    fits = all(-(2**63) <= v < 2**63 for v in values)
    return np.array(values, np.int64 if fits else object)


def fractions(numbers: Exact) -> list[Fraction]:
    return [Fraction(u) * Fraction(2) ** numbers.exponent for u in numbers.units.tolist()]


@given(st.lists(st.tuples(longs, longs), max_size=4), exponents, exponents)
def test_addition_is_exact(pairs: list[tuple[int, int]], e: int, f: int) -> None:
    a, b = Exact(units([x for x, _ in pairs]), e), Exact(units([y for _, y in pairs]), f)
    xs, ys = fractions(a), fractions(b)
    assert fractions(a + b) == [x + y for x, y in zip(xs, ys, strict=True)]
    assert fractions(joined(a, b)) == xs + ys
    assert a.is_zero().tolist() == [x == 0 for x in xs]


@given(st.lists(st.tuples(longs, integers, st.booleans()), min_size=1, max_size=8))
@example([(2**63 - 1, 2**63 - 1, True), (1, 1, True)])
@example([(-(2**63), 3, True), (-(2**63), 3, False)])
def test_segment_sums_are_exact(rows: list[tuple[int, int, bool]]) -> None:
    starts = [i for i, (_, _, new) in enumerate(rows) if new or i == 0]
    made = segment_sums(
        units([v for v, _, _ in rows]),
        np.array([w for _, w, _ in rows], np.int64),
        np.array(starts, np.int64),
    )
    ends = [*starts[1:], len(rows)]
    expected = [sum(v * w for v, w, _ in rows[a:b]) for a, b in zip(starts, ends, strict=True)]
    assert made.tolist() == expected


@given(
    st.lists(st.tuples(longs, st.lists(longs, min_size=1, max_size=3)), min_size=1, max_size=3),
    exponents,
    exponents,
)
def test_running_totals_are_exact(groups: list[tuple[int, list[int]]], e: int, f: int) -> None:
    base = Exact(units([b for b, _ in groups]), e)
    sums = Exact(units([s for _, some in groups for s in some]), f)
    sizes = [len(some) for _, some in groups]
    starts = np.cumsum(sizes) - sizes
    expected = []
    for (_, some), before in zip(groups, fractions(base), strict=True):
        total = before
        for s in some:
            total += Fraction(s) * Fraction(2) ** f
            expected.append(total)
    assert fractions(running_totals(sums, starts, base)) == expected


@given(st.lists(longs | st.none(), max_size=5), st.integers(0, 2))
def test_decimals_to_units_and_back(values: list[int | None], skipped: int) -> None:
    kind = pa.decimal128(38, 3)
    there = [0 if v is None else v % 10**37 - 10**36 for v in values]
    valid = np.array([v is not None for v in values], np.bool_)
    column = decimal_array(units(there), kind, valid)
    column.validate(full=True)
    with localcontext(prec=60):
        expected = [int(v.scaleb(3)) if v is not None else 0 for v in column.to_pylist()]
    assert expected == [n if v is not None else 0 for n, v in zip(there, values, strict=True)]
    assert decimal_units(column[skipped:]).tolist() == expected[skipped:]


@given(st.lists(longs, min_size=1, max_size=4), st.integers(-1200, 1000))
@example([1, 3, 2**53 + 1], -1075)
@example([2**53 - 1, 2**54 - 1], 971)
@example([2**2000], -2000)
@example([(1 << 60) + 1], -1130)
def test_floats_are_the_nearest(values: list[int], exponent: int) -> None:
    numbers = Exact(units(values), exponent)
    for made, exact in zip(to_floats(numbers).tolist(), fractions(numbers), strict=True):
        try:
            expected = float(exact)
        except OverflowError:
            expected = float("inf") if exact > 0 else float("-inf")
        assert made == expected
