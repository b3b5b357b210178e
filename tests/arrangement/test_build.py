from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs import build as module
from graphs.build import build
from reclock.arrangement.cache import RunCache
from reclock.arrangement.layout import Layout
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.store import LocalStore
from reclock.errors import InvalidValue
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp
from strategies.arrangements import (
    changes_in,
    changes_of,
    hashes,
    layouts,
    model,
    table_of,
)


def span(lower, upper, since=0):
    return Description(*(Antichain.of(Timestamp(t)) for t in (lower, upper, since)))


def write(store, layout, table, inline_limit=0):
    with SegmentWriter(store, "tick-0.task-0", inline_limit=inline_limit) as writer:
        build(writer, "op/0", layout, table, span(0, 10))
        (ref,) = writer.finish()
    return ref


@given(st.data(), st.randoms(use_true_random=False), st.sampled_from([0, 1 << 20]))
def test_a_run_holds_the_model_and_the_same_bytes_in_any_order(tmp_path_factory, data, rng, inline):
    layout = data.draw(layouts())
    changes = data.draw(changes_of(layout))
    how = data.draw(hashes)
    store = LocalStore(tmp_path_factory.mktemp("store"))
    ref = write(store, layout, table_of(layout, changes, how), inline)
    read = changes_in(layout, RunCache().open(store, ref, layout))
    assert model(read) == model(changes)
    assert len(read) == ref.rows == len(model(changes))

    names = store.names()
    rng.shuffle(changes)
    table = table_of(layout, changes, how)
    cut = rng.randrange(len(changes) + 1)
    chunked = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    assert write(store, layout, chunked, inline) == ref
    assert store.names() == names


def test_input_larger_than_a_piece_gives_the_same_run(tmp_path, monkeypatch):
    layout = Layout.of({"k": pa.int64()}, {"v": pa.string()})
    size = 5_000
    keys = [i * 7_919 % 1_000 for i in range(size)]
    columns = [keys, keys, [f"v{k}" for k in keys], [0] * size, [1] * size]
    table = pa.table([pa.array(c) for c in columns], names=list("abcde"))
    ref = write(LocalStore(tmp_path / "a"), layout, table)
    monkeypatch.setattr(module, "PIECE_BYTES", table.nbytes // 7)
    assert write(LocalStore(tmp_path / "b"), layout, table) == ref
    assert ref.rows == 1_000


def test_wide_rows_are_cut_into_more_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("reclock.arrangement.segment.BATCH_BYTES", 100_000)
    layout = Layout.of({"k": pa.int64()}, {"v": pa.string()})
    columns = [range(1_000), range(1_000), ["x" * 1_000] * 1_000, [0] * 1_000, [1] * 1_000]
    table = pa.table([pa.array(c) for c in columns], names=list("abcde"))
    store = LocalStore(tmp_path)
    run = RunCache().open(store, write(store, layout, table), layout)
    assert run.batch_count > 10
    assert sum(batch.num_rows for batch in run) == 1_000


@pytest.mark.parametrize("time", [-1, 10])
def test_a_time_outside_the_description_is_refused(tmp_path, time):
    layout = Layout.of({}, {})
    table = pa.table([pa.array([0]), pa.array([time]), pa.array([1])], names=list("abc"))
    with pytest.raises(InvalidValue, match=f"an update at {time} is outside"):
        write(LocalStore(tmp_path), layout, table)
    assert LocalStore(tmp_path).names() == []
