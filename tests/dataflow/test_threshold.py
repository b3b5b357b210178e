"""distinct and threshold against the model at every time, negative counts included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.deltas import Arranged, cut, delta_of, log_of
from model import sets
from model.consolidate import consolidate, first_difference
from model.incremental import incrementalise
from reclock.arrangement.store import LocalStore
from reclock.dataflow.keying import Keying
from reclock.dataflow.operators import threshold
from strategies.changes import (
    ALL_TIMES,
    LAST,
    Log,
    rows,
    small_ints,
    small_texts,
    update_logs,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

TYPES = (pa.int64(), pa.string(), pa.float64())
floats = st.sampled_from([0.0, -0.0, float("nan"), None])
logs = update_logs(rows(small_ints, small_texts, floats))
bounds = st.sets(st.integers(1, LAST)).map(lambda cuts: (0, *sorted(cuts), LAST + 1))


@pytest.fixture(params=[None, 1], ids=["hashes", "collisions"], scope="module")
def hashing(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param is not None:
            same = lambda _, size: np.full(size, 7, np.int64)  # noqa: E731 - one line
            patch.setattr("reclock.dataflow.delta.key_hash", same)
            patch.setattr("reclock.dataflow.keying.key_hash", same)
        yield


def run(operator: Any, types: Any, log: Log, cuts: tuple[int, ...], store: LocalStore) -> Log:
    keying = Keying.whole_row(types)
    state = Arranged(keying.layout, store)
    out: Log = []
    for tick in cut(log, cuts):
        delta = delta_of(types, tick.updates)
        out += log_of(operator(delta, state.trace))
        state.append(keying.arrange(delta), tick.upper)
    return out


@pytest.mark.usefixtures("hashing")
@pytest.mark.parametrize("name", ["distinct", "threshold"])
@given(logs, bounds)
def test_clamped_counts_are_the_models_at_every_time(
    tmp_path_factory: pytest.TempPathFactory, name: str, log: Log, cuts: tuple[int, ...]
) -> None:
    operator = getattr(threshold, name)
    expected = incrementalise(getattr(sets, name))(log)
    store = LocalStore(tmp_path_factory.getbasetemp())
    made = run(operator, TYPES, log, cuts, store)
    assert first_difference(made, expected, ALL_TIMES) is None
    assert consolidate(run(operator, TYPES, log, (0, LAST + 1), store)) == expected
    assert len(made) == len(expected), "nothing is said that comes to nothing"


@given(update_logs(rows(small_ints).map(lambda _: ())), bounds)
def test_rows_without_columns_are_one_row(
    tmp_path_factory: pytest.TempPathFactory, log: Log, cuts: tuple[int, ...]
) -> None:
    made = run(threshold.distinct, (), log, cuts, LocalStore(tmp_path_factory.getbasetemp()))
    assert made == incrementalise(sets.distinct)(log)
