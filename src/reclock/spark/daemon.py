"""The process that Spark forks its Python workers from, with our libraries loaded before the fork.

Spark's own daemon loads nothing, so every worker imports pyarrow, pandas (which pyarrow asks for)
and this package by itself: more than a second of a core. A job has a worker for each task that
runs at once and each function of a stage. Workers forked from this process have all of it, in
memory that they share.

A thread does not survive a fork. The linear algebra of numpy, which we do not use, gets no threads.
Those of the allocators of Arrow and polars are started again by the allocators themselves; polars'
own removes files of queries that did not fit into memory, which no task has.

Memory that a task frees is kept for the next one, up to a bound (``KEPT_BYTES``): by default every
array of more than 128 KiB is a map of its own, and its pages are zeroed for each task again, which
took a fifth of a worker's time.

Used where the workers surely have this package: on this machine (``launch``). Tests:
tests/spark/test_daemon.py.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
from contextlib import suppress
from typing import Final

LOADED: Final = (
    "pandas",
    "polars",
    "confluent_kafka",
    "pyspark.worker",
    "reclock.spark.chain",
    "reclock.spark.staging",
    "reclock.connectors.kafka.source",
    "reclock.connectors.cdcv2",
)
"""What a task of ours needs."""


KEPT_BYTES: Final = 256 << 20
"""How much free memory a worker keeps at the end of its heap."""

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_MOST_ON_HEAP: Final = 32 << 20
"""The largest threshold that glibc takes: what is larger is a map of its own."""


def keep_memory() -> None:
    """Have the allocator of C keep memory that is freed; where it is not glibc's, do nothing."""
    with suppress(OSError, AttributeError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_MMAP_THRESHOLD, _MOST_ON_HEAP)
        allocator.mallopt(_TRIM_THRESHOLD, KEPT_BYTES)


def load() -> None:
    """Import all of it."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    keep_memory()
    for name in LOADED:
        importlib.import_module(name)
    gc.freeze()


if __name__ == "__main__":
    from pyspark.daemon import manager

    load()
    manager()
