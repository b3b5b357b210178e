"""Executors are killed while they work: the same results as in the driver, at every time.

A real cluster: a master and two workers of one core. While each kind of job runs (reading a topic,
a tick, a merge, a first load), an executor is killed, the next time its Python; Spark begins the
lost tasks elsewhere. Whatever they had written before must not count twice. On a busy machine a job
may end before its killer looks: such a tick, merge or read is done once more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from reclock.testing.kafka_upstream import Record
from standalone import standalone_cluster

pytestmark = pytest.mark.kafka  # and not spark: its Spark is in another process

ROWS = 20_000
PROGRAM = """
import os
import signal
import sys
import threading
import time
from pathlib import Path

from pyspark import SparkContext

import reclock
from reclock.arrangement import merge as rules
from reclock.engine import merging

merging.FEW_RUNS = 2  # so that ticks are followed by merges, of many tasks
rules.PART_ROWS = 2_000
home, master, broker, topic, rows, *workers = sys.argv[1:]
began = {"read": "read ", "tick": "tick", "load": "first load", "merge": "merge"}
killed = []


def below(pid, word):
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            command = Path(f"/proc/{child}/cmdline").read_text(errors="replace")
            found += [child] if word in command else below(child, word)
    return found


def kill(kind):
    # When a task runs, kill who runs it: first a JVM, and with it its Python; then Python alone.
    word = "ExecutorBackend" if (kind, "ExecutorBackend") not in killed else "daemon"
    tracker = context.statusTracker()
    while not over.is_set():
        stages = filter(None, map(tracker.getStageInfo, tracker.getActiveStageIds()))
        if any(stage.numActiveTasks for stage in stages):
            found = [pid for worker in workers for pid in below(worker, word)]
            if found:
                os.kill(found[-1], signal.SIGKILL)
                killed.append((kind, word))
                return
        time.sleep(0.002)


def kind_of(title):
    return next((kind for kind, word in began.items() if title.startswith(word)), None)


set_property = SparkContext.setLocalProperty
armed = []


def watched(self, name, value):
    set_property(self, name, value)
    if name == "spark.job.description" and value and kind_of(value) in armed:
        armed.remove(kind_of(value))
        thread = threading.Thread(target=kill, args=(kind_of(value),))
        thread.start()
        threads.append(thread)


SparkContext.setLocalProperty = watched
threads = []
over = threading.Event()
VIEWS = (
    "CREATE MATERIALIZED VIEW v AS SELECT u.name, count(*) AS n, sum(10 / t.x) AS s"
    " FROM t LEFT JOIN u ON t.k = u.k WHERE t.x > 0 GROUP BY u.name",
    "CREATE MATERIALIZED VIEW w AS SELECT k, max(id) AS m, min(upper(name)) AS l"
    " FROM (SELECT t.id, t.k, u.name FROM t JOIN u ON t.k = u.k) q GROUP BY k",
)
UPDATE = "UPDATE t SET k = k + 1 WHERE x = 3"
STEPS = [
    ("load", VIEWS[0]),
    ("load", VIEWS[1]),
    ("tick", f"INSERT INTO t SELECT i, i % 9, i % 6 FROM generate_series({rows} + 1, {rows} + 900)"
             " AS g(i)"),
    ("tick", UPDATE),
    ("merge", UPDATE),
    ("merge", UPDATE),
    ("read", "SOURCE"),
    ("read", "SOURCE"),
]
AT_MOST = 16
SOURCE = (
    f"CREATE SOURCE s (id BIGINT, x TEXT) FROM KAFKA BROKER '{broker}' TOPIC '{topic}' FORMAT JSON"
)


def opened(name, execution):
    clock = reclock.ManualClock(1_000_000)
    db = reclock.open(Path(home) / name, clock=clock, background=False, master=master)
    db.execute(f"ALTER SYSTEM SET execution = '{execution}'")
    db.execute("ALTER SYSTEM SET logical_compaction_window = '1h'")
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, k INT, x INT)")
    db.execute("CREATE TABLE u (k INT, name TEXT)")
    db.execute("INSERT INTO u SELECT i, 'n' || i FROM generate_series(1, 6) AS g(i)")
    db.execute(f"INSERT INTO t SELECT i, i % 7, i % 5 FROM generate_series(1, {rows}) AS g(i)")
    return db, clock


def run(db, clock, kind, step, nth):
    clock.advance(1_000)
    if step == "SOURCE":
        db.execute(SOURCE.replace("SOURCE s", f"SOURCE s{nth}"))
        query = f"SELECT state FROM reclock.source_status WHERE source = 's{nth}'"
        while db.execute(query).rows != [("running",)]:
            clock.advance(1_000)
            db.tick()
    else:
        db.execute(step)
        clock.advance(1_000)
        db.tick()
        db._core.merger.wait()
        if kind == "merge":  # what was merged is swapped in
            clock.advance(1_000)
            db.tick()


(large, clock), (small, other) = opened("large", "spark"), opened("small", "driver")
large.dataframe("SELECT 1 AS a").collect()
context = large._core.engine._spark.jobs.sparkContext
times = []
for nth, (kind, step) in enumerate(STEPS):
    before = len(killed)
    over.clear()
    for db, hand in ((large, clock), (small, other)):
        if db is large:
            armed.append(kind)
        run(db, hand, kind, step, nth)
    over.set()
    for thread in threads:
        thread.join()
    assert not armed, f"no job was a {kind}"
    if len(killed) == before and kind != "load" and len(STEPS) < AT_MOST:
        STEPS.append((kind, step if kind == "read" else UPDATE))
    if kind != "read":
        assert clock.now_ms() == other.now_ms()
        times.append(clock.now_ms())
    for name in ("t", "v", "w")[: 2 + min(nth, 1)]:
        for time_ in times:
            query = f"SELECT * FROM {name} AS OF {time_}"
            if name == "w" and time_ < times[1]:
                continue
            made, known = (sorted(d.execute(query).rows, key=repr) for d in (large, small))
            assert made == known and made, (step, query, len(made), len(known))
    if kind == "read":
        query = f"SELECT count(*), sum(id), min(x) FROM s{nth}"
        assert large.execute(query).rows == small.execute(query).rows, step
places = {p for (p,) in large.execute("SELECT place FROM reclock.ticks WHERE rows > 0").rows}
assert "spark" in places, places
assert {kind for kind, _ in killed} == {*began}, killed
assert {word for _, word in killed} == {"ExecutorBackend", "daemon"}, killed
for db in (large, small):
    assert db.check() == []
    db.close()
print(len(killed), "killed, the same")
"""


def test_killed_executors_change_nothing(tmp_path, kafka):
    topic = kafka.create_topic(4)
    for n in range(4):
        values = (json.dumps({"id": n * ROWS + i, "x": f"é{i % 7}"}) for i in range(ROWS // 4))
        kafka.produce(topic, n, *(Record(value.encode()) for value in values))
    env = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with standalone_cluster(tmp_path / "cluster", env=env) as cluster:
        workers = [str(worker.pid) for worker in cluster.workers]
        arguments = [str(tmp_path), cluster.master_url, kafka.address, topic, str(ROWS), *workers]
        made = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            env=os.environ | env, capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip
        assert made.stdout.endswith("killed, the same\n"), (
            made.stdout + made.stderr + cluster.log()[-4000:]
        )
