from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from reclock.arrangement.gc import collect
from reclock.arrangement.store import LocalStore

stems = ["tick-1.task-0", "tick-2.task-0", "tick-10.task-0", "merge-1"]
files = st.builds(
    lambda stem, digest, done: f"{stem}-{digest}.seg" if done else f".{stem}~{digest}.tmp",
    st.sampled_from(stems),
    st.sampled_from(["00", "ff"]),
    st.booleans(),
)


@given(st.sets(files), st.sets(files), st.sets(st.sampled_from(stems)))
def test_exactly_what_nothing_names_is_removed(tmp_path_factory, present, named, busy):
    store = LocalStore(tmp_path_factory.mktemp("store"))
    for name in present:
        (store.root / name).touch()
    removed = collect(store, in_flight=lambda: busy, named=lambda: named)
    left = set(store.names())
    assert left == present - set(removed)
    assert left >= present & named
    for name in present - named:
        in_flight = any(name.startswith((f"{stem}-", f".{stem}~")) for stem in busy)
        assert (name in left) == in_flight


def test_a_tick_published_while_collecting_is_kept(tmp_path):
    store = LocalStore(tmp_path)
    busy = {"tick-1.task-0"}
    manifest: set[str] = set()
    segment = "tick-1.task-0-00.seg"
    (tmp_path / segment).touch()

    def in_flight():
        now = set(busy)
        manifest.add(segment)
        busy.clear()
        return now

    def published_before():
        manifest.add(segment)
        busy.clear()
        return set(busy)

    assert collect(store, in_flight, lambda: manifest) == []
    assert collect(store, published_before, lambda: manifest) == []
    assert os.listdir(tmp_path) == [segment]
    manifest.clear()
    assert collect(store, lambda: busy, lambda: manifest) == [segment]


def test_a_file_that_appears_after_the_listing_is_left_alone(tmp_path):
    store = LocalStore(tmp_path)

    def in_flight():
        (tmp_path / "tick-3.task-0-00.seg").touch()
        return ()

    assert collect(store, in_flight, tuple) == []
    assert len(store.names()) == 1
