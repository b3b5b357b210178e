"""The tournament against the model, and that it looks at few rows however large the group."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from graphs.deltas import Arranged, cut, delta_of, log_of
from model import topk as model
from model.consolidate import first_difference
from model.incremental import incrementalise
from model.join import columns
from reclock.arrangement.store import LocalStore
from reclock.dataflow import delta as deltas
from reclock.dataflow.operators.minmax import FAN_IN, Stage, bucketed, tournament
from reclock.dataflow.ordering import OrderBy
from strategies.changes import ALL_TIMES, LAST, Log, multiset_logs, rows, small_ints

if TYPE_CHECKING:
    import pytest

TYPES = (pa.int64(), pa.float64())
floats = st.sampled_from([0.0, -0.0, float("nan"), 2.5, 7.0, -1.0])
logs = multiset_logs(rows(small_ints, floats))
bounds = st.sets(st.integers(1, LAST)).map(lambda cuts: (0, *sorted(cuts), LAST + 1))


class Chain:
    """Stages with their states, run as the graph does; counts the rows they look at."""

    def __init__(self, stages: tuple[Stage, ...], store: LocalStore) -> None:
        self.stages = stages
        self.states = [Arranged(stage.keying.layout, store) for stage in stages]
        self.looked = 0

    def step(self, delta: pa.RecordBatch, upper: int) -> pa.RecordBatch:
        delta = bucketed(delta, self.stages[0].bits)
        for stage, state in zip(self.stages, self.states, strict=True):
            trace = state.trace
            self.looked += trace.lookup(stage.keying.keys(stage.keying.arrange(delta))).probe.size
            made = stage.step(delta, trace)
            state.append(stage.keying.arrange(delta), upper)
            delta = made
        return delta


@given(
    log=logs,
    descending=st.booleans(),
    places=st.tuples(st.integers(1, 2), st.integers(0, 2)),
    bits=st.sets(st.integers(1, 12)).map(lambda some: (*sorted(some, reverse=True), 0)),
    cuts=bounds,
)
def test_the_tournament_is_top_k_at_every_time(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    log: Log,
    descending: bool,
    places: tuple[int, int],
    bits: tuple[int, ...],
    cuts: tuple[int, ...],
) -> None:
    limit, offset = places
    order = (OrderBy(1, descending, nulls_first=descending),)
    stages = tournament(TYPES, (0,), order, limit, offset=offset, bits=bits)
    chain = Chain(stages, LocalStore(tmp_path_factory.getbasetemp()))
    out: Log = []
    for tick in cut(log, cuts):
        made = chain.step(delta_of(TYPES, tick.updates), tick.upper)
        assert deltas.types_of(made) == TYPES
        out += log_of(made)
    by = (model.Order(1, descending),)
    batch = partial(model.top_k, key=columns(0), order=by, limit=limit, offset=offset)
    assert first_difference(out, incrementalise(batch)(log), ALL_TIMES) is None


def one(value: float, time: int, diff: int) -> pa.RecordBatch:
    columns: list[Any] = [pa.array([1]), pa.array([value])]
    return deltas.build(columns, np.array([time]), np.array([diff]))


def test_a_change_of_the_minimum_looks_at_few_rows_of_a_large_group(tmp_path: Any) -> None:
    size, bits = 40_000, (12, 8, 4, 0)
    values = np.random.default_rng(5).permutation(size).astype(np.float64)
    stages = tournament(TYPES, (0,), (OrderBy(1),), 1, bits=bits)
    chain = Chain(stages, LocalStore(tmp_path))
    first = deltas.build(
        [pa.array(np.ones(size, np.int64)), pa.array(values)],
        np.zeros(size, np.int64),
        np.ones(size, np.int64),
    )
    assert log_of(chain.step(first, 1))[0].data == (1, 0.0)
    chain.looked = 0
    removed = {u.data[1]: u.diff for u in log_of(chain.step(one(0.0, 1, -1), 2))}
    assert removed == {0.0: -1, 1.0: 1}
    # 40,000 rows in 4,096 buckets, of which one; then sixteen a level, twice for −old +new.
    assert chain.looked <= 40 + 2 * FAN_IN * len(bits)
    chain.looked = 0
    assert chain.step(one(5.5, 2, 1), 3).num_rows == 0
    assert chain.looked <= 40 + 2 * FAN_IN * len(bits)
