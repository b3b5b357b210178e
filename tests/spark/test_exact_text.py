"""Exact sums of lists, and that a SELECT gives the digits of a view."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reclock
from reclock.spark.exact_text import adder, exact_text, needs_list
from reclock.sql.types import DOUBLE, INTEGER, REAL, Numeric

LISTS = st.lists(
    st.none() | st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=6), max_size=5
)


@given(LISTS)
def test_sums_are_the_nearest_to_the_exact_one(lists):
    read = adder("sum", DOUBLE, DOUBLE)(pa.array(lists, pa.list_(pa.float64()))).to_pylist()
    for given_, got in zip(lists, read, strict=True):
        if not given_:
            assert got is None
            continue
        try:
            expected = math.fsum(given_)
        except OverflowError:
            continue  # an intermediate sum of fsum overflows, ours does not
        assert got == expected


def test_which_aggregates_are_added_up_here():
    assert needs_list("sum", DOUBLE, exact=True)
    assert needs_list("stddev_pop", DOUBLE, exact=True)
    assert not needs_list("sum", REAL, exact=False)
    assert not needs_list("max", DOUBLE, exact=True)
    assert not needs_list("avg", INTEGER, exact=True)
    assert needs_list("avg", Numeric(38, 2), exact=True)
    assert not needs_list("avg", Numeric(38, 2), exact=False)
    assert not needs_list("avg", Numeric(12, 2), exact=True)
    assert exact_text("sum", REAL, REAL, "x") == "reclock_exact_sum__real__real(x)"


@pytest.mark.spark
def test_a_query_has_the_digits_of_the_view(tmp_path):
    query = (
        "SELECT k, sum(f) AS s, avg(f) AS a, stddev(f) AS d, sum(r) AS r, avg(n) AS n,"
        " sum(f) FILTER (WHERE f > 0) AS p, sum(DISTINCT f) AS u FROM t GROUP BY k"
    )
    floats = [0.1, 0.2, 0.3, 1e16, -1e16, 1e300, -1e300, 0.7]
    big = Decimal(10**30)  # no average, but the sum of one and its opposite has
    with reclock.open(tmp_path, clock=reclock.ManualClock(1_000), background=False) as db:
        db.execute("CREATE TABLE t (k INT, f DOUBLE PRECISION, r REAL, n NUMERIC(36, 2))")
        db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        for at, value in enumerate(floats):
            real = struct.unpack("f", struct.pack("f", value % 7))[0]
            row = (at % 2, value, real, [big, Decimal(1), -big, Decimal(2)][at // 2])
            db.execute("INSERT INTO t VALUES ($1, $2, $3, $4)", row)
        db.execute("INSERT INTO t VALUES (2, NULL, NULL, NULL)")
        once = sorted(db.execute(query).rows)
        assert once == sorted(db.execute("SELECT * FROM v").rows)
        assert once[1][5] == Decimal(3) / 4
        assert once[2][1:] == (None,) * 7
