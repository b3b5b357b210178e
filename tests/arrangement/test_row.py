from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.arrangement.column import canonical as canonical_column
from reclock.arrangement.row import row_bytes, rows_equal
from reclock.change.value import canonical
from strategies.arrangements import TYPES, layouts, rows_of


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=[str(k) for k, _ in TYPES])
def test_rows_are_equal_when_sql_says_so(kind, values):
    pairs = [(a, b) for a in values for b in values]
    left = canonical_column(pa.array([a for a, _ in pairs], kind))
    right = canonical_column(pa.array([b for _, b in pairs], kind))
    expected = [canonical((a,)) == canonical((b,)) for a, b in pairs]
    assert rows_equal([left], [right]).tolist() == expected
    same_bytes = [a == b for a, b in zip(row_bytes([left]), row_bytes([right]), strict=True)]
    assert same_bytes == expected


@given(st.data())
def test_no_two_rows_run_together(data):
    fields = data.draw(layouts().map(lambda layout: (*layout.key, *layout.value)).filter(bool))
    rows = data.draw(st.lists(rows_of(fields), min_size=1, max_size=8))
    columns = [
        canonical_column(pa.array([row[i] for row in rows], field.type))
        for i, field in enumerate(fields)
    ]
    encoded = row_bytes(columns).to_pylist()
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            assert (encoded[i] == encoded[j]) == (canonical(one) == canonical(other))


def test_neighbouring_strings_keep_their_border():
    one = [pa.array(["ab"]), pa.array(["c"])]
    other = [pa.array(["a"]), pa.array(["bc"])]
    assert row_bytes(one) != row_bytes(other)
    assert rows_equal(one, other).tolist() == [False]


def test_rows_without_columns_are_refused():
    with pytest.raises(ValueError, match="without columns"):
        rows_equal([], [])
