from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pytest

from graphs.build import build
from reclock.arrangement import segment
from reclock.arrangement.cache import RunCache
from reclock.arrangement.layout import Layout
from reclock.arrangement.segment import SegmentWriter, read_index, stem_of
from reclock.arrangement.store import LocalStore
from reclock.errors import Corrupt, InvalidValue
from reclock.failpoints import EXIT_STATUS, FailpointRaised, armed
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp
from strategies.arrangements import Change, changes_in, model, table_of

LAYOUT = Layout.of({"k": pa.int64()}, {"v": pa.string()})
OTHER = Layout.of({"k": pa.string()}, {})
SPAN = Description(*(Antichain.of(Timestamp(t)) for t in (0, 10, 0)))
CHANGES = [Change((i,), (f"v{i}",), i % 3, 1) for i in range(50)]
OTHERS = [Change((f"k{i}",), (), 1, 2) for i in range(9)]


def write(store, stem="tick-1.task-0", changes=CHANGES, **options):
    with SegmentWriter(store, stem, **options) as writer:
        build(writer, "a/0", LAYOUT, table_of(LAYOUT, changes), SPAN)
        build(writer, "b/0", OTHER, table_of(OTHER, OTHERS), SPAN)
        build(writer, "c/0", OTHER, table_of(OTHER, []), SPAN)
        return writer.finish()


def test_many_runs_are_one_file_and_two_fsyncs(tmp_path, monkeypatch):
    fsyncs = []
    really = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (fsyncs.append(fd), really(fd)))
    a, b, c = write(LocalStore(tmp_path))
    assert os.listdir(tmp_path) == [a.segment]
    assert len(fsyncs) == 2, "the file and its directory"
    assert a.segment == b.segment
    assert a.offset % 64 == b.offset % 64 == 0
    assert (c.segment, c.inline, c.rows) == (None, None, 0), "no rows take no bytes"
    cache = RunCache()
    assert model(changes_in(LAYOUT, cache.open(LocalStore(tmp_path), a, LAYOUT))) == model(CHANGES)
    assert model(changes_in(OTHER, cache.open(LocalStore(tmp_path), b, OTHER))) == model(OTHERS)
    assert list(cache.open(LocalStore(tmp_path), c, OTHER)) == []


def test_what_is_written_steadily_reaches_the_disk_bit_by_bit(tmp_path, monkeypatch):
    synced = []
    really = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (synced.append(fd), really(fd)))
    monkeypatch.setattr(segment, "STEADY_BYTES", 100)
    steady, *_ = write(LocalStore(tmp_path), steadily=True)
    assert len(synced) > 2
    synced.clear()
    plain, *_ = write(LocalStore(tmp_path))
    assert not synced
    assert steady == plain


def test_small_runs_travel_in_their_references(tmp_path):
    a, b, _ = write(LocalStore(tmp_path), inline_limit=1_800)
    assert a.segment is not None
    assert b.inline is not None
    assert len(b.inline) == b.length <= 1_800
    read = changes_in(OTHER, RunCache().open(LocalStore(tmp_path), b, OTHER))
    assert model(read) == model(OTHERS)


def test_only_small_runs_write_no_file(tmp_path):
    refs = write(LocalStore(tmp_path), inline_limit=1 << 20)
    assert all(ref.segment is None for ref in refs)
    assert os.listdir(tmp_path) == []


def test_an_idle_tick_writes_no_file(tmp_path):
    with SegmentWriter(LocalStore(tmp_path), "tick-2.task-0") as writer:
        assert writer.finish() == ()
    assert os.listdir(tmp_path) == []


def test_the_same_content_has_the_same_name_and_other_content_another(tmp_path):
    store = LocalStore(tmp_path)
    first = write(store)
    content = (tmp_path / first[0].segment).read_bytes()
    assert write(store) == first
    assert (tmp_path / first[0].segment).read_bytes() == content
    other = write(store, changes=[*CHANGES[1:], Change((0,), ("w",), 0, 1)])
    assert other[0].segment != first[0].segment
    assert len(os.listdir(tmp_path)) == 2
    assert {stem_of(name) for name in store.names()} == {"tick-1.task-0"}


def test_the_index_repeats_the_references(tmp_path):
    a, b, _ = write(LocalStore(tmp_path))
    assert read_index(LocalStore(tmp_path), a.segment) == (a, b)


@pytest.mark.parametrize("keep", [0, 5, -1])
def test_a_damaged_index_is_corrupt(tmp_path, keep):
    a, _, _ = write(LocalStore(tmp_path))
    path = tmp_path / a.segment
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(Corrupt, match=f"corrupt index of segment {a.segment}"):
        read_index(LocalStore(tmp_path), a.segment)


def test_an_error_half_way_leaves_nothing(tmp_path):
    def failing():
        yield LAYOUT.conform(table_of(LAYOUT, CHANGES))
        raise ZeroDivisionError

    with (
        pytest.raises(ZeroDivisionError),
        SegmentWriter(LocalStore(tmp_path), "t") as writer,
    ):
        writer.add("a/0", LAYOUT, failing(), SPAN, batch_rows=10)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("stem", ["", "a/b", "../x", ".hidden", "a b"])
def test_names_stay_in_the_store(tmp_path, stem):
    with pytest.raises(InvalidValue, match="invalid segment name"):
        SegmentWriter(LocalStore(tmp_path), stem)


def test_a_failure_before_the_rename_leaves_no_segment(tmp_path):
    store = LocalStore(tmp_path)
    with (
        armed({"arrangement.segment.before_rename": "raise"}),
        pytest.raises(FailpointRaised),
    ):
        write(store)
    assert store.names() == []


CRASH = """
import sys, pyarrow as pa
from pathlib import Path
from reclock.arrangement import segment
from graphs.build import build
from reclock.arrangement.layout import Layout
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.store import LocalStore
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp
span = Description(*(Antichain.of(Timestamp(t)) for t in (0, 10, 0)))
with SegmentWriter(LocalStore(Path(sys.argv[1])), "crashed") as writer:
    table = pa.table([pa.array([0]), pa.array([1]), pa.array([1])], names=list("abc"))
    build(writer, "a/0", Layout.of({}, {}), table, span)
    writer.finish()
"""


@pytest.mark.parametrize("where", ["before_rename", "after_rename"])
def test_a_crash_leaves_only_garbage_under_its_stem(tmp_path, where):
    store = LocalStore(tmp_path)
    kept = write(store)
    done = subprocess.run(
        [sys.executable, "-c", CRASH, tmp_path],
        env=os.environ | {"RECLOCK_FAILPOINTS": f"arrangement.segment.{where}=exit"},
        check=False,
    )
    assert done.returncode == EXIT_STATUS
    (left,) = set(store.names()) - {kept[0].segment}
    assert stem_of(left) == "crashed"
    assert left.endswith(".seg") == (where == "after_rename")
