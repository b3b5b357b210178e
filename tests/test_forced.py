"""What runs in this process also runs as jobs: other tests, run again with all work forced.

``loop`` runs jobs on a loop (``engines.task_engine``): random pipelines and histories, the crash
table, sources, supplied times, transactions, expirations, joint paces, sinks, temporal filters and
views with a schedule. ``spark`` runs them on a real master: the crash table, histories, sinks and
temporal filters.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATIENCE = 1800

LOOP = (
    "ingest/test_consistency.py",
    "export/test_sinks.py",
    "ingest/test_sources.py",
    "ingest/test_timed.py",
    "engine/test_crash.py",
    "engine/test_expirations.py",
    "engine/test_multi_pace.py",
    "engine/test_temporal.py",
)
WALKS = (
    "engine/test_refresh.py",
    "engine/test_walk.py",
    "ingest/test_materialize.py",
    "pipeline/test_histories.py",
)
SPARK = (
    "engine/test_crash.py",
    "export/test_sinks_spark.py",
    "session/test_end_to_end.py",
    "engine/test_temporal_spark.py",
)


def run(execution: str, master: str | None, *files: str) -> None:
    options = [f"--execution={execution}", "--hypothesis-profile=few", "--variants=2"]
    options += [f"--master={master}"] if master else []
    paths = [str(ROOT / "tests" / file) for file in files]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *options, *paths],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE,
        env={name: os.environ[name] for name in os.environ if not name.startswith("PYTEST_")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]


@pytest.mark.parametrize(
    ("execution", "master", "files"),
    [("loop", None, LOOP), ("loop", None, WALKS), ("spark", "local[2]", SPARK)],
)
def test_a_few_files(execution, master, files):
    run(execution, master, *files)
