"""Runs on a real S3 interface: what is read of them, what is copied, and what goes wrong."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer

import numpy as np
import pyarrow as pa
import pytest

from graphs.build import build
from reclock.arrangement import remote_errors
from reclock.arrangement import run as run_
from reclock.arrangement.cache import RunCache
from reclock.arrangement.file import Place
from reclock.arrangement.layout import Layout
from reclock.arrangement.nearby import Nearby
from reclock.arrangement.remote import TRAFFIC, RemoteStore
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.shard import Shard, within
from reclock.errors import Corrupt, SegmentMissing, StorageError
from reclock.failpoints import FailpointRaised, armed
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp
from s3 import BUCKET, KEYS, READER, filesystem, running_s3, way_to

LAYOUT = Layout.of({"k": pa.int64()}, {"v": pa.int64()})
SPAN = Description(*(Antichain.of(Timestamp(t)) for t in (0, 10, 0)))
ROWS = 700_000
EVERY = (-(1 << 63), (1 << 63) - 1)
GIB = 1 << 30


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def way(server):
    with way_to(server) as way:
        yield way


def store_at(way, directory, limit=GIB, prefix="state/db", keys=KEYS):
    far = filesystem(way.endpoint, allow_delayed_open=True, **keys)
    return RemoteStore(far, f"{BUCKET}/{prefix}", Nearby(directory, limit))


def updates(rows, seed=1):
    random = np.random.default_rng(seed)
    kh = np.sort(random.integers(*EVERY, rows))
    key = np.arange(rows)
    times = np.full(rows, 3)
    columns = [kh, key, random.integers(0, 1 << 60, rows), times, np.ones(rows, np.int64)]
    return pa.table([pa.array(c) for c in columns], names=list("abcde"))


def write(store, rows, stem="t", seed=1, runs=1):
    with SegmentWriter(store, stem) as writer:
        for nth in range(runs):
            build(writer, f"op/{nth}", LAYOUT, updates(rows, seed + nth), SPAN)
        return writer.finish()


def keys_of(run, rows):
    """Return what is asked of a run to find some of its rows."""
    batch = updates(run.rows).to_batches()[0].take(pa.array(rows))
    return pa.RecordBatch.from_arrays(batch.columns[:2], ["kh", "k"])


@pytest.fixture(scope="module")
def written(server, tmp_path_factory):
    """A run of many batches."""
    with way_to(server) as way:
        return write(store_at(way, tmp_path_factory.mktemp("writer")), ROWS)[0]


@pytest.fixture
def large(written, way, tmp_path):
    """The same, and a machine that has no copy of it."""
    return store_at(way, tmp_path / "reader"), written


def values(run):
    return np.concatenate([batch.column(2).to_numpy() for batch in run])


def size_of(directory):
    return sum(path.stat().st_size for path in directory.iterdir() if path.is_file())


def test_what_is_published_is_read_and_removed(way, tmp_path):
    store = store_at(way, tmp_path / "cache", prefix="state/one")
    (ref,) = write(store, 1_000)
    assert way.requests == [f"PUT /{BUCKET}/{store.path(ref.segment).partition('/')[2]}"]
    assert store.names() == [ref.segment]
    assert write(store, 1_000) == (ref,), "again is harmless"
    assert store.names() == [ref.segment]
    other = store_at(way, tmp_path / "other", prefix="state/one")
    assert sum(len(b) for b in RunCache().open(other, ref, LAYOUT)) == 1_000
    store.remove(ref.segment)
    store.remove(ref.segment)
    assert store.names() == []


def test_few_keys_of_a_large_run_cost_little_of_it(large, way):
    store, ref = large
    shard = Shard.open(LAYOUT, [ref], store, RunCache())
    probed, found = shard.lookup(keys_of(shard.runs[0], [5, 6, ROWS // 2]))
    assert sorted(probed.tolist()) == [0, 1, 2]
    assert sorted(found.column(1).to_pylist()) == [5, 6, ROWS // 2]
    assert way.read_bytes < ref.length / 10
    assert len([r for r in way.requests if r.startswith("GET")]) == 3, "its end, two batches"


def test_a_part_reads_its_share_of_a_run(large, way, tmp_path):
    _, ref = large
    parts, read, rows = 4, [], 0
    step = (1 << 64) // parts
    for part in range(parts):
        way.reset()
        store = store_at(way, tmp_path / f"part{part}")
        run = RunCache().open(store, ref, LAYOUT)
        first = EVERY[0] + part * step
        rows += sum(len(batch) for batch in within(run, first, first + step - 1))
        read.append(way.read_bytes)
    assert rows == ROWS
    assert all(0.2 < each / ref.length < 0.3 for each in read), read


def test_neighbours_are_read_together(large, way):
    store, ref = large
    before = TRAFFIC.requests, TRAFFIC.remote_bytes
    run = RunCache().open(store, ref, LAYOUT)
    assert sum(len(batch) for batch in run) == ROWS
    requests = len([r for r in way.requests if r.startswith("GET")])
    assert run.batch_count > 40
    assert requests <= 2 + ref.length // (6 << 20)
    assert TRAFFIC.requests - before[0] == requests
    assert ref.length <= TRAFFIC.remote_bytes - before[1] <= way.read_bytes < 1.05 * ref.length


def test_what_was_read_is_read_here(large, way):
    store, ref = large
    for batch in RunCache().open(store, ref, LAYOUT):
        assert len(batch)
    way.reset()
    before = pa.total_allocated_bytes()
    batches = list(RunCache().open(store, ref, LAYOUT))
    assert sum(map(len, batches)) == ROWS
    assert way.requests == []
    assert pa.total_allocated_bytes() - before < 1 << 20, "mapped, not copied"


def test_what_is_written_here_is_read_here(way, tmp_path):
    store = store_at(way, tmp_path / "cache")
    refs = write(store, 2_000, runs=3)
    way.reset()
    for run in RunCache().open_all(store, refs, LAYOUT):
        assert sum(map(len, run)) == 2_000
    assert way.requests == []


def test_small_runs_cost_one_request_each(way, tmp_path):
    refs = write(store_at(way, tmp_path / "writer"), 1_000, runs=5)
    way.reset()
    for run in RunCache().open_all(store_at(way, tmp_path / "reader"), refs, LAYOUT):
        assert sum(map(len, run)) == 1_000
    methods = Counter(request.partition(" ")[0] for request in way.requests)
    assert methods["GET"] == 5


@pytest.mark.parametrize("damage", ["wrong", "cut", "empty"])
def test_a_damaged_copy_is_read_again(large, way, damage):
    store, ref = large
    wanted = Counter(
        b for batch in RunCache().open(store, ref, LAYOUT) for b in batch[2].to_pylist()
    )
    for path in store.nearby.directory.iterdir():
        size = path.stat().st_size
        if damage == "wrong":
            with path.open("r+b") as file:
                file.seek(size // 2)
                byte = file.read(1)
                file.seek(size // 2)
                file.write(bytes([byte[0] ^ 1]))
        else:
            os.truncate(path, size // 2 if damage == "cut" else 0)
    found = Counter(
        b for batch in RunCache().open(store, ref, LAYOUT) for b in batch[2].to_pylist()
    )
    assert found == wanted
    way.reset()
    assert sum(map(len, RunCache().open(store, ref, LAYOUT))) == ROWS
    assert way.requests == [], "the copies are good again"


def test_damage_at_the_source_is_corrupt(way, tmp_path):
    store = store_at(way, tmp_path / "writer", prefix="state/bad")
    (ref,) = write(store, 100_000)
    path = store.path(ref.segment)
    data = bytearray(store.file(ref.segment).whole().to_pybytes())
    data[ref.length // 2] ^= 1
    with store.filesystem.open_output_stream(path) as out:
        out.write(bytes(data))
    with pytest.raises(Corrupt, match=ref.segment):
        list(RunCache().open(store_at(way, tmp_path / "r", prefix="state/bad"), ref, LAYOUT))


@pytest.mark.parametrize("limit", [0, 1_000, 3 << 20])
def test_copies_stay_bounded(large, limit, tmp_path, way):
    _, ref = large
    store = store_at(way, tmp_path / "small", limit=limit)
    run = RunCache().open(store, ref, LAYOUT)
    for _ in range(2):
        assert sum(map(len, run)) == ROWS
        assert size_of(tmp_path / "small") <= limit
        assert store.kept.bytes <= max(limit // 4, 1 << 20)


@pytest.mark.parametrize("loss", ["removed", "a file"])
def test_the_copies_are_lost_while_they_are_used(large, loss):
    store, ref = large
    batches = iter(RunCache().open(store, ref, LAYOUT))
    first = next(batches)
    shutil.rmtree(store.nearby.directory)
    if loss == "a file":
        store.nearby.directory.write_text("in the way")
    assert len(first) + sum(map(len, batches)) == ROWS
    assert first[1].to_pylist() == list(range(len(first))), "maps stay valid"


READ = """
import pickle, sys
from pathlib import Path
from reclock.arrangement.cache import RunCache
store, ref, layout = pickle.loads(Path(sys.argv[1]).read_bytes())
for _ in range(4):
    assert sum(map(len, RunCache().open(store, ref, layout))) == int(sys.argv[2])
print(store.nearby.directory)
"""


def test_processes_share_a_directory(large, tmp_path, way):
    _, ref = large
    store = store_at(way, tmp_path / "shared", limit=8 << 20)
    sent = tmp_path / "sent"
    sent.write_bytes(pickle.dumps((store, ref, LAYOUT)))
    assert KEYS["secret_key"].encode() in sent.read_bytes(), "a store made with explicit keys"
    command = [sys.executable, "-c", READ, str(sent), str(ROWS)]
    with ThreadPoolExecutor(3) as pool:
        made = pool.map(lambda _: subprocess.run(command, capture_output=True, check=False), "abc")
        for done in made:
            assert done.returncode == 0, done.stderr.decode()
            assert done.stdout.decode().strip() == str(tmp_path / "shared")
    assert size_of(tmp_path / "shared") <= 3 * (8 << 20)


def test_a_store_that_is_sent_twice_is_one(way, tmp_path):
    sent = pickle.dumps(store_at(way, tmp_path / "cache"))
    assert pickle.loads(sent) is pickle.loads(sent)
    assert pickle.loads(sent).filesystem == store_at(way, tmp_path / "cache").filesystem


def test_a_busy_server_is_asked_again(large, way, monkeypatch):
    monkeypatch.setattr(remote_errors, "PAUSES", (0.01,) * 12)
    store, ref = large
    way.busy = 0.4
    assert sum(map(len, RunCache().open(store, ref, LAYOUT))) == ROWS
    (made,) = write(store, 20_000, "busy")
    assert sum(map(len, RunCache().open(store, made, LAYOUT))) == 20_000


def test_a_server_that_comes_back_is_waited_for(large, way):
    store, ref = large
    way.closed = True
    Timer(1.5, lambda: setattr(way, "closed", False)).start()
    assert sum(map(len, RunCache().open(store, ref, LAYOUT))) == ROWS


def test_a_server_that_is_away_or_busy_for_long(large, way, monkeypatch):
    monkeypatch.setattr(remote_errors, "PAUSES", (0.01,))
    store, ref = large
    way.closed = True
    with pytest.raises(StorageError, match="the store does not answer") as error:
        RunCache().open(store, ref, LAYOUT)
    assert error.value.code == "08006"
    assert ref.segment in error.value.message
    way.closed, way.busy = False, 1.0
    with pytest.raises(StorageError, match="fewer requests") as error:
        write(store, 1_000, "never")
    assert error.value.code == "53000"
    assert "PutObject" in error.value.detail


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        (READER, "42501"),
        ({"access_key": "nobody", "secret_key": "x"}, "28000"),
        ({"access_key": KEYS["access_key"], "secret_key": "wrong"}, "28000"),
        ({"anonymous": True}, "42501"),
    ],
)
def test_who_may_not_write(way, tmp_path, keys, code):
    with pytest.raises(StorageError, match=r"could not write bucket/state/db/t-.*\.seg: ") as error:
        write(store_at(way, tmp_path, keys=keys), 1_000)
    assert error.value.code == code
    assert "PutObject" in error.value.detail
    assert error.value.hint
    assert "wrong" not in str(error.value)


def test_who_may_not_look_and_a_bucket_that_is_none(way, tmp_path):
    nobody = {"access_key": "nobody", "secret_key": "x"}
    with pytest.raises(StorageError) as error:
        store_at(way, tmp_path, keys=nobody).check()
    assert error.value.code in {"28000", "42501"}
    far = filesystem(way.endpoint, **KEYS)
    none = RemoteStore(far, "none/state", Nearby(tmp_path, GIB))
    for attempt in (none.check, lambda: write(none, 1_000)):
        with pytest.raises(StorageError, match="there is no such bucket") as error:
            attempt()
        assert error.value.code == "58P01"


def test_a_file_that_is_removed_while_it_is_read(way, tmp_path, monkeypatch):
    monkeypatch.setattr(run_, "AHEAD_BYTES", 1)
    (ref,) = write(store_at(way, tmp_path / "writer", prefix="state/gone"), 100_000)
    store = store_at(way, tmp_path / "reader", prefix="state/gone")
    batches = iter(RunCache().open(store, ref, LAYOUT))
    next(batches)
    file = store.file(ref.segment)
    assert len(file.piece(Place(0, 10))) == 10
    store.remove(ref.segment)
    with pytest.raises(SegmentMissing, match=f"{ref.segment} is missing"):
        list(batches)
    with pytest.raises(SegmentMissing):  # the answer is longer than what is asked for
        file.piece(Place(1, 10))


def test_a_large_file_is_uploaded_once(way, tmp_path):
    rows = 250_000
    store = store_at(way, tmp_path / "one", prefix="state/once")
    (ref,) = write(store, rows)
    way.reset()
    assert write(store, rows) == (ref,)
    assert [r for r in way.requests if not r.startswith("HEAD")] == []
    with store.filesystem.open_output_stream(store.path(ref.segment)) as out:
        out.write(b"half of it")
    assert write(store, rows) == (ref,)
    other = store_at(way, tmp_path / "other", prefix="state/once")
    assert sum(map(len, RunCache().open(other, ref, LAYOUT))) == rows


@pytest.mark.parametrize("rows", [1_000, 250_000])
def test_a_crash_shows_no_part_of_a_file(way, tmp_path, rows):
    store = store_at(way, tmp_path / "cache", prefix=f"state/crash{rows}")
    with armed({"arrangement.segment.before_rename": "raise"}), pytest.raises(FailpointRaised):
        write(store, rows)
    assert store.names() == []
    with armed({"arrangement.segment.after_rename": "raise"}), pytest.raises(FailpointRaised):
        write(store, rows)
    (name,) = store.names()
    assert write(store, rows)[0].segment == name


def test_the_place_of_copies_is_a_machine_s_own(way, tmp_path, monkeypatch):
    store = store_at(way, tmp_path / "cache")
    monkeypatch.setattr("reclock.arrangement.nearby._machine", lambda: "another")
    sent = pickle.dumps(store)
    monkeypatch.undo()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/local,{tmp_path}/more")
    theirs = pickle.loads(sent)
    assert theirs.nearby.directory == Path(tmp_path / "local" / "reclock" / "db")


def test_a_file_that_is_lost_while_it_is_written(way, tmp_path):
    store = store_at(way, tmp_path / "cache", prefix="state/lost")

    def lose():
        shutil.rmtree(tmp_path / "cache")

    with (
        armed({"arrangement.segment.before_rename": lose}),
        pytest.raises(StorageError, match="its local file is gone") as error,
    ):
        write(store, 1_000)
    assert not isinstance(error.value, SegmentMissing)
    assert store.names() == []
    (ref,) = write(store, 1_000)
    assert store.names() == [ref.segment]


def test_threads_that_read_the_same_leave_nothing_behind(large):
    store, ref = large
    run = RunCache().open(store, ref, LAYOUT)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: sum(map(len, run)), range(8))) == {ROWS}
    assert len(run._file._ready) <= 2 * 64
