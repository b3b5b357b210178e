"""CDCv2 on a real Spark: tasks read a file of messages and close times, the tick adopts rows."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow(seconds=40)]

PROGRAM = """
import sys, time
import reclock

path, file = sys.argv[1:]
with reclock.open(path, master="local[2]") as db:
    db.execute("ALTER SYSTEM SET execution = 'spark'")
    db.execute(
        f"CREATE SOURCE s (id BIGINT, x TEXT) FROM FILE '{file}' FORMAT JSON ENVELOPE MATERIALIZE "
        "WITH (RETAIN HISTORY FOR '1 h')"
    )
    deadline = time.monotonic() + 240
    query = "SELECT upper FROM reclock.frontiers WHERE object = 's'"
    while db.execute(query).rows != [(20,)]:
        assert time.monotonic() < deadline, db.execute("SELECT * FROM reclock.source_status").rows
        time.sleep(0.2)
    for time in (2, 3, 9, 19):
        print(time, db.execute(f"SELECT count(*), sum(id) FROM s AS OF {time}").rows)
    rows = db.execute("SELECT max(rows), max(driver_rows), max(tasks) FROM reclock.ticks").rows
    print("most", rows)
    print("check", db.check())
"""


def test_tasks_close_times(tmp_path):
    rows = [(n, "é", 3, 1) for n in range(3_000)] + [(n, "é", 9, -1) for n in range(1_000)]
    lines = [{"progress": {"lower": [0], "upper": [20], "counts": [
        {"time": 3, "count": 3_000}, {"time": 9, "count": 1_000}]}}]  # fmt: skip
    for begin in [*range(0, len(rows), 50), 100, 3_100]:  # some of it twice
        some = rows[begin : begin + 50]
        made = [{"data": {"id": i, "x": x}, "time": t, "diff": d} for i, x, t, d in some]
        lines.append({"array": made})
    path = tmp_path / "changes.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "state"), str(path)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    said = done.stdout.splitlines()
    whole, rest = sum(range(3_000)), sum(range(1_000, 3_000))
    assert said[:4] == [
        "2 [(0, None)]",
        f"3 [(3000, Decimal('{whole}'))]",
        f"9 [(2000, Decimal('{rest}'))]",
        f"19 [(2000, Decimal('{rest}'))]",
    ], done.stdout + done.stderr
    most, of_driver, tasks = map(int, said[4].removeprefix("most [(").removesuffix(")]").split(","))
    assert most >= 4_000
    assert of_driver < 100
    assert tasks > 0
    assert said[5] == "check []"
