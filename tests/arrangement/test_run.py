from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.build import build
from reclock.arrangement.cache import RunCache
from reclock.arrangement.layout import Layout
from reclock.arrangement.run import RunRef
from reclock.arrangement.segment import SegmentWriter
from reclock.arrangement.store import LocalStore
from reclock.errors import Corrupt, InvalidValue, NewerFormat
from reclock.time.antichain import Antichain
from reclock.time.description import Description
from reclock.time.timestamp import Timestamp

LAYOUT = Layout.of({"k": pa.int64()}, {"v": pa.string()})
SPAN = Description(*(Antichain.of(Timestamp(t)) for t in (0, 10, 0)))


def write(root, rows=1_000, inline_limit=0):
    columns = [range(rows), range(rows), [f"v{i}" for i in range(rows)], [3] * rows, [1] * rows]
    table = pa.table([pa.array(c) for c in columns], names=list("abcde"))
    with SegmentWriter(LocalStore(root), "t", inline_limit=inline_limit) as writer:
        build(writer, "join/3", LAYOUT, table, SPAN)
        (ref,) = writer.finish()
    return ref


frontiers = st.lists(st.integers(0, 5), max_size=1).map(lambda t: Antichain(map(Timestamp, t)))


@given(frontiers, frontiers, frontiers, st.binary() | st.none(), st.sampled_from([None, "s.seg"]))
def test_references_survive_json(lower, upper, since, inline, segment):
    if not lower.precedes(upper):
        lower, upper = upper, lower
    ref = RunRef("op/1", Description(lower, upper, since), 3, 99, 7, segment, 64, inline)
    if segment is None:
        ref = RunRef("op/1", ref.description, 3, 99, 7, inline=inline)
    assert RunRef.from_json(json.loads(json.dumps(ref.to_json()))) == ref
    assert pickle.loads(pickle.dumps(ref)) == ref


def test_the_first_version_stays_readable():
    stored = {
        "v": 1, "name": "u7.join/3", "lower": [5], "upper": [9], "since": [2], "rows": 4,
        "length": 512, "checksum": 123, "segment": "tick-9.task-0-00ff.seg", "offset": 64,
    }  # fmt: skip
    ref = RunRef.from_json(stored)
    assert ref.to_json() == stored | {"v": 3}
    assert str(ref) == "run u7.join/3 [{5}, {9}) since {2} in segment tick-9.task-0-00ff.seg"
    assert RunRef.from_json(stored | {"inline": "Ynl0ZXM="}).inline == b"bytes"


def test_bytes_inline_are_deflated(tmp_path):
    ref = write(tmp_path, rows=3, inline_limit=10_000)
    assert len(ref.to_json()["inline"]) < ref.length


def test_a_later_version_is_refused():
    with pytest.raises(NewerFormat, match="format 4"):
        RunRef.from_json({"v": 4})


@pytest.mark.parametrize("damage", [{"lower": None}, {"rows": ...}, {"upper": [0], "lower": [5]}])
def test_a_reference_that_does_not_decode_is_corrupt(tmp_path, damage):
    stored = write(tmp_path).to_json() | damage
    stored = {key: value for key, value in stored.items() if value is not ...}
    with pytest.raises(Corrupt, match="run reference does not decode"):
        RunRef.from_json(stored)


def test_a_run_is_an_arrow_stream_that_anyone_reads(tmp_path):
    ref = write(tmp_path)
    with pa.OSFile(str(tmp_path / ref.segment)) as file:
        file.seek(ref.offset)
        table = pa.ipc.open_stream(file.read(ref.length)).read_all()
    assert table.num_rows == 1_000
    assert ref.offset % 64 == 0


def test_batches_are_mapped_not_copied(tmp_path):
    ref = write(tmp_path)
    before = pa.total_allocated_bytes()
    run = RunCache().open(LocalStore(tmp_path), ref, LAYOUT)
    batches = list(run)
    assert pa.total_allocated_bytes() - before < 1_000
    assert batches[0].num_rows == 1_000
    assert (run.first.tolist(), run.last.tolist()) == ([0], [999])


def test_any_wrong_byte_is_corrupt_and_names_run_and_segment(tmp_path):
    ref = write(tmp_path, rows=20)
    path = tmp_path / ref.segment
    good = path.read_bytes()
    missed = []
    messages = set()
    for at in range(ref.offset, ref.offset + ref.length):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        try:
            list(RunCache().open(LocalStore(tmp_path), ref, LAYOUT))
            missed.append(good[at])
        except Corrupt as error:
            messages.add(error.message)
    assert messages == {f"corrupt run join/3 [{{0}}, {{10}}) since {{0}} in segment {ref.segment}"}
    assert bytes(missed) == b"\xff\xff\xff\xff\0\0\0\0", "only the end-of-stream mark means nothing"


def test_a_wrong_byte_in_another_batch_does_not_hurt(tmp_path, monkeypatch):
    monkeypatch.setattr("reclock.arrangement.segment.BATCH_ROWS", 100)
    ref = write(tmp_path)
    path = tmp_path / ref.segment
    run = RunCache().open(LocalStore(tmp_path), ref, LAYOUT)
    assert run.batch_count == 10
    offset, length = run._table[7][:2]
    good = path.read_bytes()
    place = ref.offset + offset + length // 2
    path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
    run = RunCache().open(LocalStore(tmp_path), ref, LAYOUT)
    assert run.batch(3).num_rows == 100
    with pytest.raises(Corrupt) as error:
        run.batch(7)
    assert error.value.detail == "batch 7 does not match its checksum"


def test_wrong_bytes_inline_are_corrupt(tmp_path):
    ref = write(tmp_path, rows=3, inline_limit=10_000)
    assert ref.segment is None
    stored = ref.to_json()
    with pytest.raises(Corrupt, match="run reference does not decode"):
        RunRef.from_json(stored | {"inline": "AAAA" + stored["inline"][4:]})
    damaged = replace(ref, inline=b"AAAA" + ref.inline[4:])
    with pytest.raises(Corrupt, match="in its manifest"):
        list(RunCache().open(LocalStore(tmp_path), damaged, LAYOUT))


def test_other_columns_than_expected_are_corrupt(tmp_path):
    other = Layout.of({"k": pa.int32()}, {"v": pa.string()})
    with pytest.raises(Corrupt) as error:
        RunCache().open(LocalStore(tmp_path), write(tmp_path), other)
    assert "stored kh int64, k int64" in error.value.detail
    assert "expected kh int64, k int32" in error.value.detail


def test_intervals_of_an_earlier_version_are_refused_as_such(tmp_path):
    old = Layout.of({"k": pa.int64()}, {"i": pa.duration("us")})
    kinds = [pa.int64(), pa.int64(), pa.duration("us"), pa.int64(), pa.int64()]
    table = pa.table([pa.array([1], kind) for kind in kinds], names=list("abcde"))
    with SegmentWriter(LocalStore(tmp_path), "t", inline_limit=0) as writer:
        build(writer, "join/3", old, table, SPAN)
        (ref,) = writer.finish()
    new = Layout.of({"k": pa.int64()}, {"i": pa.struct([("days", pa.int32())])})
    with pytest.raises(InvalidValue, match="an earlier version of reclock") as error:
        RunCache().open(LocalStore(tmp_path), ref, new)
    assert error.value.code == "0A000"


def test_a_reference_says_the_time_of_all_updates(tmp_path):
    ref = replace(write(tmp_path, rows=3), time=Timestamp(7))
    assert RunRef.from_json(json.loads(json.dumps(ref.to_json()))) == ref
    run = RunCache().open(LocalStore(tmp_path), ref, LAYOUT)
    assert [batch.column("time").to_pylist() for batch in run] == [[7, 7, 7]]


@pytest.mark.parametrize("diffs", [[1, 2, 1], [1, -1, 1], [-1, -2, -1]])
def test_a_reference_says_whether_a_run_only_adds(tmp_path, diffs):
    kh, time, diff = (pa.array(values, pa.int64()) for values in ([1, 2, 3], [5, 5, 5], diffs))
    layout = Layout((), ())
    with SegmentWriter(LocalStore(tmp_path), "t") as writer:
        batch = pa.RecordBatch.from_arrays([kh, time, diff], schema=layout.schema)
        writer.add("op/1", layout, [batch], SPAN)
        (ref,) = writer.finish()
    assert ref.adds == (min(diffs) > 0)
    assert RunRef.from_json(json.loads(json.dumps(ref.to_json()))) == ref
