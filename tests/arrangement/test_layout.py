from __future__ import annotations

import pyarrow as pa
import pytest

from reclock.arrangement.layout import Layout, diff_of, kh_of, time_of
from reclock.errors import InvalidValue

LAYOUT = Layout.of({"time": pa.string()}, {"kh": pa.float64()})


def table(*columns):
    return pa.Table.from_arrays(list(columns), names=[f"c{i}" for i in range(len(columns))])


def test_columns_are_found_by_place_not_by_name():
    batch = LAYOUT.conform(
        table(pa.array([5]), pa.array(["a"]), pa.array([-0.0]), pa.array([3]), pa.array([1]))
    )
    assert batch.schema.names == ["kh", "time", "kh", "time", "diff"]
    assert (kh_of(batch).tolist(), time_of(batch).tolist(), diff_of(batch).tolist()) == (
        [5],
        [3],
        [1],
    )
    assert LAYOUT.keys(batch)[0].to_pylist() == ["a"]
    assert str(LAYOUT.rows(batch)[1].to_pylist()) == "[0.0]"


def test_chunks_dictionaries_and_no_rows_are_welcome():
    text = pa.chunked_array([["a"], ["b"]]).dictionary_encode()
    numbers = pa.chunked_array([[1], [2]], pa.int32())
    batch = LAYOUT.conform(
        table(numbers, text, pa.array([1.0, None]), pa.array([0, 0]), pa.array([1, 1]))
    )
    assert LAYOUT.keys(batch)[0].to_pylist() == ["a", "b"]
    assert LAYOUT.conform(batch.schema.empty_table()).num_rows == 0


def test_a_null_time_is_refused():
    columns = table(pa.array([5]), pa.array(["a"]), pa.array([0.0]), pa.nulls(1), pa.array([1]))
    with pytest.raises(InvalidValue, match='column "time" has NULL in 1 updates'):
        LAYOUT.conform(columns)


def test_missing_columns_are_refused():
    with pytest.raises(InvalidValue, match="expected 5 columns, got 1"):
        LAYOUT.conform(table(pa.array([5])))


def test_a_type_without_equality_is_refused():
    with pytest.raises(InvalidValue, match='column "x" of type string_view') as error:
        Layout.of({"x": pa.string_view()}, {})
    assert error.value.code == "0A000"
