from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.arrangement import probe as probing
from reclock.arrangement.cache import RunCache
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import Layout
from reclock.arrangement.probe import probe
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.store import LocalStore
from reclock.change.value import canonical
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp
from strategies.arrangements import (
    changes_in,
    changes_of,
    hashes,
    keys_of,
    layouts,
    rows_of,
    table_of,
)

SPAN = Description(*(Antichain.of(Timestamp(t)) for t in (0, 10, 0)))


def runs_of(store, layout, lists, how, batch_rows):
    with SegmentWriter(store, "t") as writer:
        for changes in lists:
            batch = consolidate(layout, layout.conform(table_of(layout, changes, how)))
            writer.add("op/0", layout, [batch], SPAN, batch_rows=batch_rows)
        refs = writer.finish()
    cache = RunCache()
    return [cache.open(store, ref, layout) for ref in refs]


@given(st.data())
def test_it_finds_exactly_the_updates_of_the_keys(tmp_path_factory, data):
    layout = data.draw(layouts())
    lists = data.draw(st.lists(changes_of(layout), max_size=3))
    how = data.draw(hashes)
    store = LocalStore(tmp_path_factory.mktemp("store"))
    runs = runs_of(store, layout, lists, how, data.draw(st.integers(1, 9)))
    keys = data.draw(st.lists(rows_of(layout.key), max_size=8))

    wanted = data.draw(st.none() | st.frozensets(st.integers(0, len(layout.schema) - 1)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probing, "SMALL_RUN", data.draw(st.sampled_from([0, 3, 100])))
        asked = layout.conform_keys(keys_of(layout, keys, how))
        found = probe(layout, runs, asked, wanted)
        if wanted is not None:
            there, whole = found, probe(layout, runs, asked)
            assert np.array_equal(there.probe, whole.probe)
            for at in wanted:
                alike = there.updates.column(at), whole.updates.column(at)
                one, other = (repr(column.to_pylist()) for column in alike)  # NaN is no NaN
                assert one == other
            found = whole

    stored = [change for run in runs for change in changes_in(layout, run)]
    expected = Counter(
        (index, canonical(change))
        for index, key in enumerate(keys)
        for change in stored
        if canonical(change.key) == canonical(key)
    )
    pairs = zip(found.probe.tolist(), changes_in(layout, [found.updates]), strict=True)
    assert Counter((index, canonical(change)) for index, change in pairs) == expected


def test_batches_without_the_keys_are_not_touched(tmp_path, monkeypatch):
    layout = Layout.of({"k": pa.int64()}, {})
    size = 2 * probing.SMALL_RUN
    numbers = np.arange(size)
    columns = [numbers, numbers, np.zeros(size, np.int64), np.ones(size, np.int64)]
    batch = layout.conform(pa.table(columns, names=list("abcd")))
    store = LocalStore(tmp_path)
    with SegmentWriter(store, "t") as writer:
        writer.add("op/0", layout, [batch], SPAN, batch_rows=10)
        (ref,) = writer.finish()
    run = RunCache().open(store, ref, layout)
    touched = []
    really = type(run).batch
    monkeypatch.setattr(type(run), "batch", lambda self, i: (touched.append(i), really(self, i))[1])
    asked = pa.array([515, 7, size])
    keys = pa.table([asked, asked], names=["a", "b"])
    found = probe(layout, [run], layout.conform_keys(keys))
    assert set(touched) == {0, 51}
    assert sorted(found.probe.tolist()) == [0, 1]


@pytest.mark.parametrize("how", ["good", "constant"])
def test_no_keys_and_no_runs_find_nothing(how):
    layout = Layout.of({"k": pa.int64()}, {})
    for keys in ([], [(1,)]):
        found = probe(layout, [], layout.conform_keys(keys_of(layout, keys, how)))
        assert found.probe.tolist() == []
        assert found.updates.num_rows == 0
