from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

from graphs.build import build
from reclock.arrangement.cache import RunCache
from reclock.arrangement.layout import Layout
from reclock.arrangement.nearby import Nearby
from reclock.arrangement.remote import RemoteStore
from reclock.arrangement.segment import SegmentWriter, stem_of
from reclock.arrangement.store import LocalStore
from reclock.errors import Corrupt, SegmentMissing, StorageError, StorageFull
from reclock.failpoints import FailpointRaised, armed
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp
from strategies.arrangements import Change, changes_in, table_of

LAYOUT = Layout.of({"k": pa.int64()}, {})
SPAN = Description(*(Antichain.of(Timestamp(t)) for t in (0, 10, 0)))


@pytest.fixture(params=["local", "remote", "memory"])
def store(request, tmp_path):
    if request.param == "local":
        return LocalStore(tmp_path / "store")
    remote = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    if request.param == "memory":
        remote = fs._MockFileSystem()
    return RemoteStore(remote, "bucket/state", Nearby(tmp_path / "cache", 1 << 20))


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
    with pytest.raises(SegmentMissing, match=f"{ref.segment} is missing") as error:
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


def test_stores_pickle(tmp_path):
    store = LocalStore(tmp_path)
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
