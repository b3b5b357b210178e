"""Arranging by a key, and back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.deltas import delta_of, log_of
from model.consolidate import consolidate
from reclock.dataflow import delta as deltas
from reclock.dataflow.keying import Keying
from reclock.errors import InvalidValue
from strategies.changes import Log, rows, small_ints, small_texts, update_logs

TYPES = (pa.int64(), pa.float64(), pa.string())
floats = st.sampled_from([0.0, -0.0, float("nan"), 1.5, None])
logs = update_logs(rows(small_ints, floats, small_texts))
keys = st.lists(st.integers(0, 2), max_size=4).map(tuple)


@given(logs, keys)
def test_restore_undoes_arrange(log: Log, key: tuple[int, ...]) -> None:
    keying = Keying(TYPES, key)
    arranged = keying.arrange(delta_of(TYPES, log))
    assert arranged.schema == keying.layout.schema
    assert consolidate(log_of(keying.restore(arranged))) == consolidate(log)
    assert len(keying.layout.key) == len(key)
    assert keying.keys(arranged).schema == keying.layout.key_schema


def test_equal_keys_have_equal_hashes_whatever_their_bits() -> None:
    keying = Keying((pa.float64(),), (0,))
    log = [((x,), 1, 1) for x in (0.0, -0.0, float("nan"), -float("nan"))]
    columns = [pa.array([row[0] for row, _, _ in log]), pa.array([1] * 4), pa.array([1] * 4)]
    hashes = keying.arrange(deltas.build(columns[:1], *columns[1:])).column(0).to_pylist()
    assert hashes[0] == hashes[1] != hashes[2] == hashes[3]


def test_keyings_by_columns_of_one_type_have_one_hash() -> None:
    left = Keying((pa.int64(), pa.string()), (0,))
    right = Keying((pa.string(), pa.int64()), (1,))
    one = left.arrange(deltas.build([pa.array([7]), pa.array(["x"])], pa.array([1]), pa.array([1])))
    two = right.arrange(
        deltas.build([pa.array(["y"]), pa.array([7])], pa.array([1]), pa.array([1]))
    )
    assert one.column(0) == two.column(0)


def test_a_key_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidValue, match="key column 3 of 3 columns"):
        Keying(TYPES, (3,))
