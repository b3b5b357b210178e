"""A real cluster on this machine: jobs run on its workers, and a killed one takes its executors."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from standalone import standalone_cluster

pytestmark = pytest.mark.slow(seconds=40)  # and not spark: its Spark is in another process

JOB = """
import os, sys
from pyspark.sql import SparkSession
os.environ["PYSPARK_PYTHON"] = sys.executable
at_home = SparkSession.builder.config("spark.driver.host", "127.0.0.1")
spark = at_home.master(sys.argv[1]).getOrCreate()
def where(batches):
    import os, pyarrow as pa
    for _ in batches:
        yield pa.RecordBatch.from_pylist([{"at": os.getcwd()}])
found = set()
while len(found) < 2:
    found |= {r.at for r in spark.range(0, 8, 1, 8).mapInArrow(where, "at string").collect()}
print(*sorted(found), sep="\\n", flush=True)
sys.stdin.read()
"""


def test_jobs_run_on_workers_that_can_be_killed(tmp_path):
    with standalone_cluster(tmp_path / "cluster") as cluster:
        driver = subprocess.Popen(
            [sys.executable, "-c", JOB, cluster.master_url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert driver.stdout is not None
            for home in cluster.homes:
                where = driver.stdout.readline()
                assert where.startswith(str(home / "work")), where + cluster.log()
            assert [len(cluster.executors(n)) for n in (0, 1)] == [1, 1]
            (executor,) = cluster.executors(0)
            cluster.workers[0].kill()
            cluster.workers[0].wait()
            end = time.monotonic() + 30
            while _is_alive(executor) and time.monotonic() < end:
                time.sleep(0.1)
            assert not _is_alive(executor)
        finally:
            driver.communicate("")
        processes = [cluster.master, *cluster.workers]
    assert all(process.poll() is not None for process in processes)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
