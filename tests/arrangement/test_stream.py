from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.arrangement import consolidate as consolidate_module
from reclock.arrangement import stream
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import Layout
from reclock.arrangement.stream import (
    advance_to,
    between,
    collapse_to,
    concat,
    merged,
    recut,
    sliced,
)
from strategies.arrangements import (
    changes_in,
    changes_of,
    hashes,
    layouts,
    model,
    table_of,
)


def draw_sources(data, layout, how):
    lists = data.draw(st.lists(changes_of(layout), max_size=4))
    batches = [consolidate(layout, layout.conform(table_of(layout, c, how))) for c in lists]
    step = data.draw(st.integers(1, 8))
    return [change for c in lists for change in c], [
        list(recut([batch], step)) for batch in batches
    ]


def constant(columns, size):
    del columns
    return np.zeros(size, np.uint64)


@pytest.mark.parametrize("collide", [False, True])
@given(st.data())
def test_small_blocks_give_what_one_consolidation_gives(collide, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "BLOCK_ROWS", data.draw(st.integers(1, 5)))
        if collide:
            patch.setattr(stream, "fingerprint", constant)
            patch.setattr(consolidate_module, "fingerprint", constant)
        layout = data.draw(layouts())
        how = data.draw(hashes)
        changes, sources = draw_sources(data, layout, how)
        pieces = list(merged(layout, sources))
        expected = consolidate(layout, layout.conform(table_of(layout, changes, how)))
    assert all(piece.num_rows for piece in pieces)
    whole = concat(pieces) if pieces else layout.empty()
    assert whole.serialize() == expected.serialize()


@given(st.data(), st.integers(0, 10))
def test_retiming_is_the_models(data, time):
    layout = data.draw(layouts())
    changes, sources = draw_sources(data, layout, data.draw(hashes))

    def read(retime):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stream, "BLOCK_ROWS", 3)
            found = changes_in(layout, merged(layout, sources, retime))
        assert len(found) == len(model(found))
        return model(found)

    assert read(advance_to(layout, time)) == model(changes, lambda t: max(t, time))
    assert read(collapse_to(layout, time)) == model(changes, lambda t: time if t <= time else None)
    assert read(between(3, time)) == model(changes, lambda t: t if 3 <= t < time else None)
    assert read(between(3, None)) == model(changes, lambda t: t if t >= 3 else None)


def test_a_single_row_with_a_long_history_passes_through_small_blocks(monkeypatch):
    monkeypatch.setattr(stream, "BLOCK_ROWS", 4)
    layout = Layout.of({"k": pa.int64()}, {})
    size = 1_000
    columns = [np.zeros(size, np.int64)] * 2 + [np.arange(size), np.ones(size, np.int64)]
    batch = layout.conform(pa.table(columns, names=list("abcd")))
    (made,) = merged(layout, [[batch], [batch]], advance_to(layout, 10**6))
    assert changes_in(layout, [made])[0].diff == 2 * size


def test_blocks_are_bounded_by_bytes(monkeypatch):
    monkeypatch.setattr(stream, "BLOCK_BYTES", 10_000)
    layout = Layout.of({"k": pa.int64()}, {"v": pa.string()})
    kh = np.arange(100)
    columns = [kh, kh, pa.array(["x" * 1_000] * 100), kh, kh + 1]
    batch = layout.conform(pa.table(columns, names=list("abcde")))
    sizes = [piece.num_rows for piece in merged(layout, [[batch]])]
    assert sum(sizes) == 100
    assert max(sizes) <= 20


@given(st.lists(st.integers(0, 9)), st.integers(1, 7))
def test_recut_keeps_rows_and_order(sizes, rows):
    layout = Layout.of({}, {})
    count = sum(sizes)
    columns = [np.arange(count), np.zeros(count, np.int64), np.ones(count, np.int64)]
    whole = layout.conform(pa.table(columns, names=list("abc")))
    starts = np.cumsum([0, *sizes])
    batches = [whole.slice(start, size) for start, size in zip(starts, sizes, strict=False)]
    cut = list(recut(batches, rows))
    assert [batch.num_rows for batch in cut[:-1]] == [rows] * (len(cut) - 1)
    assert [n for batch in cut for n in batch.column(0).to_pylist()] == list(range(count))
    assert all(0 < batch.num_rows <= rows for batch in cut)


@given(st.data())
def test_slices_in_memory_give_what_one_consolidation_gives(data):
    layout, how = data.draw(layouts()), data.draw(hashes)
    lists = data.draw(st.lists(changes_of(layout), min_size=1, max_size=4))
    batches = [consolidate(layout, layout.conform(table_of(layout, c, how))) for c in lists]
    changes = [change for c in lists for change in c]
    pieces = list(sliced(layout, batches, data.draw(st.integers(1, 40))))
    expected = consolidate(layout, layout.conform(table_of(layout, changes, how)))
    assert all(piece.num_rows for piece in pieces)
    whole = concat(pieces) if pieces else layout.empty()
    assert whole.serialize() == expected.serialize()


def test_slices_are_about_as_large_as_asked_for():
    layout = Layout.of({"k": pa.int64()}, {})
    ones = pa.array(np.ones(5_000, np.int64))
    sources = [
        layout.batch(np.arange(5_000), [pa.array(np.arange(5_000))], np.ones(5_000, np.int64), ones)
        for _ in range(3)
    ]
    sizes = [piece.num_rows * 3 for piece in sliced(layout, sources, 1_000)]
    assert sum(sizes) == 15_000
    assert max(sizes) <= 2_000
