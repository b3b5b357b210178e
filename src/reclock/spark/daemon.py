"""The process that Spark forks its Python workers from, with our libraries loaded before the fork.

Spark's own daemon loads nothing, so every worker imports pyarrow, pandas (which pyarrow asks for)
and this package by itself: more than a second of a core. A job has a worker for each task that
runs at once and each function of a stage. Workers forked from this process have all of it, in
memory that they share.

A thread does not survive a fork. The linear algebra of numpy, which we do not use, gets no threads.
Those of the allocators of Arrow and polars are started again by the allocators themselves; polars'
own removes files of queries that did not fit into memory, which no task has.

Used where the workers surely have this package: on this machine (``launch``). Tests:
tests/spark/test_daemon.py.
"""

from __future__ import annotations

import importlib
import os
from typing import Final

from reclock.spark.worker import settle

LOADED: Final = (
    "pandas",
    "polars",
    "confluent_kafka",
    "pyspark.worker",
    "reclock.spark.chain",
    "reclock.spark.staging",
    "reclock.spark.tasks",
    "reclock.dataflow.merge",
    "reclock.connectors.kafka.source",
    "reclock.connectors.cdcv2",
    "reclock.connectors.reading",
)
"""What a task of ours needs."""


def load() -> None:
    """Import all of it."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in LOADED:
        importlib.import_module(name)
    settle()


if __name__ == "__main__":
    from pyspark.daemon import manager

    load()
    manager()
