"""The log of a sink in files: whole lines are never changed, and torn ones never stay."""

from __future__ import annotations

import json
import random

import numpy as np
import pyarrow as pa
import pytest

from model.cdcv2_codec import decode
from model.cdcv2_reader import Reader
from reclock.sinks.consistency import frontier_record
from reclock.sinks.failure import Retry, Stop
from reclock.sinks.files import FileLog, Place, lines
from reclock.sinks.log import Messages
from reclock.time.frontier import at


def messages(*values: object) -> list[Messages]:
    texts = [json.dumps(value).encode() for value in values]
    return [Messages(np.zeros(len(texts), np.int64), None, pa.array(texts, pa.binary()))]


def update(time: int, x: str) -> object:
    return {"array": [{"data": {"x": x}, "time": time, "diff": 1}]}


def progress(lower: int, upper: int, *times: int) -> object:
    counts = [{"time": time, "count": 1} for time in times]
    return {"progress": {"lower": [lower], "upper": [upper], "counts": counts}}


FIRST = messages(update(1, "a"), update(2, "b"), progress(0, 3, 1, 2))
SECOND = messages(update(3, "c"), update(4, "d\nd"), progress(3, 5, 3, 4))
OTHERWISE = messages(update(4, "d\nd"), progress(3, 6, 3, 4), update(3, "c"))
"""The same times as one who goes on may group them."""


@pytest.fixture(params=[False, True])
def place(request, tmp_path):
    path = tmp_path / ("out" if request.param else "out.json")
    made = Place(path, request.param)
    made.prepare()
    return made


def sent(place, chunks, frontier):
    fenced = FileLog(place, "s").fence()
    fenced.send(chunks, [frontier_record("s", at(frontier), {})])
    fenced.close()


def collection(text: bytes) -> list[tuple[str, int]]:
    reader = Reader()
    closed = [reader.receive(decode(line)) for line in text.splitlines()]
    found = [u for c in closed if c is not None for u in c.updates]
    return sorted((u.data["x"], int(u.time)) for u in found)


def test_whatever_prefix_a_crash_left_the_next_one_makes_it_whole(place):
    sent(place, FIRST, 3)
    (file,) = place.files()
    first, noted = file.read_bytes(), place.progress.read_bytes()
    sent(place, SECOND, 5)
    whole = file.read_bytes()
    ends = [at for at in range(len(first), len(whole)) if whole[at : at + 1] == b"\n"]
    sizes = {*range(len(first), len(whole) + 1, 23), *(at + n for at in ends for n in (0, 1, 2))}
    for size in sorted(sizes - {len(whole) + 1}):
        file.write_bytes(whole[:size])
        place.progress.write_bytes(noted)
        assert place.peek().frontier == at(3)
        sent(place, OTHERWISE, 6)
        text = file.read_bytes()
        kept = whole[:size][: whole[:size].rfind(b"\n") + 1]
        assert text == kept + b"".join(lines(chunk.values) for chunk in OTHERWISE)
        assert collection(text) == [("a", 1), ("b", 2), ("c", 3), ("d\nd", 4)]
    shuffled = text.splitlines()
    random.Random(1).shuffle(shuffled)
    assert collection(b"\n".join(shuffled)) == collection(text)


def test_another_process_is_kept_out_while_one_writes(place):
    first = FileLog(place, "s").fence()
    with pytest.raises(Retry, match="another process writes"):
        FileLog(place, "s").fence()
    first.close()
    FileLog(place, "s").fence().close()


def test_the_place_of_another_sink_is_not_written(place):
    sent(place, FIRST, 3)
    fenced = FileLog(place, "other").fence()
    with pytest.raises(Stop, match='has the output of sink "s"'):
        fenced.progress()
    fenced.close()


def test_a_place_that_does_not_take_anything_stops_the_sink(tmp_path):
    place = Place(tmp_path / "out", directory=True)
    place.prepare()
    fenced = FileLog(place, "s").fence()
    place.progress.with_suffix(".lock").unlink()
    place.path.rmdir()
    with pytest.raises(Stop, match="cannot write"):
        fenced.send(FIRST, [frontier_record("s", at(3), {})])
    fenced.close()
