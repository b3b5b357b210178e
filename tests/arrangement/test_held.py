"""A held directory: what is written, listed and removed is in it, wherever it was moved to."""

from __future__ import annotations

import pickle
import shutil

import pyarrow as pa
import pytest

from graphs.build import build
from reclock.arrangement.cache import RunCache
from reclock.arrangement.held import HeldStore
from reclock.arrangement.layout import Layout
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.store import LocalStore
from reclock.errors import SegmentMissing, StorageError
from reclock.testing.failpoints import armed
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp
from strategies.arrangements import Change, table_of

LAYOUT = Layout.of({"k": pa.int64()}, {})
SPAN = Description(*(Antichain.of(Timestamp(t)) for t in (0, 10, 0)))
GONE = "the durable state is gone from where it was"


def write(store, stem="t"):
    with SegmentWriter(store, stem) as writer:
        changes = [Change((k,), (), 1, 1) for k in range(5)]
        build(writer, "op/0", LAYOUT, table_of(LAYOUT, changes), SPAN)
        return writer.finish()[0]


@pytest.fixture
def store(tmp_path):
    return HeldStore.hold(tmp_path / "state" / "segments")


def away(tmp_path, *, replaced):
    (tmp_path / "state").rename(tmp_path / "away")
    if replaced:
        (tmp_path / "state" / "segments").mkdir(parents=True)


@pytest.mark.parametrize("replaced", [False, True])
def test_while_it_is_away_nothing_is_written_or_read(store, tmp_path, replaced):
    ref = write(store)
    away(tmp_path, replaced=replaced)
    with pytest.raises(StorageError, match=GONE) as told:
        write(store, "u")
    assert not isinstance(told.value, SegmentMissing)
    with pytest.raises(StorageError, match=GONE):
        RunCache().open(store, ref, LAYOUT)
    assert not list(tmp_path.glob("state/segments/*"))
    if replaced:
        shutil.rmtree(tmp_path / "state")
    (tmp_path / "away").rename(tmp_path / "state")
    RunCache().open(store, ref, LAYOUT)
    later = write(store, "u")
    assert store.names() == sorted([ref.segment, later.segment])


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("back", [False, True])
def test_a_move_while_a_file_is_written_publishes_it_there_or_nowhere(
    store, tmp_path, replaced, back
):
    def move():
        away(tmp_path, replaced=replaced)
        if back:
            shutil.rmtree(tmp_path / "state", ignore_errors=True)
            (tmp_path / "away").rename(tmp_path / "state")

    with armed({"arrangement.segment.before_rename": move}):
        ref = write(store)  # what was begun there is finished there
    store.require([ref.segment])
    assert (tmp_path / ("state" if back else "away") / "segments" / ref.segment).exists()


def test_what_was_begun_in_another_directory_is_not_published(store, tmp_path, monkeypatch):
    """The directory is away when the file is begun, and back when it is finished."""
    monkeypatch.setattr(store.directory, "check", lambda: None)
    away(tmp_path, replaced=True)
    with SegmentWriter(store, "u") as writer:
        build(writer, "op/0", LAYOUT, table_of(LAYOUT, [Change((1,), (), 1, 1)]), SPAN)
        shutil.move(tmp_path / "state", tmp_path / "other")
        (tmp_path / "away").rename(tmp_path / "state")
        monkeypatch.undo()
        with pytest.raises(SegmentMissing):
            writer.finish()
    assert store.names() == []


def test_it_removes_and_lists_its_own_files_only(store, tmp_path):
    ref = write(store)
    away(tmp_path, replaced=True)
    theirs = LocalStore(tmp_path / "state" / "segments")
    write(theirs)
    assert store.names() == [ref.segment]
    store.remove(ref.segment)
    store.remove(ref.segment)
    assert theirs.names() == [ref.segment]
    assert store.names() == []


def test_what_tasks_wrote_is_required_to_be_there(store, tmp_path):
    tasks = pickle.loads(pickle.dumps(store))
    assert tasks == LocalStore(store.root)
    store.require([write(tasks).segment])
    away(tmp_path, replaced=True)
    astray = write(tasks, "u")
    with pytest.raises(StorageError, match=GONE):
        store.require([astray.segment])
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "away").rename(tmp_path / "state")
    with pytest.raises(SegmentMissing):
        store.require([astray.segment])


def test_a_path_that_is_no_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot open the directory"):
        HeldStore.hold(tmp_path / "file")
