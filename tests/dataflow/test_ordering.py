"""Ranks and orders against Python's sort by the model's sort keys."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.change.value import sort_key
from reclock.dataflow.ordering import OrderBy, order_of, ranks

COLUMNS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [3, -1, 0]),
    (pa.float64(), [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1.5]),
    (pa.string(), ["", "a", "é", "😀", "\ufffd", "aa"]),
    (pa.bool_(), [True, False]),
    (pa.decimal128(9, 2), [Decimal("1.10"), Decimal("-3.00")]),
    (pa.timestamp("us"), [datetime(2020, 1, 1), datetime(1969, 1, 1)]),  # noqa: DTZ001 - naive
    (pa.duration("us"), [timedelta(1), timedelta(-1)]),
    (pa.binary(), [b"", b"\xff", b"\x00"]),
    (pa.list_(pa.int64()), [[], [1], [1, None], [2]]),
    (pa.month_day_nano_interval(), [pa.MonthDayNano([1, 0, 0]), pa.MonthDayNano([0, 40, 0])]),
    (pa.null(), [None]),
]


@pytest.mark.parametrize(("kind", "pool"), COLUMNS, ids=[str(kind) for kind, _ in COLUMNS])
@given(st.data())
def test_ranks_sort_as_the_values(kind: pa.DataType, pool: list[Any], data: st.DataObject) -> None:
    values = data.draw(st.lists(st.sampled_from([*pool, None]), max_size=8))
    descending, nulls_first = data.draw(st.booleans()), data.draw(st.booleans())
    made = ranks(pa.array(values, kind), descending=descending, nulls_first=nulls_first)
    there = [i for i, value in enumerate(values) if value is not None]
    absent = [i for i, value in enumerate(values) if value is None]
    ordered = sorted(there, key=lambda i: sort_key(values[i]), reverse=descending)
    expected = absent + ordered if nulls_first else ordered + absent
    assert sorted(range(len(values)), key=made.__getitem__) == expected
    keys = [sort_key(value) for value in values]
    assert all(
        (made[i] == made[j]) == (keys[i] == keys[j])
        for i in range(len(values))
        for j in range(len(values))
    )


def test_the_least_number_is_its_own_rank_without_a_warning() -> None:
    assert ranks(pa.array([2 - 2**63, -(2**63)])).tolist() == [3, 1]


def test_ties_are_broken_by_all_columns() -> None:
    rows = [pa.array(["b", "a", None, "a"]), pa.array([1, 1, 1, 2])]
    first, at = np.array([1, 0, 0, 0, 1]), np.array([1, 0, 1, 2, 3])
    order = order_of(rows, [OrderBy(1, descending=True)], first, at)
    # Of first = 0: rows 0, 1, 2 tie on the second column; a < b < NULL. Of 1: 2 before 1.
    assert order.tolist() == [2, 1, 3, 4, 0]
