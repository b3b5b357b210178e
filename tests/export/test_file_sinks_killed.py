"""A real process that writes files, and is killed again and again: readers have it all, once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter

import pytest

from model.cdcv2_codec import decode
from model.cdcv2_reader import Reader

pytestmark = pytest.mark.slow(seconds=20)

PROGRAM = """
import sys, time
import reclock

path, out, seconds = sys.argv[1:]
with reclock.open(path) as db:
    db.execute("ALTER SYSTEM SET timestamp_interval = '20ms'")
    db.execute("ALTER SYSTEM SET logical_compaction_window = '1ms'")
    db.execute("CREATE SOURCE IF NOT EXISTS n FROM LOAD GENERATOR COUNTER "
               "(EVENTS PER TICK 20, max_cardinality 50)")
    db.execute(f"CREATE SINK IF NOT EXISTS s FROM n INTO DIRECTORY '{out}' FORMAT JSON "
               "ENVELOPE MATERIALIZE")
    print("ready", flush=True)
    time.sleep(float(seconds))
    goal = db.execute("SELECT upper FROM reclock.frontiers WHERE object = 'n'").rows[0][0]
    deadline = time.monotonic() + 60
    status = "SELECT state, frontier, detail FROM reclock.sink_status"
    while (db.execute(status).rows[0][1] or 0) < goal:
        assert time.monotonic() < deadline, db.execute(status).rows
        time.sleep(0.05)
    print(goal)
"""


def start(path, out, seconds):
    command = [sys.executable, "-c", PROGRAM, str(path), str(out), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "ready"
    return process


def test_whatever_is_there_after_kill_9_is_the_collection(tmp_path):
    out = tmp_path / "out"
    choose = random.Random(11)
    for _ in range(5):
        process = start(tmp_path / "state", out, 1_000)
        time.sleep(0.3 + choose.random() * 0.7)
        process.kill()
        process.communicate()
    process = start(tmp_path / "state", out, 0.5)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    lines = [
        line
        for file in sorted(out.glob("*.json"))
        for line in file.read_bytes().splitlines(keepends=True)
    ]
    assert all(line.endswith(b"\n") for line in lines)
    choose.shuffle(lines)
    reader = Reader()
    rows: Counter[int] = Counter()
    for line in lines:
        closed = reader.receive(decode(line))
        for update in () if closed is None else closed.updates:
            rows[update.data["counter"]] += update.diff
    assert reader.upper.element() >= int(said)
    there = sorted(number for number, count in rows.items() if count)
    assert {rows[number] for number in there} == {1}
    last = there[-1]
    assert there == [*range(last - 49, last + 1)]
    assert last > 100
