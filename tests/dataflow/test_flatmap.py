"""Exploding lists against the model."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.deltas import delta_of, log_of
from model import linear
from model.consolidate import consolidate
from reclock.dataflow import delta as deltas
from reclock.dataflow.operators.flatmap import explode
from strategies.changes import Log, rows, small_ints, small_texts, update_logs

lists = st.none() | st.lists(st.integers(0, 2) | st.none(), max_size=3)


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.large_list(pa.int64())])
@given(update_logs(rows(small_ints, lists, small_texts)), st.booleans(), st.integers(0, 2))
def test_explode_is_the_models(kind: Any, log: Log, ordinality: bool, skipped: int) -> None:
    types = (pa.int64(), kind, pa.string())

    def elements(row: Any) -> Any:
        for i, element in enumerate(row[1] or (), 1):
            yield (row[0], row[2], element, *([i] if ordinality else []))

    # A slice has an offset into its buffers, which the lists must honour.
    delta = delta_of(types, log[:skipped] + log).slice(min(skipped, len(log)))
    made = explode(delta, 1, ordinality=ordinality)
    assert consolidate(log_of(made)) == linear.flat_map(log, elements)
    expected = (pa.int64(), pa.string(), pa.int64(), *([pa.int64()] if ordinality else []))
    assert deltas.types_of(made) == expected


def test_the_cost_is_that_of_the_rows_that_come_out() -> None:
    """A list is not repeated for each of its elements: that is quadratic."""
    size = 10_000
    columns = [pa.array([1]), pa.array([range(size)], pa.list_(pa.int64()))]
    delta = deltas.build(columns, pa.array([3]), pa.array([1]))
    pool = pa.default_memory_pool()
    before = pool.max_memory()
    assert explode(delta, 1, ordinality=True).num_rows == size
    assert pool.max_memory() - before < 100 * 8 * size
