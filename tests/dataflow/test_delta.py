"""Deltas and the linear operators on them against the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.deltas import delta_of, log_of
from model import linear
from model.consolidate import consolidate
from reclock.change.update import Update, negate
from reclock.dataflow import delta as deltas
from reclock.errors import InvalidValue
from reclock.time.timestamp import Timestamp
from strategies.changes import Log, rows, small_ints, small_texts, update_logs

TYPES = (pa.int64(), pa.float64(), pa.string())
floats = st.sampled_from([0.0, -0.0, float("nan"), 1.5, None])
logs = update_logs(rows(small_ints, floats, small_texts))


@given(logs)
def test_consolidated_is_the_models(log: Log) -> None:
    made = log_of(deltas.consolidated(delta_of(TYPES, log)))
    assert consolidate(made) == consolidate(log)
    assert len(made) == len(consolidate(log))


@given(logs, st.randoms())
def test_consolidated_does_not_depend_on_the_order(log: Log, random: Any) -> None:
    shuffled = random.sample(log, len(log))
    one, other = (deltas.consolidated(delta_of(TYPES, x)) for x in (log, shuffled))
    assert repr(log_of(one)) == repr(log_of(other))


@given(st.lists(logs, min_size=1, max_size=3))
def test_union_is_the_models(several: list[Log]) -> None:
    made = deltas.union([delta_of(TYPES, log) for log in several])
    assert consolidate(log_of(made)) == linear.union(*several)
    assert deltas.types_of(made) == TYPES


@given(logs)
def test_negate_permute_and_mask_are_the_models(log: Log) -> None:
    delta = delta_of(TYPES, log)
    assert consolidate(log_of(deltas.negate(delta))) == consolidate(negate(log))
    swapped = deltas.permute(delta, [2, 0, pa.array([7])])
    assert consolidate(log_of(swapped)) == linear.map_rows(log, lambda r: (r[2], r[0], 7))
    keep = pa.array([None if u.data[0] is None else u.data[0] > 1 for u in log], pa.bool_())
    expected = linear.filter_rows(log, lambda r: r[0] and r[0] > 1)
    assert consolidate(log_of(deltas.mask(delta, keep))) == expected


def test_a_delta_without_columns_counts() -> None:
    delta = deltas.build([], np.array([3, 3, 4]), np.array([1, 2, 5]))
    assert log_of(deltas.consolidated(delta)) == [
        Update((), Timestamp(3), 3),
        Update((), Timestamp(4), 5),
    ]
    assert deltas.empty(()).num_rows == 0


def test_empty_has_the_types() -> None:
    assert deltas.types_of(deltas.empty(TYPES)) == TYPES
    assert deltas.empty(TYPES).schema == delta_of(TYPES, []).schema


def test_the_diff_that_cannot_be_negated_is_refused() -> None:
    delta = deltas.build([], np.array([3]), np.array([-(2**63)]))
    with pytest.raises(InvalidValue, match="multiplicity of a row is out of range") as caught:
        deltas.negate(delta)
    assert caught.value.code == "22003"
