"""What a Python worker of Spark does about its memory, each in a process of its own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

SETTLING = """
import gc
from reclock.spark.tasks import _Numbered
import pyarrow as pa

def run():
    list(_Numbered(str, (1,))([pa.RecordBatch.from_pydict({"n": [0]})]))
    return gc.get_freeze_count()

counts = [run(), run()]
import decimal, sqlite3
counts.append(run())
print(*counts)
"""

FAULTS = """
import sys
import resource
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from reclock.spark.worker import keep_memory
if sys.argv[1] == "keep":
    keep_memory()
for _ in range(40):
    arrays = [np.full(1 << 17, 1) for _ in range(16)]  # 16 MiB, and free again
    [pc.add(pa.array(array), 1) for array in arrays]
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


def told(program: str, *arguments: str) -> list[int]:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [int(word) for word in done.stdout.split()]


def test_what_tasks_have_imported_is_not_searched_for_garbage() -> None:
    first, second, third = told(SETTLING)
    assert first > 10_000
    assert second == first  # nothing was imported: nothing to do
    assert third > first


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator is glibc's")
def test_memory_that_is_freed_is_kept() -> None:
    (usual,), (kept,) = told(FAULTS, "no"), told(FAULTS, "keep")
    assert kept < usual / 2, "pages were given back, and zeroed again"
