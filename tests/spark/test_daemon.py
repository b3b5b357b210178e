"""Spark's workers on this machine are forked from a process that has our libraries loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from reclock.spark.session import Spark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ALLOWED = {"jemalloc_bg_thd", "polars-ooc-clea"}
"""The allocators' own, which they start again after a fork, and one that has nothing to do."""

LOADING = """
import os, sys
from reclock.spark import daemon
daemon.load()
tasks = [task for task in os.listdir("/proc/self/task") if int(task) != os.getpid()]
print(*(open(f"/proc/self/task/{task}/comm").read().strip() for task in tasks), sep="\\n")
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux' list of threads")
def test_loading_starts_no_thread_that_a_fork_would_lose() -> None:
    variables = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-c", LOADING]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=variables)
    assert set(done.stdout.split()) <= ALLOWED


@pytest.mark.spark
def test_workers_have_our_libraries_when_they_begin() -> None:
    def loaded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [name for name in ("pandas", "reclock.spark.chain") if name in sys.modules]
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"names": [",".join(names)]})

    spark = Spark()
    try:
        frame = spark.jobs.range(0, 2, 1, 2).mapInArrow(loaded, "names STRING")
        assert frame.toArrow().to_pydict()["names"] == ["pandas,reclock.spark.chain"] * 2
    finally:
        spark.close()
