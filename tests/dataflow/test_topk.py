"""Top-k against the model at every time."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.deltas import Arranged, cut, delta_of, log_of
from model import topk as model
from model.consolidate import consolidate, first_difference
from model.incremental import incrementalise
from model.join import columns
from reclock.arrangement.store import LocalStore
from reclock.change.update import Update
from reclock.dataflow.keying import Keying
from reclock.dataflow.operators.topk import TopK
from reclock.dataflow.ordering import OrderBy
from reclock.dataflow.trace import EmptyTrace
from reclock.errors import InvalidValue
from reclock.time.timestamp import Timestamp
from strategies.changes import (
    ALL_TIMES,
    LAST,
    Log,
    multiset_logs,
    rows,
    small_ints,
    small_texts,
)

TYPES = (pa.int64(), pa.string(), pa.float64())
floats = st.sampled_from([0.0, -0.0, float("nan"), float("inf"), None])
logs = multiset_logs(rows(small_ints, small_texts, floats))
bounds = st.sets(st.integers(1, LAST)).map(lambda cuts: (0, *sorted(cuts), LAST + 1))
orders = st.lists(
    st.builds(OrderBy, st.integers(0, 2), st.booleans()), max_size=2, unique_by=lambda o: o.column
).map(tuple)


def run(top: TopK, log: Log, cuts: tuple[int, ...], store: LocalStore) -> Log:
    state = Arranged(top.keying.layout, store)
    out: Log = []
    for tick in cut(log, cuts):
        delta = delta_of(TYPES, tick.updates)
        out += log_of(top.step(delta, state.trace))
        state.append(top.keying.arrange(delta), tick.upper)
    return out


@given(
    log=logs,
    key=st.sampled_from([(0,), (1, 0), ()]),
    order=orders,
    limit=st.integers(0, 3),
    offset=st.integers(0, 2),
    cuts=bounds,
)
def test_top_k_is_the_models_at_every_time(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    log: Log,
    key: tuple[int, ...],
    order: tuple[OrderBy, ...],
    limit: int,
    offset: int,
    cuts: tuple[int, ...],
) -> None:
    usual = tuple(OrderBy(o.column, o.descending, nulls_first=o.descending) for o in order)
    top = TopK(Keying(TYPES, key), usual, limit, offset)
    batch = partial(
        model.top_k,
        key=columns(*key),
        order=tuple(model.Order(o.column, o.descending) for o in order),
        limit=limit,
        offset=offset,
    )
    expected = incrementalise(batch)(log)
    store = LocalStore(tmp_path_factory.getbasetemp())
    made = run(top, log, cuts, store)
    assert first_difference(made, expected, ALL_TIMES) is None
    assert consolidate(made) == consolidate(run(top, log, (0, LAST + 1), store)) == expected


def kept(top: TopK, *numbers: int | None) -> list[tuple[int | None, int]]:
    log = [Update((n,), Timestamp(1), 2) for n in numbers]
    delta = delta_of((pa.int64(),), log)
    made = log_of(top.step(delta, EmptyTrace(top.keying.layout)))
    return sorted(((u.data[0], u.diff) for u in made), key=str)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (OrderBy(0), [(1, 2), (2, 1)]),
        (OrderBy(0, nulls_first=True), [(1, 1), (None, 2)]),
        (OrderBy(0, descending=True), [(1, 1), (2, 2)]),
        (OrderBy(0, descending=True, nulls_first=True), [(2, 1), (None, 2)]),
    ],
)
def test_nulls_are_where_they_are_asked_for(
    order: OrderBy, expected: list[tuple[int | None, int]]
) -> None:
    assert kept(TopK(Keying((pa.int64(),), ()), (order,), 3), 1, 2, None) == expected


def test_no_limit_keeps_all_after_the_offset() -> None:
    top = TopK(Keying((pa.int64(),), ()), (OrderBy(0),), None, 3)
    assert kept(top, 1, 2, 3) == [(2, 1), (3, 2)]


def test_negative_places_are_refused() -> None:
    with pytest.raises(InvalidValue, match="limit -1 offset 0 is negative"):
        TopK(Keying(TYPES, ()), (), -1)
