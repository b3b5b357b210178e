"""The join against the model at every time, its state in real runs.

Catches a missing or doubled part of dA⋈B + A⋈dB + dA⋈dB, wrong times and products, NULLs
that match, columns out of place, trust in hashes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.deltas import Arranged, cut, delta_of, log_of
from model import join as model
from model.consolidate import consolidate, first_difference
from model.incremental import incrementalise
from reclock.arrangement.store import LocalStore
from reclock.dataflow import delta as deltas
from reclock.dataflow.keying import Keying
from reclock.dataflow.operators.join import Join, product
from reclock.dataflow.trace import DeltaTrace, EmptyTrace
from reclock.errors import InvalidValue
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

LEFT = (pa.int64(), pa.string(), pa.float64())
RIGHT = (pa.string(), pa.float64(), pa.int64())
floats = st.sampled_from([0.0, -0.0, float("nan"), None])
left_logs = update_logs(rows(small_ints, small_texts, floats))
right_logs = update_logs(rows(small_texts, floats, small_ints))
bounds = st.sets(st.integers(1, LAST)).map(lambda cuts: (0, *sorted(cuts), LAST + 1))
keys = st.sampled_from(
    [((0,), (2,)), ((1, 0), (0, 2)), ((2,), (1,)), ((), ()), ((0, 0), (2, 2)), ((2, 1), (1, 0))]
)


@pytest.fixture(params=[None, 1], ids=["hashes", "collisions"], scope="module")
def hashing(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param is not None:
            same = lambda _, size: np.full(size, 7, np.int64)  # noqa: E731 - one line
            patch.setattr("reclock.dataflow.delta.key_hash", same)
            patch.setattr("reclock.dataflow.keying.key_hash", same)
        yield


def run(
    join: Join, a: Log, b: Log, cuts: tuple[int, ...], *, store: LocalStore, compact: Any
) -> Log:
    left, right = (Arranged(side.layout, store) for side in (join.left, join.right))
    out: Log = []
    for one, other in zip(cut(a, cuts), cut(b, cuts), strict=True):
        da, db = delta_of(LEFT, one.updates), delta_of(RIGHT, other.updates)
        made = join.step(da, left.trace, db, right.trace)
        assert deltas.types_of(made) == join.types
        assert all(one.lower <= u.time < one.upper for u in log_of(made))
        out += log_of(made)
        left.append(join.left.arrange(da), one.upper)
        right.append(join.right.arrange(db), one.upper)
        if compact():
            left.compact()
    return out


@pytest.mark.usefixtures("hashing")
@given(a=left_logs, b=right_logs, key=keys, cuts=bounds, data=st.data())
def test_join_is_the_models_at_every_time(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    a: Log,
    b: Log,
    key: tuple[tuple[int, ...], tuple[int, ...]],
    cuts: tuple[int, ...],
    data: st.DataObject,
) -> None:
    join = Join(Keying(LEFT, key[0]), Keying(RIGHT, key[1]))
    batch = partial(model.inner, left_key=model.columns(*key[0]), right_key=model.columns(*key[1]))
    expected = incrementalise(batch)(a, b)
    store = LocalStore(tmp_path_factory.getbasetemp())
    made = run(join, a, b, cuts, store=store, compact=lambda: data.draw(st.booleans()))
    assert first_difference(made, expected, ALL_TIMES) is None
    at_once = run(join, a, b, (0, LAST + 1), store=store, compact=lambda: False)
    assert consolidate(at_once) == consolidate(made) == expected


@pytest.mark.usefixtures("hashing")
@given(
    a=left_logs, b=right_logs, key=keys, cuts=bounds, needed=st.frozensets(st.integers(0, 5)),
    compact=st.booleans(),
)  # fmt: skip
def test_columns_that_are_needed_are_as_if_all_were(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    a: Log,
    b: Log,
    key: tuple[tuple[int, ...], tuple[int, ...]],
    cuts: tuple[int, ...],
    needed: frozenset[int],
    compact: bool,
) -> None:
    whole = Join(Keying(LEFT, key[0]), Keying(RIGHT, key[1]))
    store = LocalStore(tmp_path_factory.getbasetemp())
    found = [
        [u._replace(data=tuple(u.data[i] for i in sorted(needed))) for u in log]
        for join in (whole, replace(whole, needed=needed))
        for log in [run(join, a, b, cuts, store=store, compact=lambda: compact)]
    ]
    assert consolidate(found[0]) == consolidate(found[1])


def test_what_nobody_needs_is_not_gathered() -> None:
    left, right = (Keying((pa.int64(), pa.string(), pa.string()), (0,)) for _ in range(2))
    delta = deltas.build(
        [pa.array([1, 1]), pa.array(["a", "b"]), pa.array(["c", "d"])],
        np.array([3, 3]), np.array([1, 1]),
    )  # fmt: skip
    join = Join(left, right, needed=frozenset({1, 5}))
    for stored in (EmptyTrace(right.layout), DeltaTrace(right.layout, right.arrange(delta))):
        other = delta if isinstance(stored, EmptyTrace) else delta.slice(0, 0)
        made = join.step(delta, EmptyTrace(left.layout), other, stored)
        assert [column.null_count for column in made.columns[:6]] == [0, 0, 4, 0, 4, 0]
        assert made.column(5).to_pylist() == ["c", "d", "c", "d"]


def test_products_never_wrap() -> None:
    assert product(np.array([2**31, -(2**62)]), np.array([-(2**31), 2])).tolist() == [
        -(2**62),
        -(2**63),
    ]
    with pytest.raises(InvalidValue, match="multiplicity of a row is out of range") as caught:
        product(np.array([1, 2**62]), np.array([1, 2]))
    assert caught.value.code == "22003"


def test_a_join_of_multiplicities_out_of_range_is_refused() -> None:
    side = Keying((pa.int64(),), (0,))
    delta = deltas.build([pa.array([1])], np.array([3]), np.array([2**40]))
    trace = EmptyTrace(side.layout)
    with pytest.raises(InvalidValue, match="out of range"):
        Join(side, side).step(delta, trace, delta, trace)


def test_keys_of_different_types_are_refused() -> None:
    with pytest.raises(InvalidValue, match="keys of different types"):
        Join(Keying((pa.int64(),), (0,)), Keying((pa.int32(),), (0,)))
