"""Snapshots and differences: a group function that the model computes at every time."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.deltas import Arranged, cut, delta_of, log_of
from model.consolidate import accumulate, consolidate, first_difference
from model.incremental import incrementalise
from model.join import columns
from model.reduce import reduce
from reclock.arrangement.store import LocalStore
from reclock.change.update import Update
from reclock.change.value import canonical, sort_key
from reclock.dataflow.keying import Keying
from reclock.dataflow.operators.groups import BEFORE, differences, snapshots, tag
from reclock.dataflow.trace import EmptyTrace
from reclock.errors import NegativeCount
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

if TYPE_CHECKING:
    from collections.abc import Iterator

TYPES = (pa.int64(), pa.string(), pa.float64())
floats = st.sampled_from([0.0, -0.0, float("nan"), None])
logs = multiset_logs(rows(small_ints, small_texts, floats))
bounds = st.sets(st.integers(1, LAST)).map(lambda cuts: (0, *sorted(cuts), LAST + 1))
keys = st.sampled_from([(0,), (1, 0), (2,), ()])


@pytest.fixture(params=[None, 1], ids=["hashes", "collisions"], scope="module")
def hashing(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param is not None:
            same = lambda _, size: np.full(size, 7, np.int64)  # noqa: E731 - one line
            patch.setattr("reclock.dataflow.delta.key_hash", same)
            patch.setattr("reclock.dataflow.keying.key_hash", same)
        yield


def listed(texts: list[Any]) -> str:
    """An aggregate that sees every row: their texts in order."""
    return repr(sorted(texts, key=sort_key))


def list_texts(expanded: pa.RecordBatch, key: tuple[int, ...]) -> pa.RecordBatch:
    """Apply the aggregate to every version, as Spark would."""
    groups: defaultdict[Any, list[Any]] = defaultdict(list)
    for row in zip(*(c.to_pylist() for c in expanded.columns), strict=True):
        groups[row[0], canonical(tuple(row[1 + i] for i in key))].append(row[2])
    version = np.array([version for version, _ in groups], np.int64)
    keys = [pa.array([k[i] for _, k in groups], TYPES[c]) for i, c in enumerate(key)]
    texts = pa.array([listed(texts) for texts in groups.values()], pa.string())
    return tag(version, [*keys, texts], np.ones(len(version), np.int64))


@pytest.mark.usefixtures("hashing")
@given(logs, keys, bounds)
def test_any_group_function_is_the_models_at_every_time(
    tmp_path_factory: pytest.TempPathFactory,
    log: Log,
    key: tuple[int, ...],
    cuts: tuple[int, ...],
) -> None:
    keying = Keying(TYPES, key)
    state = Arranged(keying.layout, LocalStore(tmp_path_factory.getbasetemp()))
    out: Log = []
    for tick in cut(log, cuts):
        delta = delta_of(TYPES, tick.updates)
        snaps = snapshots(delta, state.trace, keying)
        out += log_of(differences(snaps, list_texts(snaps.expanded(), key)))
        state.append(keying.arrange(delta), tick.upper)
    batch = partial(
        reduce, key=columns(*key), aggregate=lambda group: (listed([row[1] for row in group]),)
    )
    expected = incrementalise(batch)(log)
    assert first_difference(out, expected, ALL_TIMES) is None
    assert consolidate(out) == expected


@given(logs, keys, bounds)
def test_a_version_holds_the_rows_of_its_group_at_its_time(
    tmp_path_factory: pytest.TempPathFactory,
    log: Log,
    key: tuple[int, ...],
    cuts: tuple[int, ...],
) -> None:
    keying = Keying(TYPES, key)
    state = Arranged(keying.layout, LocalStore(tmp_path_factory.getbasetemp()))
    for tick in cut(log, cuts):
        delta = delta_of(TYPES, tick.updates)
        snaps = snapshots(delta, state.trace, keying)
        held: defaultdict[int, Counter[Any]] = defaultdict(Counter)
        for version, *row, count in zip(
            *(c.to_pylist() for c in snaps.tagged().columns), strict=True
        ):
            assert count > 0
            assert canonical(tuple(row)) not in held[version]
            held[version][canonical(tuple(row))] = count
        changed = {canonical(tuple(u.data[i] for i in key)) for u in tick.updates}
        assert len(set(snaps.group.tolist())) == len(changed)
        for version, (before, time) in enumerate(
            zip(snaps.predecessor.tolist(), snaps.time.tolist(), strict=True)
        ):
            assert before in {BEFORE, version - 1}
            at = tick.lower - 1 if before == BEFORE else time
            contents = accumulate(log, Timestamp(at)) if at >= 0 else Counter()
            names = {canonical(tuple(row[i] for i in key)) for row in held[version]}
            assert len(names) <= 1
            for name in names:
                there = {r: n for r, n in contents.items() if canonical(columns(*key)(r)) == name}
                assert held[version] == there
        state.append(keying.arrange(delta), tick.upper)


def test_more_retractions_than_rows_are_an_error() -> None:
    keying = Keying(TYPES, (0,))
    delta = delta_of(TYPES, [Update((1, "a", None), Timestamp(2), -1)])
    with pytest.raises(NegativeCount) as caught:
        snapshots(delta, EmptyTrace(keying.layout), keying)
    assert caught.value.detail == "(1, 'a', None) occurs -1 times"
