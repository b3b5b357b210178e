from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from graphs.build import build
from reclock.arrangement.cache import RunCache, process_cache
from reclock.arrangement.layout import Layout
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.store import LocalStore
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp
from strategies.arrangements import Change, changes_in, table_of

LAYOUT = Layout.of({"k": pa.int64()}, {})
SPAN = Description(*(Antichain.of(Timestamp(t)) for t in (0, 10, 0)))


def write(store, count):
    refs = []
    for i in range(count):
        with SegmentWriter(store, f"t{i}") as writer:
            build(writer, "op/0", LAYOUT, table_of(LAYOUT, [Change((i,), (), 1, 1)]), SPAN)
            refs += writer.finish()
    return refs


def test_a_segment_is_mapped_once(tmp_path, monkeypatch):
    store = LocalStore(tmp_path)
    (ref,) = write(store, 1)
    maps = []
    really = LocalStore.file
    monkeypatch.setattr(LocalStore, "file", lambda self, n: (maps.append(n), really(self, n))[1])
    cache = RunCache()
    assert cache.open(store, ref, LAYOUT) is cache.open(store, ref, LAYOUT)
    assert maps == [ref.segment]


def test_the_least_recently_used_give_way(tmp_path):
    store = LocalStore(tmp_path)
    a, b, c = write(store, 3)
    cache = RunCache(capacity=2)
    first = cache.open(store, a, LAYOUT)
    second = cache.open(store, b, LAYOUT)
    assert cache.open(store, a, LAYOUT) is first
    cache.open(store, c, LAYOUT)
    assert len(cache) == 2
    assert cache.open(store, a, LAYOUT) is first
    assert cache.open(store, b, LAYOUT) is not second
    assert len(changes_in(LAYOUT, second)) == 1, "what is evicted is not closed"


def test_what_is_removed_is_forgotten(tmp_path):
    store = LocalStore(tmp_path)
    a, b = write(store, 2)
    cache = RunCache()
    kept = cache.open(store, b, LAYOUT)
    for ref in (a, b):
        assert len(changes_in(LAYOUT, cache.open(store, ref, LAYOUT))) == 1
    cache.forget(store, [a.segment])
    assert list(cache._files) == [(store, b.segment)]
    assert len(cache) == 1
    assert cache.open(store, b, LAYOUT) is kept


def test_one_cache_per_process_from_many_threads(tmp_path):
    store = LocalStore(tmp_path)
    refs = write(store, 20) * 10
    with ThreadPoolExecutor(8) as pool:
        runs = pool.map(lambda ref: process_cache().open(store, ref, LAYOUT), refs)
        keys = [changes_in(LAYOUT, run)[0].key[0] for run in runs]
    assert keys == list(range(20)) * 10
