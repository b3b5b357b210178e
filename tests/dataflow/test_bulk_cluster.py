"""On a cluster: the same results, though tasks fail after they wrote, and run twice at once.

Two executors that share nothing with the driver but the files. Spark does not speculate when
all executors are on one host, so the test runs every part twice itself, in two tasks of one
job; and the first attempt of a part is lost once its files are there. All attempts must have
written the same files.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow(seconds=120)  # and not spark: its Spark runs in a process of its own

CLUSTER = """
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from uuid import uuid4

from pyspark import TaskContext

import reclock
from reclock.coordinator import spark_engine
from reclock.dataflow.bulk import stages, workers
from reclock.dataflow.bulk.task import DDL, RunStage

home = Path(sys.argv[1])
marks = home / "marks"
marks.mkdir()


class Lost(RunStage):
    def part(self, number):
        made = super().part(number)
        attempt = TaskContext.get().attemptNumber()
        what = [f"{self.stem} {self.number} {number}", attempt, [r.to_json() for *_, r in made]]
        (marks / uuid4().hex).write_text(json.dumps(what))
        if number == 0 and attempt == 0:
            raise RuntimeError("lost after it wrote")
        return made


class Twice(workers.Tasks):
    def run(self, stage):
        parts = stage.shelf.parts.count
        numbers = self._spark.bulk.range(0, 2 * parts, 1, 2 * parts)
        once = list(self._collected(
            numbers.selectExpr(f"id % {parts} AS id").mapInArrow(stage, DDL)))
        seen = {json.dumps([kind, name, ref.to_json()]): (kind, name, ref)
                for kind, name, ref in once}
        assert len(once) == 2 * len(seen), (len(once), len(seen))
        yield from seen.values()


stages.RunStage, spark_engine.Tasks = Lost, Twice


def answers(name, limit):
    spark_engine.BULK_ROWS = spark_engine.TICK_ROWS = limit
    found = []
    with reclock.open(home / name, background=False, master="local-cluster[2,1,1024]") as db:
        def look():
            for query in (
                "SELECT * FROM v", "SELECT * FROM w",
                "SELECT a.k, count(*), sum(b.x) FROM t a JOIN t b ON a.k = b.k GROUP BY 1",
            ):
                found.append(sorted(db.execute(query).rows, key=repr))
            frame = db.dataframe("SELECT k, x + 1 AS y FROM t")
            found.append(sorted(map(tuple, frame.collect())))

        db.execute("CREATE TABLE t (id INT PRIMARY KEY, k INT, x INT)")
        db.execute("CREATE TABLE u (k INT, name TEXT)")
        db.execute("INSERT INTO t SELECT i, i % 7, i % 5 FROM generate_series(1, 200) AS g(i)")
        db.execute("INSERT INTO u SELECT i, 'n' || i FROM generate_series(1, 6) AS g(i)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT u.name, count(*) AS n, sum(10 / t.x) AS s"
                   " FROM t LEFT JOIN u ON t.k = u.k WHERE t.x > 1 GROUP BY u.name")
        db.execute("CREATE MATERIALIZED VIEW w AS SELECT k, max(id) AS m,"
                   " string_agg(x::text, ',' ORDER BY id) AS l FROM t GROUP BY k")
        db.execute("DELETE FROM t WHERE id < 50")
        db.execute("UPDATE t SET k = k + 1 WHERE x = 3")
        db.execute("INSERT INTO t SELECT i, i % 9, i % 6 FROM generate_series(201, 300) AS g(i)")
        look()
        state = next(iter(db._core.world.timelines.values()))
        left = set(db._core.segments.names()) - set(state.named_segments())
        assert all(n.startswith((".", "merge-")) for n in left), left
    return found


large = answers("large", -1)
assert large == answers("small", 1 << 60)
by_part = defaultdict(list)
for mark in marks.iterdir():
    part, attempt, refs = json.loads(mark.read_text())
    by_part[part].append((attempt, json.dumps(refs)))
for part, made in by_part.items():
    assert len({refs for _, refs in made}) == 1, part
    assert len(made) >= (4 if part.endswith(" 0") else 2), (part, len(made))
assert any(part.startswith("tick-") for part in by_part)
assert any(part.startswith("load-") for part in by_part)
print("same")
"""


def test_a_cluster_gives_the_same_though_tasks_are_lost_and_doubled(tmp_path):
    script = [sys.executable, "-c", CLUSTER, str(tmp_path)]
    made = subprocess.run(script, capture_output=True, text=True, check=False, timeout=900)
    assert made.stdout.endswith("same\n"), made.stderr
