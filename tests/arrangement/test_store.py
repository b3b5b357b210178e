from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

from reclock.arrangement.build import build
from reclock.arrangement.cache import RunCache
from reclock.arrangement.layout import Layout
from reclock.arrangement.segment import SegmentWriter, stem_of
from reclock.arrangement.store import LocalStore, RemoteStore
from reclock.errors import Corrupt, SegmentMissing, StorageError, StorageFull
from reclock.failpoints import FailpointRaised, armed
from reclock.testing.strategies.arrangements import Change, changes_in, table_of
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp

LAYOUT = Layout.of({"k": pa.int64()}, {})
SPAN = Description(*(Antichain.of(Timestamp(t)) for t in (0, 10, 0)))


@pytest.fixture(params=["local", "remote", "memory"])
def store(request, tmp_path):
    if request.param == "local":
        return LocalStore(tmp_path / "store")
    remote = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    if request.param == "memory":
        remote = fs._MockFileSystem()
    return RemoteStore(remote, "bucket/state", tmp_path / "cache", 1 << 20)


def write(store, stem="t", keys=5):
    with SegmentWriter(store, stem) as writer:
        changes = [Change((k,), (), 1, 1) for k in range(keys)]
        build(writer, "op/0", LAYOUT, table_of(LAYOUT, changes), SPAN)
        return writer.finish()[0]


def test_what_is_published_is_read_and_removed(store):
    assert store.names() == []
    ref = write(store)
    assert store.names() == [ref.segment]
    assert len(changes_in(LAYOUT, RunCache().open(store, ref, LAYOUT))) == 5
    assert write(store) == ref, "again is harmless"
    mapped = RunCache().open(store, ref, LAYOUT)
    store.remove(ref.segment)
    store.remove(ref.segment)
    assert store.names() == []
    assert len(changes_in(LAYOUT, mapped)) == 5, "open maps stay valid"


def test_a_missing_segment_says_so(store):
    ref = write(store)
    store.remove(ref.segment)
    with pytest.raises(SegmentMissing, match=f"segment {ref.segment} is missing") as error:
        RunCache().open(store, ref, LAYOUT)
    assert error.value.code == "58P01"
    assert error.value.hint


def test_a_crash_before_the_rename_shows_no_segment(store):
    with armed({"arrangement.segment.before_rename": "raise"}), pytest.raises(FailpointRaised):
        write(store)
    assert not [name for name in store.names() if name.endswith(".seg")]
    assert {stem_of(name) for name in store.names()} <= {"t"}


def test_a_crash_after_the_rename_leaves_a_whole_segment(store):
    with armed({"arrangement.segment.after_rename": "raise"}), pytest.raises(FailpointRaised):
        write(store)
    (name,) = store.names()
    assert write(store).segment == name


def test_a_cut_off_segment_is_corrupt(tmp_path):
    store = LocalStore(tmp_path)
    ref = write(store)
    path = tmp_path / ref.segment
    os.truncate(path, ref.offset + ref.length - 1)
    with pytest.raises(Corrupt, match=ref.segment):
        RunCache().open(store, ref, LAYOUT)
    os.truncate(path, 0)
    with pytest.raises(Corrupt, match="op/0"):
        RunCache().open(store, ref, LAYOUT)


def remote_store(tmp_path, cache_bytes=1 << 20):
    (tmp_path / "far").mkdir(exist_ok=True)
    far = fs.SubTreeFileSystem(str(tmp_path / "far"), fs.LocalFileSystem())
    return RemoteStore(far, "state", tmp_path / "cache", cache_bytes)


def test_a_remote_store_reads_each_segment_once(tmp_path):
    store = remote_store(tmp_path)
    ref = write(store)
    assert os.listdir(tmp_path / "cache") == [ref.segment], "the writer keeps a copy"
    (tmp_path / "cache" / ref.segment).unlink()
    RunCache().open(store, ref, LAYOUT)
    assert os.listdir(tmp_path / "cache") == [ref.segment]
    (tmp_path / "far" / "state" / ref.segment).unlink()
    assert len(changes_in(LAYOUT, RunCache().open(store, ref, LAYOUT))) == 5


@pytest.mark.parametrize("damage", ["cut", "table", "batch"])
def test_a_damaged_copy_is_fetched_again(tmp_path, damage):
    store = remote_store(tmp_path)
    ref = write(store)
    copy = tmp_path / "cache" / ref.segment
    good = copy.read_bytes()
    batch_at = RunCache().open(store, ref, LAYOUT)._table[0][0]
    place = {"table": ref.length - 20, "batch": batch_at + 20}.get(damage, 0)
    copy.write_bytes(good[:100] if damage == "cut" else good[:place] + b"\xff" + good[place + 1 :])
    assert len(changes_in(LAYOUT, RunCache().open(store, ref, LAYOUT))) == 5
    assert copy.read_bytes() == good


def test_damage_at_the_source_is_corrupt(tmp_path):
    store = remote_store(tmp_path)
    ref = write(store)
    for place in (tmp_path / "cache", tmp_path / "far" / "state"):
        (place / ref.segment).write_bytes(b"\0" * ref.length)
    with pytest.raises(Corrupt, match=ref.segment):
        RunCache().open(store, ref, LAYOUT)


def test_the_local_copies_stay_bounded(tmp_path):
    size = os.path.getsize(tmp_path / "far" / "state" / write(remote_store(tmp_path)).segment)
    store = remote_store(tmp_path, cache_bytes=3 * size)
    refs = [write(store, f"t{i}") for i in range(6)]
    for path in (tmp_path / "cache").iterdir():
        path.unlink()
    for ref in refs:
        assert len(changes_in(LAYOUT, RunCache().open(store, ref, LAYOUT))) == 5
        assert ref.segment in os.listdir(tmp_path / "cache")
    assert len(os.listdir(tmp_path / "cache")) <= 3


def test_stores_pickle(tmp_path):
    for store in (LocalStore(tmp_path), remote_store(tmp_path)):
        assert pickle.loads(pickle.dumps(store)) == store


def test_a_full_disk_is_a_full_disk(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull, match="could not write segment"):
        write(LocalStore(tmp_path))


def test_other_failures_name_the_segment(tmp_path, monkeypatch):
    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "rename", broken)
    with pytest.raises(StorageError, match="could not write segment t-"):
        write(LocalStore(tmp_path))
