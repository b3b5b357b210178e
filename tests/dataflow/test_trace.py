"""Traces: a shard, a delta and nothing answer look-ups alike, with colliding hashes too."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.deltas import Arranged, delta_of
from reclock.arrangement.store import LocalStore
from reclock.change.value import canonical
from reclock.dataflow import delta as deltas
from reclock.dataflow.keying import Keying
from reclock.dataflow.trace import DeltaTrace, EmptyTrace
from strategies.changes import LAST, Log, rows, small_ints, update_logs

if TYPE_CHECKING:
    from collections.abc import Iterator

TYPES = (pa.int64(), pa.float64())
floats = st.sampled_from([0.0, -0.0, float("nan"), None])
logs = update_logs(rows(small_ints, floats))
KEYING = Keying(TYPES, (1, 0))


@pytest.fixture(params=[None, 1, 2], scope="module")
def hashing(request: pytest.FixtureRequest) -> Iterator[None]:
    """Good hashes, all the same, and two of them."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param is not None:
            good = deltas.key_hash
            patch.setattr(deltas, "key_hash", lambda c, n: good(c, n) % request.param)
            patch.setattr("reclock.dataflow.keying.key_hash", deltas.key_hash)
        yield


def answers(trace: Any, keys: pa.RecordBatch) -> Counter[Any]:
    probe, updates = trace.lookup(keys)
    found: Counter[Any] = Counter()
    for at, *row, time, diff in zip(
        probe.tolist(), *(c.to_pylist() for c in updates.columns[1:]), strict=True
    ):
        found[at, canonical(tuple(row)), time] += diff
    return Counter({k: n for k, n in found.items() if n})


@pytest.mark.usefixtures("hashing")
@given(logs, logs)
def test_look_ups_find_the_updates_of_equal_keys(
    tmp_path_factory: pytest.TempPathFactory, log: Log, asked: Log
) -> None:
    stored = KEYING.arrange(delta_of(TYPES, log))
    arranged = Arranged(KEYING.layout, LocalStore(tmp_path_factory.getbasetemp()))
    arranged.append(stored, LAST + 1)
    keys = KEYING.keys(KEYING.arrange(delta_of(TYPES, asked)))
    expected: Counter[Any] = Counter()
    for i, ask in enumerate(asked):
        for u in log:
            if canonical(u.data) == canonical(ask.data):
                expected[i, canonical((u.data[1], u.data[0])), u.time] += u.diff
    expected = Counter({k: n for k, n in expected.items() if n})
    assert answers(DeltaTrace(KEYING.layout, stored), keys) == expected
    assert answers(arranged.trace, keys) == expected
    assert answers(EmptyTrace(KEYING.layout), keys) == Counter()


def test_without_key_columns_everything_is_found() -> None:
    keying = Keying((pa.int64(),), ())
    delta = deltas.build([pa.array([5, 6])], np.array([1, 2]), np.array([1, 1]))
    arranged = keying.arrange(delta)
    probe, updates = DeltaTrace(keying.layout, arranged).lookup(keying.keys(arranged))
    assert probe.tolist() == [0, 0, 1, 1]
    assert updates.column(1).to_pylist() == [5, 6, 5, 6]
