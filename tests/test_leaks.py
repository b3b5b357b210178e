"""What a test leaves behind is found, and named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import pytest

from reclock import java

from .leaks import SPARK_VARIABLES, Surroundings, Threads

ROOT = Path(__file__).parents[1]


def test_variables_and_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECLOCK_GONE", "1")
    monkeypatch.setenv("RECLOCK_OTHER", "1")
    was = os.getcwd()
    before = Surroundings()
    assert before.changes({}) == []
    monkeypatch.delenv("RECLOCK_GONE")
    monkeypatch.setenv("RECLOCK_NEW", "2")
    monkeypatch.setenv("RECLOCK_OTHER", "2")
    monkeypatch.chdir(tmp_path)
    assert before.changes({"RECLOCK_OTHER": lambda value: value == "2"}) == [
        "variable RECLOCK_GONE was '1', is None",
        "variable RECLOCK_NEW was None, is '2'",
        f"the working directory was {was}, is {tmp_path}",
    ]
    assert len(before.changes({"RECLOCK_OTHER": lambda value: value == "3"})) == 4


def test_no_java_may_stay_but_the_bundled_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/one")
    before = Surroundings()
    monkeypatch.setenv("JAVA_HOME", "/another")
    assert before.changes(SPARK_VARIABLES) == ["variable JAVA_HOME was '/one', is '/another'"]
    bundled = cache(lambda: Path("/another"))
    monkeypatch.setattr(java, "_launcher_home", bundled)
    assert len(before.changes(SPARK_VARIABLES)) == 1  # nobody asked for it
    bundled()
    assert before.changes(SPARK_VARIABLES) == []


@pytest.mark.parametrize("name", ["my-reclock-read_0", "reclock-read_0-x", "x (serve_forever)"])
def test_a_thread_is_not_let_off_for_a_part_of_its_name(name: str) -> None:
    threads, over = Threads(), threading.Event()
    runs = threading.Thread(target=over.wait, name=name)
    runs.start()
    try:
        threads.note("test_this")
        assert threads.left(0.05) == [f"thread {name!r} runs still, started in test_this"]
    finally:
        over.set()
        runs.join()


LEAKING = """
import os, threading
from pathlib import Path
from tests.leaks import Threads

Threads.left.__defaults__ = (0.1,)

def test_nothing():
    pass

def test_variable():
    os.environ["RECLOCK_LEFT"] = "1"

def test_thread():
    threading.Thread(target=threading.Event().wait, args=(60,), name="left", daemon=True).start()

def test_directory():
    os.chdir("/")
"""


def test_tests_that_leak_fail(tmp_path: Path) -> None:
    """From end to end: the fixtures of all tests, and a file that leaks; threads fail its last."""
    (tmp_path / "test_it.py").write_text(LEAKING)
    command = [sys.executable, "-m", "pytest", "-q", "-rEp", "-p", "no:cacheprovider"]
    told = subprocess.run(
        [*command, "-p", "tests.conftest", "-c", "pyproject.toml", str(tmp_path / "test_it.py")],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT}/tests/support"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.returncode == 1, told.stdout + told.stderr
    assert "4 passed, 2 errors" in told.stdout, told.stdout
    assert "variable RECLOCK_LEFT was None, is '1'" in told.stdout
    assert f"the working directory was {ROOT}, is /" in told.stdout
    assert re.search(r"thread 'left' runs still, started in \S*::test_thread", told.stdout)
    failed = re.findall(r"^ERROR \S*::(\w+)", told.stdout, re.MULTILINE)
    assert sorted(failed) == ["test_directory", "test_variable"]
