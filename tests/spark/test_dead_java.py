"""The Java of this process is killed: the next tick has another one, and nothing is lost.

In a process of its own: what is killed must be nobody else's.
"""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os
import signal
import sys
import threading
import time

from pyspark import SparkContext

import reclock
from reclock.errors import SparkError

db = reclock.open(sys.argv[1], background=False, master="local[2]")
db.execute("ALTER SYSTEM SET execution = 'spark'")
db.execute("CREATE TABLE t (k INT, x INT)")
db.execute("CREATE MATERIALIZED VIEW v AS SELECT k, sum(x * 2) AS s FROM t GROUP BY k")


def put(k, x):
    db.execute(f"INSERT INTO t VALUES ({k}, {x})")
    db.tick()


def killed():
    process = SparkContext._gateway.proc
    os.kill(process.pid, signal.SIGKILL)
    return process.pid


put(1, 1)
assert db.execute("SELECT * FROM v").rows == [(1, 2)]

# Between two ticks.
first = killed()
put(1, 10)
assert db.execute("SELECT * FROM v").rows == [(1, 22)]
assert SparkContext._gateway.proc.pid != first

# In the middle of a job.
def strike():
    tracker = SparkContext._active_spark_context.statusTracker()
    while not tracker.getActiveStageIds():
        time.sleep(0.005)
    killed()


threading.Thread(target=strike).start()
try:
    put(2, 3)
    raise SystemExit("a tick without Java")
except SparkError as error:
    print(error.code, error, error.hint)
    assert error.hint and "again" in error.hint
db.tick()
assert sorted(db.execute("SELECT * FROM v").rows) == [(1, 22), (2, 6)]
assert db.execute("SELECT k, max(x) OVER () FROM t ORDER BY 1 LIMIT 1").rows == [(1, 10)]
assert db.check() == []
killed()
db.close()
print("closed")
"""


def test_spark_is_started_again(tmp_path):
    made = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "state")],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert made.stdout.endswith("closed\n"), made.stdout + made.stderr
